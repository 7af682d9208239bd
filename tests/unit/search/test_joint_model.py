"""The joint model in the search: against exhaustive enumeration; affiliations from the phrase table."""

import random
import re
from pathlib import Path

import numpy as np
import pytest

from rnnsmt.formats.ini import Feature, MosesIni
from rnnsmt.search import neural
from rnnsmt.search.decoder import decode, features_of_derivations, translations
from rnnsmt.search.features import CslmFeature, NnjmFeature
from rnnsmt.search.model import SearchModel, binarize, load_model
from rnnsmt.search.nbest import Translation
from rnnsmt.search.neural import JointFeature, NeuralLM
from rnnsmt.search.options import SearchOptions
from rnnsmt.search.phrase_pairs import load_phrase_table
from rnnsmt.search.sentence_search import SentenceSearch
from rnnsmt.search.translation_options import look_up

from .test_neural import UNLIMITED, HashedScorer
from .twin import SOURCE, TARGET, TinyModel, derivations, features, path_of, tiny_model

Links = set[tuple[int, int]]
Path3 = list[tuple[int, int, tuple[str, ...]]]
Pairs = dict[tuple[str, str], list[int]]


def affiliations(links: Links, sources: int, targets: int) -> list[int]:
    """Return the source position that every target word is affiliated with, by the definition."""
    linked = {j: sorted(i for i, k in links if k == j) for j in range(targets)}
    middle = {j: places[(len(places) - 1) // 2] for j, places in linked.items() if places}
    if not middle:
        return [min(j, sources - 1) for j in range(targets)]
    return [middle[min(middle, key=lambda k: (abs(k - j), -k))] for j in range(targets)]


def with_links(path: Path, seed: int) -> Pairs:
    """Write random links into a phrase table, and return the affiliations of its pairs."""
    rng, found, lines = random.Random(seed), {}, []
    for line in path.read_text().splitlines():
        source, target, scores, *_ = line.split(" ||| ")
        sources, targets = len(source.split()), len(target.split())
        links = {(i, j) for i in range(sources) for j in range(targets) if rng.random() < 0.4}
        found[source, target] = affiliations(links, sources, targets)
        shuffled = [f"{i}-{j}" for i, j in rng.sample(sorted(links), len(links))]
        text = " ".join([*shuffled, *shuffled[:1]])  # a link may occur twice
        lines.append(f"{source} ||| {target} ||| {scores}" + (f" ||| {text} ||| 1 1 1 |||" if links else ""))
    path.write_text("".join(f"{line}\n" for line in lines))
    return found


class HashedJoint:
    """Model with pseudo-random probabilities of (three source words, two preceding words, word)."""

    order, width = 3, 3
    padding, unknown = 0, 1

    def __init__(self) -> None:
        self.words = ["", "", *TARGET[:3], ""]
        self.end = len(self.words) - 1
        self.asked: list[tuple[int, ...]] = []

    def ids(self, words: list[str]) -> np.ndarray:
        return np.array([self.words.index(w) if w in TARGET[:3] else 1 for w in words], np.int32)

    def windows(self, words: list[str]) -> np.ndarray:
        ids = [10, *(10 + SOURCE.index(w) if w in SOURCE else 20 for w in words), 30, 30]
        return np.array([ids[i : i + 3] for i in range(len(words) + 1)], np.int32)

    def one(self, window: tuple[int, ...], history: tuple[int, ...], word: int) -> float:
        return -4 * random.Random(str((window, history, word))).random()

    def score_windows(
        self, windows: np.ndarray, window_of: np.ndarray, histories: np.ndarray, owner: np.ndarray, words: np.ndarray
    ) -> np.ndarray:
        assert (np.diff(owner) >= 0).all()
        grams = [
            (windows[window_of[o]].tolist(), histories[o].tolist(), int(w)) for o, w in zip(owner, words, strict=True)
        ]
        self.asked += [(*window, *history, word) for window, history, word in grams]
        return np.array([self.one(tuple(window), tuple(history), word) for window, history, word in grams], np.float32)

    def derivation(self, words: list[str], path: Path3, pairs: Pairs) -> float:
        """Return the value of the feature for a derivation, by the definition."""
        windows = [tuple(window) for window in self.windows(words).tolist()]
        history, total = (0, 0), 0.0
        for start, end, target in path:
            places = pairs.get((" ".join(words[start : end + 1]), " ".join(target)), [0] * len(target))
            for place, word in zip(places, self.ids(list(target)).tolist(), strict=True):
                total += self.one(windows[start + place], history, word)
                history = (history[1], word)
        return total + self.one(windows[len(words)], history, self.end)


class Loaded:
    """Tiny model with a joint model and, if it has a weight, a CSLM."""

    def __init__(
        self, directory: Path, seed: int, weights: dict[str, float], limit: int = 6, two_lms: bool = False
    ) -> None:
        self.tiny: TinyModel = tiny_model(directory, seed, limit, two_lms=two_lms)
        self.pairs = with_links(directory / "phrase-table", seed)
        ini = MosesIni.read(directory / "moses.ini")
        (directory / "model.safetensors").touch()
        for kind, weight in weights.items():
            ini.features.append(Feature(kind, f"{kind}0", {"name": f"{kind}0", "path": "model.safetensors"}))
            ini.weights[f"{kind}0"] = [weight]
        ini.write(directory / "neural.ini")
        self.ini = MosesIni.read(directory / "neural.ini")

    def model(self) -> SearchModel:
        return load_model(self.ini)

    def values(self, words: list[str], path: Path3) -> dict[str, float]:
        """Return all features of a derivation by name."""
        found = {f"{name}:{k}": v for name, vs in features(self.tiny, words, path).items() for k, v in enumerate(vs)}
        text = [word for *_, target in path for word in target]
        joint = HashedJoint().derivation(words, path, self.pairs)
        return found | {"CSLM0:0": HashedScorer().text(text), "NNJM0:0": joint}

    def check_lists(self, model: SearchModel, sentences: list[str], results: list[Translation]) -> None:
        """Check the features of the n-best lists against those computed from the segmentations."""
        for sentence, result in zip(sentences, results, strict=True):
            for text, phrases, row in zip(result.nbest.texts, result.nbest.phrases, result.nbest.features, strict=True):
                values = self.values(sentence.split(), path_of(text, phrases))
                assert row == pytest.approx([values[name] for name in model.feature_names], rel=1e-5, abs=1e-4)


@pytest.fixture(autouse=True)
def _hashed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CslmFeature, "load", lambda self, name, *_: NeuralLM(name, HashedScorer()))
    monkeypatch.setattr(NnjmFeature, "load", lambda self, name, *_: JointFeature(name, HashedJoint()))


def _sentences(seed: int, count: int, longest: int) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices(SOURCE, weights=[3, 3, 3, 1], k=rng.randint(1, longest))) for _ in range(count)]


