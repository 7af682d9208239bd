"""The joint model: equations and gradient against independent implementations, training, scores, disambiguation."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rnnsmt  # noqa: E402
from rnnsmt.cli import main  # noqa: E402
from rnnsmt.networks.data import UNK  # noqa: E402
from rnnsmt.networks.devices import DeviceSetup  # noqa: E402
from rnnsmt.networks.draws import Draws  # noqa: E402
from rnnsmt.networks.feed_forward import FeedForwardLM, loss_and_gradient  # noqa: E402
from rnnsmt.networks.text_scores import word_scores  # noqa: E402
from rnnsmt.networks.training import Training  # noqa: E402
from rnnsmt.nnjm.examples import Examples  # noqa: E402
from rnnsmt.nnjm.model import load_model  # noqa: E402
from rnnsmt.nnjm.scorer import JointScorer  # noqa: E402
from rnnsmt.nnjm.settings import DEMO, PRESETS, JointSizes  # noqa: E402
from rnnsmt.nnjm.training import draw_pairs, nnjm_task  # noqa: E402

from ..overriding import overridden  # noqa: E402

torch.set_num_threads(1)
CPU = DeviceSetup(torch.device("cpu"))
SIZES = JointSizes(vocabulary=7, source_vocabulary=6, order=3, window=1, projection=4, hidden_1=5, hidden_2=6)
TINY = ["--projection", "8", "--hidden-1", "16", "--hidden-2", "12", "--batch", "64", "--window", "3", "--epochs", "6"]


def equations(model, row):
    """Return ln p of every class after the inputs ``row``, unit by unit in float64."""
    value = {name: parameter.detach().double().numpy() for name, parameter in model.named_parameters()}
    f = np.tanh if model.sizes.activation == "tanh" else lambda a: np.maximum(a, 0)
    x = np.concatenate([value["R"][i] for i in row])
    g = f(value["W_2"] @ f(value["W_1"] @ x + value["b_1"]) + value["b_2"])
    units = value["W_o"] @ g + value["b_o"]
    return units - np.log(np.exp(units).sum())


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_equations(activation):
    model = FeedForwardLM(replace(SIZES, activation=activation), seed=1, spread=0.7)
    rows = torch.randint(0, SIZES.inputs, (5, SIZES.context), generator=torch.Generator().manual_seed(2))
    for row in rows.tolist():
        expected = equations(model, row)
        got = model.log_probability(torch.tensor([row] * 7), torch.arange(7)).detach().numpy()
        np.testing.assert_allclose(got, expected, atol=1e-5)
        assert np.exp(expected).sum() == pytest.approx(1)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("rate", [0.0, 0.4])
def test_gradient_is_that_of_finite_differences(activation, rate):
    model = FeedForwardLM(replace(SIZES, activation=activation), seed=1, spread=0.7).double()
    generator = torch.Generator().manual_seed(3)
    contexts = torch.randint(0, SIZES.inputs, (9, SIZES.context), generator=generator)
    words = torch.randint(0, 7, (9,), generator=generator)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)

    def loss():
        sums = loss_and_gradient(model, contexts, words, None, 0.1, Draws(torch.arange(9), 5, rate))
        return float(sums[0] + 0.1 * sums[1])

    loss()
    gradients = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
    rng = np.random.default_rng(4)
    for name, parameter in model.named_parameters():
        flat = parameter.data.view(-1)
        for place in rng.integers(0, len(flat), 6):
            before = float(flat[place])
            flat[place] = before + 1e-6
            above = loss()
            flat[place] = before - 1e-6
            below = loss()
            flat[place] = before
            assert float(gradients[name].view(-1)[place]) == pytest.approx((above - below) / 2e-6, rel=1e-4, abs=1e-6)


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    """Create a toy language in which the word three before ``bank`` decides between `rive` and `banque`.

    The preceding target word is always `la`, so that a language model of the target side cannot decide.
    """
    directory = tmp_path_factory.mktemp("toy")
    rng = np.random.default_rng(1)
    lines = []
    for _ in range(900):
        river = rng.random() < 0.5
        source = ["river" if river else "money", "then", "the", "bank", *["so"] * rng.integers(0, 3)]
        target = ["puis", "la", "rive" if river else "banque", *["ainsi"] * (len(source) - 4)]
        links = ["1-0", "2-1", "3-2", *[f"{k}-{k - 1}" for k in range(4, len(source))]]
        lines.append((" ".join(source), " ".join(target), " ".join(links)))
    for name, part in zip(("source", "target", "links"), zip(*lines, strict=True), strict=True):
        (directory / name).write_text("".join(f"{line}\n" for line in part))
    assert main(preparation(directory, 20)) == 0
    assert main(training(directory, directory / "out")) == 0
    return directory


def preparation(directory, vocab_size):
    """Return the command that makes the training data of the texts in a directory."""
    files = ["--source", directory / "source", "--target", directory / "target", "--alignment", directory / "links"]
    line = ["networks", "prepare", "--network", "nnjm", *files, "--vocab-size", vocab_size]
    return [str(part) for part in [*line, "--output-dir", directory / "examples"]]


def training(toy, out, *options):
    """Return the command of a training run."""
    files = [
        "--output-model",
        out / "m.safetensors",
        "--output-history",
        out / "h.json",
        "--checkpoint-dir",
        out / "checkpoint",
    ]
    line = ["networks", "train", "--network", "nnjm", "--data", toy / "examples", "--preset", "demo", *TINY, *files]
    return overridden(line, options)


def test_a_word_outside_the_phrase_decides(toy):
    examples, scorer = Examples.open(toy / "examples"), JointScorer(toy / "out/m.safetensors", "cpu", normalize=True)
    places = np.flatnonzero(np.isin(examples.target.words, scorer.ids(["rive", "banque"])))
    contexts, words = examples.inputs(places, scorer.order, scorer.window), examples.target.words[places]
    assert np.exp(word_scores(scorer, contexts, words)).min() > 0.8
    # without the deciding word in the window, both translations are equally likely
    contexts[:, 0] = scorer.first_source
    assert 0.3 < np.exp(word_scores(scorer, contexts, words)).mean() < 0.7


def test_evidence_names_the_word_that_decides(toy):
    scorer = JointScorer(toy / "out/m.safetensors", "cpu", normalize=True)
    source, target = ["river", "then", "the", "bank", "so"], ["puis", "la", "rive", "ainsi"]
    affiliated = np.array([1, 2, 3, 4])
    log_p, falls = scorer.evidence(source, affiliated, target)
    row = [0, 0, 0, *scorer.ids(target).tolist()]
    contexts = np.concatenate([scorer.windows(source)[affiliated], [row[i : i + 3] for i in range(4)]], 1)
    direct = scorer.score(contexts.astype(np.int32), np.arange(4, dtype=np.int32), scorer.ids(target))
    assert log_p == pytest.approx(direct, abs=1e-6)
    assert falls.shape == (4, 5) and falls[2, 0] > 10 * np.abs(falls[2, 1:]).max()
    assert falls[3, 0] == 0, "outside the window of three words"
    contexts[2, 0] = scorer.first_source + UNK  # river, three words to the left of bank
    without = scorer.score(contexts[2:3].astype(np.int32), np.zeros(1, np.int32), scorer.ids(["rive"]))
    assert falls[2, 0] == pytest.approx(float(direct[2] - without[0]), abs=1e-6)


def test_perplexity(toy, tmp_path):
    line = ["networks", "perplexity", "--model", toy / "out/m.safetensors", "--input", toy / "examples"]
    assert main([str(part) for part in [*line, "--output", tmp_path / "p.json"]]) == 0
    report = json.loads((tmp_path / "p.json").read_text())
    examples, model = Examples.open(toy / "examples"), load_model(toy / "out/m.safetensors").model
    rows = torch.from_numpy(examples.inputs(np.arange(len(examples)), 4, 3))
    words = torch.from_numpy(np.array(examples.target.words)).long()
    direct = model.log_probability(rows, words).double()
    assert report["nnjm"]["perplexity"] == pytest.approx(float(torch.exp(-direct.mean())), rel=1e-5)
    assert report["oov"] == 0
    assert abs(report["ln Z"]["mean"]) < 0.3


def test_the_functions_write_what_the_commands_write(toy, tmp_path):
    texts = [(toy / name).read_text().splitlines() for name in ("source", "target", "links")]
    links = [[tuple(map(int, link.split("-"))) for link in line.split()] for line in texts[2]]
    rnnsmt.networks.prepare("nnjm", texts[1], tmp_path / "examples", source=texts[0], alignment=links, vocab_size=20)
    for path in (toy / "examples").iterdir():
        assert path.read_bytes() == (tmp_path / "examples" / path.name).read_bytes()
    report = rnnsmt.networks.perplexity(toy / "out/m.safetensors", toy / "examples", tmp_path / "p.json")
    assert json.loads((tmp_path / "p.json").read_text()) == report
    assert report.figures["words"] == report["words"]


def test_scores_do_not_depend_on_the_batch(toy):
    examples, scorer = Examples.open(toy / "examples"), JointScorer(toy / "out/m.safetensors", "cpu")
    places = np.arange(600)
    contexts = np.unique(examples.inputs(places, scorer.order, scorer.window).astype(np.int32), axis=0)
    owner, words = np.arange(len(contexts), dtype=np.int32), np.full(len(contexts), 3, np.int32)
    together = scorer.score(contexts, owner, words)
    alone = [scorer.score(row[None], np.zeros(1, np.int32), words[:1])[0] for row in contexts]
    assert together.tolist() == alone
    threads = JointScorer(toy / "out/m.safetensors", "cpu", threads=2)
    assert threads.score(contexts, owner, words).tolist() == alone


def test_windows_are_those_of_training(toy):
    examples, scorer = Examples.open(toy / "examples"), JointScorer(toy / "out/m.safetensors", "cpu")
    begins, ids = examples.target.offsets, examples.affiliations
    for number, line in enumerate((toy / "source").read_text().splitlines()[:50]):
        places = np.arange(begins[number], begins[number + 1])
        expected = examples.inputs(places, scorer.order, scorer.window)[:, : scorer.width]
        assert scorer.windows(line.split())[ids[places]].tolist() == expected.tolist()


@pytest.mark.parametrize("normalize", [True, False])
def test_windows_computed_once_give_the_same_scores(toy, normalize):
    examples, scorer = Examples.open(toy / "examples"), JointScorer(toy / "out/m.safetensors", "cpu", 2, normalize)
    contexts = np.unique(examples.inputs(np.arange(600), scorer.order, scorer.window).astype(np.int32), axis=0)
    owner = np.repeat(np.arange(len(contexts), dtype=np.int32), 3)
    words = np.random.default_rng(1).integers(1, len(scorer.vocabulary), len(owner)).astype(np.int32)
    windows, window_of = np.unique(contexts[:, : scorer.width], axis=0, return_inverse=True)
    window_of, histories = window_of.reshape(-1), contexts[:, scorer.width :]
    assert len(windows) < len(contexts)
    shared = scorer.score_windows(windows, window_of, histories, owner, words)
    assert shared.tolist() == scorer.score(contexts, owner, words).tolist()
    assert scorer.score_windows(windows, window_of, histories, owner[:0], words[:0]).tolist() == []


ARPA = """\\data\\
ngram 1=8

