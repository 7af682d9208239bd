"""Scoring with the CSLM: the scorer of the search, text, n-best lists, and the comparison with an n-gram LM."""

import json
import lzma
import math
from collections import Counter

import kenlm
import numpy as np
import pytest

torch = pytest.importorskip("torch")

from safetensors.torch import save_file  # noqa: E402

import rnnsmt  # noqa: E402
from rnnsmt.base.errors import InputError  # noqa: E402
from rnnsmt.cli import main  # noqa: E402
from rnnsmt.cslm.model import FORMAT, load_model  # noqa: E402
from rnnsmt.cslm.scorer import CslmScorer, sentence_scores  # noqa: E402
from rnnsmt.cslm.settings import CslmSizes  # noqa: E402
from rnnsmt.cslm.text import sentence_ngrams  # noqa: E402
from rnnsmt.formats.ini import CSLM_UNKNOWN  # noqa: E402
from rnnsmt.lm.automaton import load_automaton  # noqa: E402
from rnnsmt.networks.data import UNK, Vocabulary  # noqa: E402
from rnnsmt.networks.feed_forward import FeedForwardLM, TrainedNetwork, save_model  # noqa: E402
from rnnsmt.networks.ngram_scorer import CUDA_ROWS, ROWS, CudaEngine  # noqa: E402
from rnnsmt.networks.text_scores import event_scores, ngram_scores  # noqa: E402

from ..gpu import NEEDS_GPU  # noqa: E402
from .twin import Twin  # noqa: E402

torch.set_num_threads(1)
WORDS = ["le", "chat", "la", "mer", "voit", "dort", "et"]
VOCABULARY = Vocabulary(WORDS)


def random_model(sizes, seed=1):
    model = FeedForwardLM(sizes, seed, 0.3)
    generator = torch.Generator().manual_seed(seed)
    for bias in (model.b_1, model.b_2, model.b_o):
        bias.data.uniform_(-0.5, 0.5, generator=generator)
    return model


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Create a model with the exact softmax, and the same model marked as self-normalised."""
    directory = tmp_path_factory.mktemp("cslm")
    model = random_model(CslmSizes(len(VOCABULARY), 4, 6, 12, 8))
    for name, normalised in (("exact.safetensors", False), ("bare.safetensors", True)):
        save_model(directory / name, FORMAT, TrainedNetwork(model, VOCABULARY, normalised, 5, {"seed": 1}))
    return directory


@pytest.fixture(scope="module")
def twin(files):
    model = load_model(files / "exact.safetensors").model
    return Twin({name: value.numpy() for name, value in model.named_parameters()})


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Create a model whose sizes are not multiples of the block sizes, with more classes than a block of columns."""
    directory = tmp_path_factory.mktemp("large")
    words = [f"w{i}" for i in range(2500)]
    model = random_model(CslmSizes(len(words) + 3, 7, 33, 107, 53), 2)
    save_model(directory / "m.safetensors", FORMAT, TrainedNetwork(model, Vocabulary(words), False, 0, {}))
    return directory / "m.safetensors"


def requests(scorer, number, contexts, seed=1):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, scorer.end, (contexts, scorer.order - 1)).astype(np.int32)
    owner = np.sort(rng.integers(0, contexts, number)).astype(np.int32)
    return rows, owner, rng.integers(1, scorer.end + 1, number).astype(np.int32)


# the scorer


def test_what_the_search_reads(files):
    scorer = CslmScorer(files / "exact.safetensors", "cpu")
    assert (scorer.order, scorer.padding, scorer.unknown, scorer.end) == (4, 0, 1, 9)
    assert scorer.words[2:-1] == WORDS
    ids = scorer.ids(["chat", "chien", "</s>", "<unk>", "et"])
    assert ids.dtype == np.int32
    assert ids.tolist() == [3, 1, 1, 1, 8]
    assert scorer.normalize
    assert not CslmScorer(files / "bare.safetensors", "cpu").normalize
    assert CslmScorer(files / "bare.safetensors", "cpu", normalize=True).normalize