def _figures(results: list[Translation]) -> list[tuple[object, ...]]:
    return [(r.text, r.score, r.nbest.texts, r.nbest.scores.tolist(), r.nbest.features.tolist()) for r in results]


@pytest.mark.parametrize(
    ("seed", "limit", "weights", "two_lms"),
    [
        (1, 6, {"NNJM": 0.8}, False),
        (2, 2, {"NNJM": 1.5}, True),
        (3, 6, {"CSLM": 0.4, "NNJM": 0.7}, False),
        (4, 0, {"NNJM": 0.9, "CSLM": -0.3}, True),
        (5, 6, {"NNJM": -0.4}, False),
    ],
)
def test_the_combined_models_best_is_found(tmp_path, seed, limit, weights, two_lms):
    loaded = Loaded(tmp_path, seed, weights, limit, two_lms)
    model = loaded.model()
    vector = model.weights(loaded.ini)
    sentences = _sentences(seed, 4, 4)
    for sentence, result in zip(sentences, decode(model, sentences, vector, UNLIMITED), strict=True):
        best: dict[str, float] = {}
        for path in derivations(loaded.tiny, sentence.split()):
            values = loaded.values(sentence.split(), path)
            score = sum(weight * values[name] for weight, name in zip(vector, model.feature_names, strict=True))
            text = " ".join(word for *_, target in path for word in target)
            best[text] = max(score, best.get(text, -np.inf))
        ranked = sorted(best.values(), reverse=True)[:50]
        assert result.score == pytest.approx(ranked[0], abs=1e-4)
        assert result.nbest.scores == pytest.approx(ranked, abs=1e-4)
        assert [best[text] for text in result.nbest.texts] == pytest.approx(ranked, abs=1e-4)


