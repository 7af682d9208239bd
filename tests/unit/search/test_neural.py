"""A neural LM in the search: against exhaustive enumeration, and independence of caches, threads and batches."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rnnsmt.cli import main
from rnnsmt.formats.ini import Feature, MosesIni
from rnnsmt.search import neural
from rnnsmt.search.decoder import decode
from rnnsmt.search.features import CslmFeature
from rnnsmt.search.kernels.neural_choice import choose_for_neural
from rnnsmt.search.lockstep import LockstepSearch
from rnnsmt.search.model import SearchModel, load_model
from rnnsmt.search.nbest import Translation
from rnnsmt.search.neural import NeuralLM
from rnnsmt.search.options import SearchOptions
from rnnsmt.search.sentence_search import LEAST_ROOM, SentenceSearch
from rnnsmt.search.translation_options import look_up

from ..gpu import NEEDS_GPU
from .twin import SOURCE, TARGET, TinyModel, derivations, features, tiny_model

UNLIMITED = SearchOptions(pop_limit=20000, stack_size=20000, beam_threshold=0.0, margin=1e9, nbest=50, cslm_cells=20000)
ORDER = 4


class HashedScorer:
    """Model with pseudo-random probabilities of n-grams; counts the requests."""

    order = ORDER
    padding, unknown = 0, 1

    def __init__(self) -> None:
        self.words = ["", "", *TARGET[:3], ""]
        self.end = len(self.words) - 1
        self.asked: list[tuple[int, ...]] = []

    def ids(self, words: list[str]) -> np.ndarray:
        return np.array([self.words.index(w) if w in TARGET[:3] else 1 for w in words], np.int32)

    def one(self, context: tuple[int, ...], word: int) -> float:
        return -4 * random.Random(str((context, word))).random()

    def score(self, contexts: np.ndarray, owner: np.ndarray, words: np.ndarray) -> np.ndarray:
        assert (np.diff(owner) >= 0).all()
        grams = [tuple(contexts[o].tolist()) for o in owner]
        self.asked += [(*gram, int(word)) for gram, word in zip(grams, words, strict=True)]
        return np.array([self.one(g, int(w)) for g, w in zip(grams, words, strict=True)], np.float32)

    def text(self, words: list[str]) -> float:
        """Return log p of a sentence, by the definition."""
        line = [0] * (ORDER - 1) + self.ids(words).tolist() + [self.end]
        return sum(self.one(tuple(line[i - ORDER + 1 : i]), line[i]) for i in range(ORDER - 1, len(line)))


@pytest.fixture
def loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[TinyModel, SearchModel, MosesIni]]:
    """Return a function that creates a tiny model with a neural LM of a given weight."""
    monkeypatch.setattr(CslmFeature, "load", lambda self, name, *_: NeuralLM(name, HashedScorer()))

    def load(seed: int, weight: float, limit: int = 6) -> tuple[TinyModel, SearchModel, MosesIni]:
        tiny = tiny_model(tmp_path, seed, limit)
        ini = MosesIni.read(tiny.directory / "moses.ini")
        (tiny.directory / "model.safetensors").touch()
        ini.features.append(Feature("CSLM", "CSLM0", {"name": "CSLM0", "path": "model.safetensors"}))
        ini.weights["CSLM0"] = [weight]
        ini.write(tiny.directory / "neural.ini")
        ini = MosesIni.read(tiny.directory / "neural.ini")
        return tiny, load_model(ini), ini

    return load


def _sentences(seed: int, count: int, longest: int) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices(SOURCE, weights=[3, 3, 3, 1], k=rng.randint(1, longest))) for _ in range(count)]


def _exhaustive(tiny: TinyModel, words: list[str], ini: MosesIni, scorer: HashedScorer) -> dict[str, float]:
    best: dict[str, float] = {}
    for path in derivations(tiny, words):
        found = features(tiny, words, path)
        text = [w for _, _, target in path for w in target]
        found["CSLM0"] = [scorer.text(text)]
        score = sum(w * f for name, ws in ini.weights.items() for w, f in zip(ws, found[name], strict=True))
        best[" ".join(text)] = max(score, best.get(" ".join(text), -np.inf))
    return best


def _figures(results: list[Translation]) -> list[tuple[object, ...]]:
    return [(r.text, r.score, r.nbest.texts, r.nbest.scores.tolist(), r.nbest.features.tolist()) for r in results]


@pytest.mark.parametrize(
    ("seed", "limit", "weight"), [(1, 6, 0.4), (2, 6, 2.0), (3, 2, 0.1), (4, 0, 1.0), (5, 6, -0.3)]
)
def test_the_combined_models_best_is_found(loaded, seed, limit, weight):
    tiny, model, ini = loaded(seed, weight, limit)
    sentences = _sentences(seed, 4, 5)
    for sentence, result in zip(sentences, decode(model, sentences, model.weights(model.ini), UNLIMITED), strict=True):
        everything = _exhaustive(tiny, sentence.split(), ini, model.neural[0].scorer)
        ranked = sorted(everything.items(), key=lambda item: -item[1])[:50]
        assert result.score == pytest.approx(ranked[0][1], abs=1e-4)
        assert everything[result.text] == pytest.approx(result.score, abs=1e-4)
        assert result.nbest.scores == pytest.approx([score for _, score in ranked], abs=1e-4)
        for text, score in zip(result.nbest.texts, result.nbest.scores, strict=True):
            assert everything[text] == pytest.approx(score, abs=1e-4)


@pytest.mark.parametrize("nbest", [0, 10])
def test_with_weight_0_the_output_is_the_baselines(loaded, nbest):
    tiny, model, _ = loaded(7, 0.0)
    sentences = _sentences(7, 20, 9)
    options = SearchOptions(nbest=nbest)
    plain = load_model(MosesIni.read(tiny.directory / "moses.ini"))
    expected = decode(plain, sentences, plain.weights(plain.ini), options)
    results = decode(model, sentences, model.weights(model.ini), options)
    assert [(r.text, r.nbest.texts) for r in results] == [(r.text, r.nbest.texts) for r in expected]
    assert [r.score for r in results] == pytest.approx([r.score for r in expected], abs=1e-9)
    column = int(model.columns["CSLM"][0])
    for result in results:
        assert result.features[column] == pytest.approx(model.neural[0].scorer.text(result.text.split()), abs=1e-4)


def test_nothing_but_the_ngrams_decides(loaded, monkeypatch):
    """Translations do not depend on the number of sentences in flight, on threads, or on the cache."""
    _, model, ini = loaded(8, 0.5)
    sentences = _sentences(8, 40, 9)
    sentences[3] = ""
    sentences[5:7] = [" ".join(_sentences(1, 20, 6)), " ".join(_sentences(2, 9, 6))]
    expected = None
    for in_flight, threads, limit in [(1, 1, 1 << 20), (7, 1, 1 << 20), (7, 1, 50), (64, 3, 1 << 20), (5, 3, 1)]:
        monkeypatch.setattr(neural, "MAX_ENTRIES", limit)
        monkeypatch.setattr(neural, "_FIRST", 16)
        model = load_model(ini)
        options = SearchOptions(threads=threads, nbest=5, in_flight=in_flight, pop_limit=100, cslm_cells=30)
        for _ in ("cold", "warm"):
            found = _figures(decode(model, sentences, model.weights(model.ini), options))
            expected = expected or found
            assert found == expected
        assert (model.neural[0].scored_before > 0) == (limit < 1000), "emptied when it has grown too large"
    assert found[3][0] == ""


def test_the_store_is_emptied_without_weight_too(loaded, monkeypatch):
    """The cache is emptied also if the weight is 0, since n-best lists contain the feature."""
    monkeypatch.setattr(neural, "MAX_ENTRIES", 20)
    _, model, _ = loaded(8, 0.0)
    sizes = []
    for sentence in _sentences(8, 40, 9):
        decode(model, [sentence], model.weights(model.ini), SearchOptions(nbest=5))
        sizes.append(int(model.neural[0].store.counts[0]))
    assert max(sizes) < 400 < model.neural[0].counts().scored


def test_long_sentences_count_as_several(loaded, monkeypatch):
    """Workspaces hold in_flight times 40 words, or a single longer sentence."""
    _, model, _ = loaded(13, 0.5)
    together = []
    advance = LockstepSearch._advance

    def checked(self, under_way):
        rooms = [workspace.room for workspace in [*(sentence.workspace for sentence in under_way), *self.idle]]
        assert sum(rooms) <= 4 * LEAST_ROOM or len(rooms) == 1
        assert all(sentence.workspace.room >= sentence.words for sentence in under_way)
        together.append(len(under_way))
        advance(self, under_way)

    monkeypatch.setattr(LockstepSearch, "_advance", checked)
    lengths = [5, 5, 45, 5, 300, 5, 161, 5, 5, 5, 5]
    sentences = [" ".join((_sentences(number, 100, 6)[0] + " ") * 300).split() for number in lengths]
    sentences = [" ".join(words[:length]) for words, length in zip(sentences, lengths, strict=True)]
    options = SearchOptions(nbest=0, in_flight=4, pop_limit=20, cslm_cells=10)
    assert len(decode(model, sentences, model.weights(model.ini), options)) == len(sentences)
    assert 1 in together and together[-1] == 4


@pytest.mark.parametrize(
    ("cells", "in_flight", "together"), [(50, 128, 128), (100, 128, 128), (200, 128, 64), (2000, 128, 32), (2000, 4, 4)]
)
def test_fewer_sentences_together_with_many_cells(cells, in_flight, together):
    """The n-grams that sentences in progress add to a full store fit into its last eighth."""
    assert SearchOptions(cslm_cells=cells, in_flight=in_flight).together == together


def test_the_best_cells_are_scored(loaded):
    """The cells with the best scores, using the n-gram LM instead of the neural one, are scored within the beam.

    Half of them are the best of those that the n-gram search would recombine.
    """
    _, model, _ = loaded(8, 0.5)
    search = SentenceSearch(model, look_up(model, ["a b c"]), model.weights(model.ini), SearchOptions())

    def chosen(totals, requests, cells, weight=0.5, beam=-99.0, states=None) -> list[float]:
        work, number = search.new_work(40, search.new_scratch()), len(totals)
        work.cells[:number], work.hypotheses[0], work.edges[0] = 0, 0, 0
        work.cells["total"][:number], work.cells["lm_request"][:number] = totals, range(number)
        work.lm_requests["total"][:number] = requests
        work.lm_requests["state"][:number] = states or range(number)
        constants = search.constants._replace(cslm_cells=cells, neural_weight=weight, beam=beam)
        kept, _, _ = choose_for_neural(number, 0, search.ranked, work, constants)
        return work.cells["total"][:kept].tolist()

    assert chosen([1, 1, 5, 1], [0] * 4, 2) == [1, 5]
    assert chosen([1, 1, 5, 1], [0] * 4, 9) == [1, 1, 5, 1]
    assert chosen([1, 1, 5, 1], [0] * 4, 9, beam=-3.0) == [5]
    assert chosen([1, 1, 5, 1], [0] * 4, 3, beam=-3.0) == [5]
    assert chosen([1, 2, 3], [9, 0, 1], 1, 1.0) == [1]
    assert chosen([1, 2, 3], [9, 0, 1], 1, 0.0) == [3]
    alike = {"totals": [7, 9, 8, 1, 6, 2], "requests": [0] * 6, "states": [4, 4, 4, 5, 5, 6]}
    assert chosen(**alike, cells=1) == [9]
    assert chosen(**alike, cells=2) == [9, 8]
    assert chosen(**alike, cells=3) == [9, 8, 6]
    assert chosen(**alike, cells=4) == [7, 9, 8, 6]
    assert chosen(**alike, cells=5) == [7, 9, 8, 6, 2]
    assert chosen(**alike, cells=6) == [7, 9, 8, 1, 6, 2]
    assert chosen(**alike, cells=5, beam=-5.0) == [7, 9, 8, 6]
    assert chosen([3, 2, 2, 1, 2], [0] * 5, 4, states=[4, 4, 4, 4, 5]) == [3, 2, 2, 2]


def test_an_ngram_is_scored_once(loaded):
    _, model, _ = loaded(9, 0.5)
    sentences = _sentences(9, 30, 9)
    options = SearchOptions(nbest=5)
    decode(model, sentences, model.weights(model.ini), options)
    asked = model.neural[0].scorer.asked
    assert len(asked) == len(set(asked)) == model.neural[0].counts().scored
    assert model.neural[0].counts().requested > len(asked)
    batches = model.neural[0].counts().batches
    decode(model, sentences, model.weights(model.ini), options)
    assert len(asked) == model.neural[0].counts().scored
    assert model.neural[0].counts().batches == batches


def test_fewer_cells_are_scored_on_demand(loaded):
    _, model, _ = loaded(10, 0.5)
    sentences = _sentences(10, 20, 9)
    scores = [
        sum(r.score for r in decode(model, sentences, model.weights(model.ini), SearchOptions(cslm_cells=cells)))
        for cells in (1, 10, 1000)
    ]
    assert scores[0] < scores[1] <= scores[2]


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=NEEDS_GPU)])
def test_decoding_with_a_model_file(tmp_path, capsys, device):
    """Decoding with a network file works on the command line; n-best lists have the network's scores."""
    from rnnsmt.cslm.model import FORMAT
    from rnnsmt.cslm.scorer import CslmScorer
    from rnnsmt.cslm.settings import CslmSizes
    from rnnsmt.networks.data import Vocabulary
    from rnnsmt.networks.feed_forward import FeedForwardLM, TrainedNetwork, save_model

    tiny_model(tmp_path, 12)
    words = Vocabulary(TARGET[:3])
    network = FeedForwardLM(CslmSizes(len(words), 4, 5, 7, 6), seed=3, spread=2.0)
    save_model(tmp_path / "cslm.safetensors", FORMAT, TrainedNetwork(network, words, False, 3, {}))
    ini = [
        "--lm",
        "lm.arpa",
        "--reordering-table",
        "reordering",
        "--phrase-table",
        "phrase-table",
        "--network",
        "cslm=cslm.safetensors",
    ]
    assert (
        main(["moses", "write-ini", "--model-dir", str(tmp_path), *ini, "--output", str(tmp_path / "neural.ini")]) == 0
    )
    (tmp_path / "in").write_text("a b c\n\nd a\n")
    outputs = ["--output", str(tmp_path / "out"), "--nbest", "5", "--nbest-file", str(tmp_path / "nbest")]
    command = ["search", "decode", "--ini", str(tmp_path / "neural.ini"), "--input", str(tmp_path / "in"), *outputs]
    command += ["--device", device]
    assert main([*command, "--report", str(tmp_path / "report.json")]) == 0
    report = json.loads((tmp_path / "report.json").read_text())
    assert 0 < report["ngrams_scored"] < report["ngrams_requested"]
    scorer = CslmScorer(tmp_path / "cslm.safetensors")
    for line in (tmp_path / "nbest").read_text().splitlines():
        _, text, values, *_ = line.split(" ||| ")
        row = [0, 0, 0, *scorer.ids(text.split()).tolist(), scorer.end]
        contexts = np.array([row[i - 3 : i] for i in range(3, len(row))], np.int32)
        expected = scorer.score(contexts, np.arange(len(contexts), dtype=np.int32), np.array(row[3:], np.int32)).sum()
        assert float(values.split("CSLM0= ")[1].split()[0]) == pytest.approx(expected, abs=1e-3)
    (tmp_path / "cslm.safetensors").write_bytes(b"no model")
    assert main(command) == 2
    assert "cslm.safetensors: is not a complete safetensors file" in capsys.readouterr().err