@pytest.mark.parametrize("normalize", [True, False])
def test_scores_are_the_twins(files, twin, normalize):
    scorer = CslmScorer(files / "exact.safetensors", "cpu", normalize=normalize)
    contexts, owner, words = requests(scorer, 50, 20)
    expected = []
    for row, word in zip(owner, words, strict=True):
        unit = twin.units(contexts[row])[word]
        expected.append(unit - twin.log_sum(contexts[row]) if normalize else unit)
    found = scorer.score(contexts, owner, words)
    assert found.dtype == np.float32
    assert np.allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("name", ["exact.safetensors", "bare.safetensors"])
def test_unknown_words_share_the_probability_of_their_class(files, name):
    contexts, owner, words = requests(CslmScorer(files / name, "cpu"), 50, 20)
    words[::3] = UNK
    whole, share = (
        CslmScorer(files / name, "cpu", unknown_score=how).score(contexts, owner, words) for how in CSLM_UNKNOWN
    )
    assert np.allclose(share[words == UNK], whole[words == UNK] - math.log(5), atol=1e-6)
    assert np.array_equal(share[words != UNK], whole[words != UNK])


@pytest.mark.parametrize("normalize", [True, False])
def test_a_score_does_not_depend_on_the_others(large, normalize):
    """A score is identical for any number of rows, order of contexts and number of threads."""
    scorer = CslmScorer(large, "cpu", normalize=normalize)
    contexts, owner, words = requests(scorer, 1500, 2 * ROWS + 77)
    whole = scorer.score(contexts, owner, words)
    assert np.array_equal(CslmScorer(large, "cpu", 3, normalize).score(contexts, owner, words), whole)
    rng = np.random.default_rng(2)
    order = rng.permutation(len(contexts))
    place = np.argsort(order)[owner]
    by_place = np.argsort(place, kind="stable")
    again = scorer.score(contexts[order], place[by_place].astype(np.int32), words[by_place])
    assert np.array_equal(again, whole[by_place])
    for number in (1, 2, 3, 100, ROWS, ROWS + 1):
        rows = rng.choice(len(words), number)
        alone = scorer.score(contexts[owner[rows]], np.arange(number, dtype=np.int32), words[rows])
        assert np.array_equal(alone, whole[rows])


def test_exact_probabilities_sum_to_one(large):
    scorer = CslmScorer(large, "cpu")
    contexts = requests(scorer, 1, 3)[0]
    classes = scorer.end + 1
    found = scorer.score(contexts, np.repeat(np.arange(3, dtype=np.int32), classes), np.tile(np.arange(classes), 3))
    assert np.allclose(np.exp(found.astype(np.float64)).reshape(3, -1).sum(1), 1, atol=1e-4)