@pytest.mark.parametrize("weights", [{"NNJM": 0.6}, {"CSLM": 0.4, "NNJM": 0.6}, {"NNJM": 0.0}])
def test_features_are_those_of_the_derivations(tmp_path, monkeypatch, weights):
    """Features of n-best lists equal those of their derivations for any number of sentences, threads and cache size."""
    loaded = Loaded(tmp_path, 5, weights)
    sentences = ["", *_sentences(5, 12, 7), " ".join(_sentences(6, 12, 6))]
    expected = None
    for in_flight, threads, limit in [(64, 1, 1 << 20), (3, 2, 1 << 20), (2, 1, 20), (1, 3, 1)]:
        monkeypatch.setattr(neural, "MAX_ENTRIES", limit)
        monkeypatch.setattr(neural, "_FIRST", 16)
        model = loaded.model()
        options = SearchOptions(nbest=5, in_flight=in_flight, threads=threads, pop_limit=100, cslm_cells=30)
        for _ in ("cold", "warm"):
            results = decode(model, sentences, model.weights(loaded.ini), options)
            expected = expected or _figures(results)
            assert _figures(results) == expected
        assert (model.neural[0].scored_before > 0) == (limit < 1000)
    loaded.check_lists(model, sentences, results)
    given = [(result.text, result.phrases) for result in results]
    again = features_of_derivations(model, sentences, given)
    assert again == pytest.approx(np.stack([result.features for result in results]), abs=1e-9)


def test_a_feature_of_weight_0_changes_nothing(tmp_path):
    sentences = _sentences(6, 10, 7)
    options = SearchOptions(nbest=5, pop_limit=100, cslm_cells=30)
    for other in ({}, {"CSLM": 0.4}):
        outcomes = []
        for weights in (other, other | {"NNJM": 0.0}):
            loaded = Loaded(tmp_path, 6, weights)
            model = loaded.model()
            results = decode(model, sentences, model.weights(loaded.ini), options)
            outcomes.append([(result.text, result.nbest.texts) for result in results])
        assert outcomes[0] == outcomes[1]


def test_an_ngram_is_scored_once(tmp_path):
    """An n-gram is scored once for all sentences, texts and calls with the same source window."""
    loaded = Loaded(tmp_path, 9, {"NNJM": 0.5})
    model, sentences = loaded.model(), _sentences(9, 30, 9)
    weights, options = model.weights(loaded.ini), SearchOptions(nbest=5)
    decode(model, sentences, weights, options)
    scorer, counts = model.neural[0].scorer, model.neural[0].counts()
    assert len(scorer.asked) == len(set(scorer.asked)) == counts.scored < counts.requested
    decode(model, sentences[::-1], weights, options)
    assert model.neural[0].counts()[1:] == counts[1:]


def test_the_contexts_of_the_store_are_bounded(tmp_path, monkeypatch):
    """A store that is not full is not doubled by an eighth of n-grams, with two contexts each."""
    monkeypatch.setattr(neural, "MAX_ENTRIES", 7 << 7)
    for kind, contexts in (("CSLM", 7 << 7), ("NNJM", 6 << 7)):
        feature = Loaded(tmp_path, 8, {kind: 0.5}).model().neural[0]
        feature.store = feature._empty(8 << 7)
        counts = feature.store.counts
        for counts[neural.ENTRIES], counts[neural.CONTEXTS], is_full in (
            (100, contexts + 2, True),
            ((7 << 7) + 1, 500, True),
            (100, contexts + 1, False),
        ):
            assert feature.full() == is_full
        feature.reserve(1 << 7)
        assert len(feature.store.entries) == 8 << 7


def test_windows_of_earlier_texts_are_given_up(tmp_path, monkeypatch):
    loaded = Loaded(tmp_path, 8, {"NNJM": 0.5})
    sentences, options = _sentences(8, 20, 9), SearchOptions(nbest=5)
    model = loaded.model()
    weights = model.weights(loaded.ini)
    expected = _figures(decode(model, sentences, weights, options))
    monkeypatch.setattr("rnnsmt.search.neural.MAX_WINDOWS", 20)
    found, sizes = [], []
    for sentence in sentences:
        found += _figures(decode(model, [sentence], weights, options))
        sizes.append(len(model.neural[0]._numbers))
    assert found == expected
    assert max(sizes[1:]) <= 20 + 10