\\1-grams:
-2\t<unk>
-99\t<s>
-1\t</s>
-1\tpuis
-1\tla
-1\trive
-1\tbanque
-1\tainsi

\\end\\
"""


@pytest.fixture(scope="module")
def system(toy, tmp_path_factory):
    """Create a system for the toy language in which both translations of ``bank`` have the same scores."""
    directory = tmp_path_factory.mktemp("system")
    (directory / "lm.arpa").write_text(ARPA)
    pairs = [
        ("river then", "puis", 1, "1-0"),
        ("money then", "puis", 1, "1-0"),
        ("the", "la", 1, "0-0"),
        ("so", "ainsi", 1, "0-0"),
    ]
    pairs += [("bank", word, 0.5, "0-0") for word in ("rive", "banque")]
    lines = [f"{s} ||| {t} ||| {p} {p} {p} {p} ||| {links} ||| 1 1 1 |||" for s, t, p, links in pairs]
    (directory / "phrase-table").write_text("".join(f"{line}\n" for line in lines))
    (directory / "nnjm.safetensors").write_bytes((toy / "out/m.safetensors").read_bytes())
    for name, more in (("without", []), ("with", ["--network", "nnjm=nnjm.safetensors", "--unknown", "nnjm=word"])):
        files = ["--phrase-table", "phrase-table", "--reordering-table", "none", "--lm", "lm.arpa", "--lm-order", "1"]
        line = [
            "moses",
            "write-ini",
            "--model-dir",
            str(directory),
            *files,
            *more,
            "--output",
            f"{directory}/{name}.ini",
        ]
        assert main(line) == 0
    (directory / "in").write_text("river then the bank so\nmoney then the bank so\n\nmoney then the bank\n")
    (directory / "reference").write_text("puis la rive ainsi\npuis la banque ainsi\n\npuis la banque\n")
    return directory


def test_the_search_translates_by_a_word_outside_the_phrase(system, tmp_path):
    outputs = {}
    for name in ("without", "with"):
        files = ["--input", system / "in", "--output", tmp_path / name, "--nbest-file", tmp_path / f"{name}.nbest"]
        line = ["search", "decode", "--ini", system / f"{name}.ini", *files, "--nbest", 20]
        assert main([str(part) for part in line]) == 0
        outputs[name] = (tmp_path / name).read_text()
    assert outputs["with"] == (system / "reference").read_text()
    first, second, *_ = outputs["without"].splitlines()
    assert first == second, "nothing else tells them apart"
    scorer = JointScorer(system / "nnjm.safetensors", "cpu", unknown_score="word")
    for line in (tmp_path / "with.nbest").read_text().splitlines():
        number, text, values, _, segments = line.split(" ||| ")
        # every target word of this table is affiliated with the last word of its phrase
        sources = (system / "in").read_text().splitlines()[int(number)].split()
        places = [int(segment.split("=")[0].split("-")[-1]) for segment in segments.split()]
        row = [0, 0, 0, *scorer.ids(text.split()).tolist(), scorer.end]
        histories = np.array([row[i - 3 : i] for i in range(3, len(row))], np.int32)
        contexts = np.concatenate([scorer.windows(sources)[[*places, len(sources)]], histories], 1)
        expected = scorer.score(contexts, np.arange(len(contexts), dtype=np.int32), np.array(row[3:], np.int32)).sum()
        assert float(values.split("NNJM0= ")[1].split()[0]) == pytest.approx(expected, abs=1e-3)


def test_tuning_with_a_joint_model(system, tmp_path):
    files = ["--source", system / "in", "--reference", system / "reference"]
    outputs = [
        "--output-ini",
        tmp_path / "ini",
        "--output-history",
        tmp_path / "h.json",
        "--checkpoint-dir",
        tmp_path / "s",
    ]
    line = ["tuning", "tune", "--ini", system / "with.ini", *files, *outputs, "--seed", 1, "--iterations", 2]
    assert main([str(part) for part in line]) == 0
    history = json.loads((tmp_path / "h.json").read_text())
    weights = dict(zip(history["features"], history["iterations"][-1]["weights"], strict=True))
    assert weights["NNJM0:0"] > 0


def test_held_out_examples_are_whole_sentences(toy):
    examples = Examples.open(toy / "examples")
    trainer = Training(nnjm_task(examples, replace(DEMO, held_out_least=100), 1, CPU))
    assert 100 <= trainer.task.validation.number < 120
    pairs = draw_pairs(examples.target, 100, 1)
    assert trainer.task.ngrams.held_out.tolist() == examples.target.places(pairs).tolist()
    ends = examples.target.words[trainer.task.ngrams.held_out] == examples.target_vocabulary.eos
    assert ends.sum() == len(pairs) and ends[-1]
    assert not set(next(trainer.task.batches).tolist()) & set(trainer.task.ngrams.held_out.tolist())


@pytest.mark.parametrize("pairs", [1, 2])
def test_one_sentence_pair_remains_for_training(tmp_path, pairs):
    """A fraction of one long sentence is a whole sentence, which is not held out if there is no other."""
    line = " ".join(f"w{k}" for k in range(40)) + "\n"
    for name in ("source", "target"):
        (tmp_path / name).write_text(line * pairs)
    (tmp_path / "links").write_text("0-0 1-1\n" * pairs)
    assert main(preparation(tmp_path, 50)) == 0
    assert main(training(tmp_path, tmp_path / "out", "--epochs", "2")) == 0
    history = json.loads((tmp_path / "out/h.json").read_text())
    assert history["validation ngrams"] == 41 * (pairs - 1)
    assert len(history["curve"]) == 2
    assert ("validation perplexity" in history["curve"][-1]) == (pairs > 1)


def test_words_that_no_training_sentence_has_are_unknown_in_validation(tmp_path):
    lines = [f"a w{k} b\n" for k in range(40)]
    for name in ("source", "target"):
        (tmp_path / name).write_text("".join(lines))
    (tmp_path / "links").write_text("0-0 1-1 2-2\n" * 40)
    assert main(preparation(tmp_path, 100)) == 0
    trainer = Training(
        nnjm_task(Examples.open(tmp_path / "examples"), replace(DEMO, held_out_least=10, held_out=0.1), 1, CPU)
    )
    first_source = trainer.task.model.sizes.vocabulary
    seen = torch.cat(trainer.task.validation.contexts)
    # every word w of a held-out sentence occurs only once in the text and is UNK on its side
    assert (seen == first_source + 1).any() and (seen == 1).any()
    ngrams = trainer.task.ngrams
    trained = np.unique(ngrams.rows(np.setdiff1d(np.arange(ngrams.number), ngrams.held_out)))
    assert set(seen.flatten().tolist()) <= {1, first_source + 1, *trained.tolist()}


def test_killed_training_ends_like_an_uninterrupted_one(toy, tmp_path):
    command = [sys.executable, "-m", "rnnsmt", *training(toy, tmp_path, "--save-every", "0.01")]
    (tmp_path / "checkpoint").mkdir()
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}) as process:
        for _ in range(2000):
            if any((tmp_path / "checkpoint").iterdir()) or process.poll() is not None:
                break
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert main(training(toy, tmp_path)) == 0
    for name in ("m.safetensors", "h.json"):
        assert (tmp_path / name).read_bytes() == (toy / "out" / name).read_bytes()


def test_paper_sizes_are_those_of_devlin():
    sizes = PRESETS["paper"].sizes(16_000, 16_000)
    assert (sizes.context, sizes.projection, sizes.hidden_1, sizes.hidden_2) == (14, 192, 512, 512)
    count = 32_000 * 192 + 512 * (14 * 192 + 1) + 512 * 513 + 16_000 * 513
    assert sizes.count() == count == sum(p.numel() for p in FeedForwardLM(sizes, seed=None).parameters())