def test_both_engines_agree(large):
    for normalize in (True, False):
        scorer = CslmScorer(large, "cpu", normalize=normalize)
        asked = requests(scorer, 3 * CUDA_ROWS // 2, CUDA_ROWS + 100)
        other = CudaEngine(load_model(large).model, normalize).score(*asked)
        assert np.allclose(scorer.score(*asked), other, atol=2e-4)


@NEEDS_GPU
@pytest.mark.parametrize("normalize", [True, False])
def test_gpu_equals_cpu(large, normalize):
    asked = requests(CslmScorer(large, "cpu"), 3 * CUDA_ROWS // 2, CUDA_ROWS + 100)
    here, there = (CslmScorer(large, device, normalize=normalize).score(*asked) for device in ("cpu", "cuda"))
    assert there == pytest.approx(here, abs=2e-4)


def test_nothing_asked(files):
    scorer = CslmScorer(files / "exact.safetensors", "cpu")
    nothing = np.zeros(0, np.int32)
    assert scorer.score(np.zeros((0, 3), np.int32), nothing, nothing).shape == (0,)
    assert scorer.score(np.zeros((2, 3), np.int32), nothing, nothing).shape == (0,)


# text


def sentence(twin, line):
    return twin.sentence(VOCABULARY.ids(line.split()).tolist(), 4, VOCABULARY.eos)


def test_scores_of_sentences(files, twin):
    lines = ["le chat dort", "", "la mer voit le chien et dort", "<s> </s>"]
    found = list(sentence_scores(CslmScorer(files / "exact.safetensors", "cpu"), lines))
    assert found == pytest.approx([sentence(twin, line) for line in lines], abs=1e-5)


def test_self_normalised_models_are_scored_bare(files, tmp_path, twin):
    (tmp_path / "in").write_text("0 ||| le chat ||| LM0= 1 ||| 1\n")
    rnnsmt.networks.rescore([[files / "bare.safetensors"]], tmp_path / "in", tmp_path / "out")
    found = float((tmp_path / "out").read_text().split("CSLM0= ")[1].split()[0])
    bare = CslmScorer(files / "bare.safetensors", "cpu", normalize=False)
    assert found == pytest.approx(next(sentence_scores(bare, ["le chat"])), abs=1e-5)
    assert found != pytest.approx(sentence(twin, "le chat"), abs=1e-5)


def test_rescore(files, twin, tmp_path):
    lines = [
        "0 ||| le chat  ||| LM0= -3.5 WordPenalty0= -2 ||| -1.5 ||| 0-0=0-1",
        "0 ||| la mer ||| LM0= -4 WordPenalty0= -2 ||| -1.75",
        "3 |||  ||| LM0= -4 WordPenalty0= 0 ||| -2",
    ]
    (tmp_path / "in").write_text("".join(f"{line}\n" for line in lines))
    command = ["networks", "rescore", "--model", files / "exact.safetensors", "--nbest", tmp_path / "in", "--output"]
    assert main([str(part) for part in [*command, tmp_path / "out"]]) == 0
    for before, after in zip(lines, (tmp_path / "out").read_text().splitlines(), strict=True):
        old, new = before.split("|||"), after.split("|||")
        assert [old[i] for i in range(len(old)) if i != 2] == [new[i] for i in range(len(new)) if i != 2]
        *others, name, value = new[2].split()
        assert (others, name) == (old[2].split(), "CSLM0=")
        assert float(value) == pytest.approx(sentence(twin, old[1]), abs=1e-5)
    # a rescored list cannot be rescored again
    assert main([str(part) for part in [*command[:5], tmp_path / "out", "--output", tmp_path / "twice"]]) == 2
    assert not (tmp_path / "twice").exists()


# perplexity

ARPA = """\\data\\
ngram 1=8
ngram 2=3

\\1-grams:
-1.2\t<unk>
-99\t<s>\t-0.3
-0.9\t</s>
-0.6\tle\t-0.2
-0.8\tchat\t-0.1
-1.1\tchien
-0.7\tdort
-1.0\tzut

\\2-grams:
-0.2\t<s> le
-0.4\tle chat
-0.5\tle chien

\\end\\
"""


def bigram(before, word):
    """Return log10 p of a bigram in the model above."""
    two = {("<s>", "le"): -0.2, ("le", "chat"): -0.4, ("le", "chien"): -0.5}
    one = {"</s>": -0.9, "le": -0.6, "chat": -0.8, "chien": -1.1, "dort": -0.7, "zut": -1.0}
    back = {"<s>": -0.3, "le": -0.2, "chat": -0.1}
    return two.get((before, word), back.get(before, 0.0) + one.get(word, -1.2))


def expected_events(lines, shortlist):
    """Return expected ln p of the words; words outside the shortlist share the mass of chien, zut and <unk>."""
    found = []
    for line in lines:
        before = "<s>"
        for word in [*line, "</s>"]:
            if word in shortlist or word == "</s>":
                found.append(bigram(before, word) * math.log(10))
            else:
                every = {"le", "chat", "chien", "dort", "zut", "<unk>"}
                mass = sum(10 ** bigram(before, other) for other in every - set(shortlist))
                if shortlist == ["le"]:  # many more words outside than on it: 1 minus the others
                    mass = 1 - 10 ** bigram(before, "le") - 10 ** bigram(before, "</s>")
                found.append(math.log(mass))
            before = word
    return found


@pytest.mark.parametrize("shortlist", [WORDS, ["le"], ["le", "chat", "chien", "dort", "zut"]])
def test_events_of_an_ngram_model(tmp_path, shortlist):
    (tmp_path / "lm").write_text(ARPA)
    lines = [["le", "chat", "dort"], ["le", "chien", "voit", "le", "zut"], []]
    found = event_scores(load_automaton(tmp_path / "lm"), lines, shortlist)
    assert found == pytest.approx(expected_events(lines, shortlist), rel=1e-5)


def test_markers_in_a_text_are_unknown_words(tmp_path):
    (tmp_path / "lm").write_text(ARPA)
    lm = load_automaton(tmp_path / "lm")
    found = [event_scores(lm, [["le", word, "le"]], WORDS) for word in ("nowhere", "</s>", "<s>")]
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


def test_little_mass_outside_the_shortlist(tmp_path):
    """A small mass outside the shortlist is summed directly; 1 minus the other probabilities would be inaccurate."""
    words = [f"w{i}" for i in range(12)]
    lines = ["\\data\\", "ngram 1=16", "", "\\1-grams:", f"{math.log10(0.9999999):.7f}\tle", "-99\t<s>", "-9.0\t</s>"]
    lines += ["-9.0\t<unk>", *(f"-9.0\t{word}" for word in words), "", "\\end\\", ""]
    (tmp_path / "lm").write_text("\n".join(lines))
    found = event_scores(load_automaton(tmp_path / "lm"), [["w3"]], ["le"])
    assert found[0] == pytest.approx(math.log(13e-9), abs=1e-4)


def test_perplexity(files, twin, tmp_path):
    (tmp_path / "lm").write_text(ARPA)
    lines = ["le chat dort", "le chien dort et le chien", ""]
    (tmp_path / "in").write_text("".join(f"{line}\n" for line in lines))
    for model in ("exact.safetensors", "bare.safetensors"):
        command = ["networks", "perplexity", "--model", files / model, "--input", tmp_path / "in"]
        command += ["--compare", tmp_path / "lm", "--output", tmp_path / "r.json"]
        assert main([str(part) for part in command]) == 0
        report = json.loads((tmp_path / "r.json").read_text())
        assert (report["sentences"], report["words"], report["oov"]) == (3, 9, 2)
        total = sum(sentence(twin, line) for line in lines)
        assert report["cslm"]["perplexity"] == pytest.approx(math.exp(-total / 12), rel=1e-5)
        others = expected_events([line.split() for line in lines], WORDS)
        assert report["ngram"]["perplexity"] == pytest.approx(math.exp(-sum(others) / 12), rel=1e-5)
        known = [i for i in range(12) if i not in (5, 9)]
        without = math.exp(-sum(others[i] for i in known) / 10)
        assert report["ngram"]["perplexity_without_oov"] == pytest.approx(without, rel=1e-5)
        assert report["cslm"]["perplexity_without_oov"] != report["cslm"]["perplexity"]
        scorer = CslmScorer(files / model, normalize=True)
        ids = [scorer.ids(line.split()) for line in lines]
        own, _ = ngram_scores(scorer, [sentence_ngrams(ids, scorer.order - 1, scorer.end)])
        mixture = [(math.exp(a) + math.exp(b)) / 2 for a, b in zip(own.tolist(), others, strict=True)]
        assert report["mixture"]["perplexity"] == pytest.approx(math.exp(-np.log(mixture).mean()), rel=1e-5)
        assert ("ln Z" in report) == (model == "bare.safetensors")
    history = [VOCABULARY.ids(line.split()).tolist() for line in lines]
    log_sums = []
    for ids in history:
        padded = [0, 0, 0, *ids]
        log_sums += [twin.log_sum(padded[i : i + 3]) for i in range(len(ids) + 1)]
    assert report["ln Z"]["mean"] == pytest.approx(np.mean(log_sums), abs=1e-4)


def test_agrees_with_the_ngram_model_of_real_text(multi30k_tok, tmp_path):
    """The log-probability equals KenLM's if the shortlist has all words of the LM, so that only <unk> is outside."""
    with lzma.open(multi30k_tok / "val.fr.xz", "rt") as file:
        lines = file.read().splitlines()[:300]
    (tmp_path / "train").write_text("\n".join(lines[:200]) + "\n")
    lm = tmp_path / "lm.arpa"
    assert main(["lm", "estimate", "--input", str(tmp_path / "train"), "--order", "3", "--output", str(lm)]) == 0
    counts = Counter(word for line in lines[:200] for word in line.split())
    found = event_scores(load_automaton(lm), [line.split() for line in lines[200:]], list(counts))
    model = kenlm.Model(str(lm))
    assert found.sum() == pytest.approx(sum(model.score(line) for line in lines[200:]) * math.log(10), rel=1e-5)


# invalid input


def refused(capfd, stage, *said):
    lines = [
        line for line in capfd.readouterr().err.splitlines() if line.startswith(f"rnnsmt networks {stage}: error:")
    ]
    assert len(lines) == 1
    for part in said:
        assert part in lines[0]


@pytest.mark.parametrize("stage", ["rescore", "perplexity"])
def test_bad_models(files, tmp_path, stage, capfd):
    (tmp_path / "in").write_text("0 ||| le ||| LM0= 1 ||| 1\n")
    content = (files / "exact.safetensors").read_bytes()
    (tmp_path / "cut.safetensors").write_bytes(content[: len(content) // 2])
    torch.save({"format": "rnnsmt-cslm-2"}, tmp_path / "pickle.safetensors")
    save_file({"a": torch.zeros(1)}, tmp_path / "other.safetensors")
    option = "--nbest" if stage == "rescore" else "--input"
    said = {
        "none.safetensors": "no such file",
        "cut.safetensors": "is not a complete safetensors file",
        "pickle.safetensors": "networks of version 1.0.0 cannot be read",
        "other.safetensors": "is not a complete file of a network",
    }
    for name, reason in said.items():
        command = ["networks", stage, "--model", tmp_path / name, option, tmp_path / "in", "--output"]
        assert main([str(part) for part in [*command, tmp_path / "out"]]) == 2
        refused(capfd, stage, name, reason)
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("le chat\n", "line 1: expected `number ||| text"),
        ("0 ||| le ||| LM0= 1 ||| 1\nx ||| le ||| LM0= 1 ||| 1\n", "line 2: expected `number ||| text"),
        ("0 ||| le ||| LM0= 1\n", "line 1: expected `number ||| text"),
        ("0 ||| le ||| CSLM0= 1 ||| 1\n", "line 1: already has the feature CSLM0"),
    ],
)
def test_bad_nbest_lists(files, tmp_path, capfd, text, said):
    (tmp_path / "in").write_text(text)
    command = ["networks", "rescore", "--model", files / "exact.safetensors", "--nbest", tmp_path / "in", "--output"]
    assert main([str(part) for part in [*command, tmp_path / "out"]]) == 2
    refused(capfd, "rescore", said)
    assert list(tmp_path.iterdir()) == [tmp_path / "in"]


def test_bad_texts(files, tmp_path, capfd):
    (tmp_path / "empty").write_text("")
    (tmp_path / "latin").write_bytes(b"le\nd\xe9j\xe0\n")
    (tmp_path / "lm").write_text("nonsense\n")
    base = ["networks", "perplexity", "--model", files / "exact.safetensors", "--output", tmp_path / "out", "--input"]
    for options, said in (
        ([tmp_path / "empty"], "no lines"),
        ([tmp_path / "latin"], "line 2: not UTF-8"),
        ([tmp_path / "none"], "no such file"),
    ):
        assert main([str(part) for part in [*base, *options]]) == 2
        refused(capfd, "perplexity", said)
    (tmp_path / "in").write_text("le\n")
    assert main([str(part) for part in [*base, tmp_path / "in", "--compare", tmp_path / "lm"]]) == 2
    refused(capfd, "perplexity", "lm")
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there(files):
    with pytest.raises(InputError, match="finds no GPU"):
        CslmScorer(files / "exact.safetensors", "cuda")