def test_searches_at_the_same_time_have_stores_of_their_own(tmp_path, monkeypatch):
    """Stores are emptied and windows discarded while the other search is in progress; their limit is divided."""
    loaded = Loaded(tmp_path, 8, {"CSLM": 0.3, "NNJM": 0.5})
    texts, options = [_sentences(seed, 12, 9) for seed in (8, 9)], SearchOptions(nbest=5, in_flight=2)
    model = loaded.model()
    weights = model.weights(loaded.ini)
    expected = [_figures(decode(model, text, weights, options)) for text in texts]
    monkeypatch.setattr(neural, "MAX_ENTRIES", 40)
    monkeypatch.setattr(neural, "MAX_WINDOWS", 20)
    searches = [translations(SentenceSearch(model, look_up(model, text), weights, options)) for text in texts]
    found = zip(*zip(*searches, strict=True), strict=True)
    assert [_figures(list(results)) for results in found] == expected
    assert [feature.share for feature in model.neural] == [2, 2]


@pytest.mark.parametrize("two_lms", [False, True])
def test_a_binary_model_gives_the_same(tmp_path, capsys, two_lms):
    loaded = Loaded(tmp_path, 7, {"CSLM": 0.3, "NNJM": 0.6}, two_lms=two_lms)
    sentences, options = _sentences(7, 10, 7), SearchOptions(nbest=10)
    weights = loaded.model().weights(loaded.ini)
    expected = _figures(decode(loaded.model(), sentences, weights, options))
    plain = MosesIni.read(tmp_path / "moses.ini")
    # a file built without alignments is not used; one with alignments also serves models without a joint model
    path = binarize(plain, None, None)[0][0]
    size = path.stat().st_size
    capsys.readouterr()
    assert _figures(decode(loaded.model(), sentences, weights, options)) == expected
    assert f"warning: {path}: has no word alignment of the phrase pairs" in capsys.readouterr().err
    binarize(loaded.ini, None, None)
    assert path.stat().st_size > size
    model = loaded.model()
    assert str(path) in Path("/proc/self/maps").read_text()
    assert _figures(decode(model, sentences, weights, options)) == expected
    load_model(plain)
    assert "warning" not in capsys.readouterr().err


def test_affiliations_of_a_large_table(tmp_path):
    """Affiliations of a table larger than the initial arrays are right, including lines without links."""
    rng, lines, expected = random.Random(1), [], {}
    for number in range(9000):
        sources, targets = rng.randint(1, 6), rng.randint(1, 7)
        source = " ".join([f"s{number % 3000}"] + ["x"] * (sources - 1))
        target = " ".join([f"t{number}"] + ["y"] * (targets - 1))
        links = {(rng.randrange(sources), rng.randrange(targets)) for _ in range(rng.randint(0, 8))}
        expected[source, target] = affiliations(links, sources, targets)
        field = "" if not links and rng.random() < 0.5 else f" ||| {' '.join(f'{i}-{j}' for i, j in links)} |||"
        lines.append(f"{source} ||| {target} ||| 0.5{field}\n")
    (tmp_path / "table").write_text("".join(lines))
    for sentences in (None, [f"s{k} x x x" for k in range(0, 3000, 7)]):
        table = load_phrase_table(tmp_path / "table", 1, sentences, links=True)
        sources, targets = ([phrase.decode() for phrase in side.strings()] for side in (table.sources, table.targets))
        places, bounds = table.affiliations.places.tolist(), table.affiliations.bounds.tolist()
        assert len(bounds) == len(table.source_of) + 1 > 800 and places == places[: bounds[-1]]
        for row, (s, t) in enumerate(zip(table.source_of.tolist(), table.target_of.tolist(), strict=True)):
            assert places[bounds[row] : bounds[row + 1]] == expected[sources[s], targets[t]]
    assert load_phrase_table(tmp_path / "table", 1, None).affiliations is None


def test_two_joint_models_are_refused(tmp_path):
    loaded = Loaded(tmp_path, 1, {"NNJM": 0.5})
    text = (tmp_path / "neural.ini").read_text()
    (line,) = re.findall(r"(?m)^NNJM name.*\n", text)
    text = text.replace(line, line + line.replace("NNJM0", "NNJM1")) + "NNJM1= 0.5\n"
    (tmp_path / "neural.ini").write_text(text)
    with pytest.raises(Exception, match="2 features of type NNJM"):
        load_model(MosesIni.read(tmp_path / "neural.ini"))
    assert loaded.pairs
