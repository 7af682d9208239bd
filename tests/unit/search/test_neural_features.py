"""Several neural features in one search, one of them with source words: against exhaustive enumeration.

The second feature is a joint model in plain Python that implements only the interface. It has pseudo-random scores of
(last two target words, three source words around the affiliated one, word).
"""

import random
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from rnnsmt.moses.ini import Feature, MosesIni
from rnnsmt.search import neural
from rnnsmt.search.decoder import decode
from rnnsmt.search.kernels.cells import context_of_feature
from rnnsmt.search.kernels.neural_store import ASKED, CONTEXTS, ENTRIES
from rnnsmt.search.kernels.records import Work
from rnnsmt.search.model import SearchModel, load_model
from rnnsmt.search.nbest import Derivations
from rnnsmt.search.neural import FeatureText, NeuralFeature, NeuralLM
from rnnsmt.search.options import SearchOptions
from rnnsmt.search.phrase_pairs import TranslationOptions

from .test_neural import UNLIMITED, HashedScorer
from .twin import SOURCE, TinyModel, derivations, features, path_of, tiny_model

Path3 = list[tuple[int, int, tuple[str, ...]]]


def joint_score(history: tuple[str, ...], window: tuple[str, ...], word: str) -> float:
    return -4 * random.Random(str((history, window, word))).random()


def window_at(words: list[str], place: int) -> tuple[str, ...]:
    line = ["<s>", *words, "</s>", "</s>"]
    return tuple(line[place : place + 3])


def affiliated(start: int, length: int, word: int) -> int:
    """Return the source position of a target word: the first of the phrase for even words, the last for odd ones."""
    return start + (length - 1 if word % 2 else 0)


def joint_feature(words: list[str], path: Path3) -> float:
    """Return the value of the joint model for a derivation, by the definition."""
    history, total = ("", ""), 0.0
    for start, end, target in path:
        for number, word in enumerate(target):
            total += joint_score(history, window_at(words, affiliated(start, end - start + 1, number)), word)
            history = (history[1], word)
    return total + joint_score(history, window_at(words, len(words)), "</s>")


class JointModel(NeuralFeature):
    """The joint model as a feature of the search; rows of its cache are (window, last two words) as ids of strings."""

    by_source = True

    def __init__(self, name: str) -> None:
        super().__init__(name, 3, 0)
        self.words = {"": 0}
        self.windows: dict[tuple[str, ...], int] = {(): 0}
        self.rows = {(0, 0, 0): 0}
        self.known: dict[tuple[int, int], int] = {}

    def prepare(self, looked_up: TranslationOptions, sentences):
        classes = [self.words.setdefault(word, len(self.words)) for word in looked_up.words]
        lengths = {
            int(source): length + 1
            for spans in looked_up.spans
            for length, column in enumerate(spans.T)
            for source in column[column >= 0]
        }
        numbers = [
            [self.windows.setdefault(window_at(sentence.split(), k), len(self.windows)) for k in range(99)]
            for sentence in sentences
        ]
        return np.array(classes)[looked_up.targets.words], lengths, numbers

    def _row(self, *values: int) -> int:
        number = self.rows.setdefault(values, len(self.rows))
        self.store.contexts[number] = values
        self.store.counts[CONTEXTS] = len(self.rows)
        return number

    def _entry(self, context: int, window: int, word: int) -> tuple[int, int]:
        """Return the entry of a word, and the context after it."""
        _, *history = self.store.contexts[context].tolist()
        row = self._row(window, *history)
        after = self._row(0, history[1], word)
        number = self.known.setdefault((row, word), len(self.known))
        if number == self.store.counts[ENTRIES]:
            self.store.entries[number] = (row << 32) | word, np.nan, after
            self.store.counts[ENTRIES] += 1
        return number, after

    def _phrase(self, context: int, row: int, start: int, sentence: int, text: FeatureText) -> tuple[list[int], int]:
        words, lengths, windows = text.prepared
        bounds, phrase = text.looked_up.targets.bounds, text.looked_up.target_of[row]
        entries = []
        for number, word in enumerate(words[bounds[phrase] : bounds[phrase + 1]]):
            place = affiliated(start, lengths[int(text.looked_up.source_of[row])], number)
            entry, context = self._entry(context, windows[sentence][place], int(word))
            entries.append(entry)
        return entries, context

    def _end(self, context: int, sentence: int, text: FeatureText) -> int:
        words = int((text.looked_up.spans[sentence][:, 0] > -9).sum())
        number = self.words.setdefault("</s>", len(self.words))
        return self._entry(context, text.prepared[2][sentence][words], number)[0]

    def gather(self, feature: int, sentence: int, work: Work, requests: int, text: FeatureText, last: bool) -> None:
        self.reserve(2 * work.entries.shape[1])
        for number in range(requests):
            request = work.phrases[number]
            before = int(context_of_feature.py_func(work, request["context"], feature))
            row = int(text.ranked.row[request["option"]])
            entries, context = self._phrase(before, row, int(request["start"]), sentence, text)
            if last:
                entries.append(self._end(context, sentence, text))
            assert request["first"] + len(entries) == work.phrases[number + 1]["first"]
            work.entries[feature, request["first"] : request["first"] + len(entries)] = entries
            work.end_contexts[feature, number] = context
            self.store.counts[ASKED] += len(entries)

    def enter(self, derivations: Derivations, rows: np.ndarray, sentences: np.ndarray, text: FeatureText) -> np.ndarray:
        self.reserve(20 * len(rows) + 2 * len(sentences))
        places, entries = [], []
        for d, sentence in enumerate(sentences.tolist()):
            places.append(len(sentences) + 1 + len(entries))
            context = 0
            for k in range(derivations.offsets[d], derivations.offsets[d + 1]):
                more, context = self._phrase(context, int(rows[k]), int(derivations.starts[k]), sentence, text)
                entries += more
            entries.append(self._end(context, sentence, text))
        return np.array([*places, len(sentences) + 1 + len(entries), *entries], np.int32)

    def forget(self) -> None:
        if self.full():
            self.rows, self.known = {(0, 0, 0): 0}, {}
        super().forget()

    def score(self, contexts: np.ndarray, owner: np.ndarray, words: np.ndarray) -> np.ndarray:
        names, windows = list(self.words), list(self.windows)
        rows = [(windows[w], (names[a], names[b])) for w, a, b in contexts.tolist()]
        asked = zip(owner.tolist(), words.tolist(), strict=True)
        return np.array([joint_score(rows[o][1], rows[o][0], names[w]) for o, w in asked], np.float32)


class Bigrams(HashedScorer):
    """Another neural LM with a lower order and other scores."""

    order = 2

    def one(self, context: tuple[int, ...], word: int) -> float:
        return -3 * random.Random(str(("bigram", context[-1], word))).random()


MORE: dict[str, Callable[[str], NeuralFeature]] = {
    "joint": JointModel,
    "bigrams": lambda name: NeuralLM(name, Bigrams()),
}


def _loaded(
    directory: Path, monkeypatch: pytest.MonkeyPatch, seed: int, weights: dict[str, float], limit: int = 6
) -> tuple[TinyModel, SearchModel, np.ndarray]:
    """Return a tiny model, the same with further neural features, and its weights."""
    monkeypatch.setitem(neural.LOADERS, "CSLM", lambda name, path, options, network: NeuralLM(name, HashedScorer()))
    tiny = tiny_model(directory, seed, limit)
    ini = MosesIni.read(directory / "moses.ini")
    if "CSLM" in weights:
        (directory / "model.safetensors").touch()
        ini.features.append(Feature("CSLM", "CSLM0", {"name": "CSLM0", "path": "model.safetensors"}))
        ini.weights["CSLM0"] = [weights["CSLM"]]
    model = load_model(ini)
    vector = model.weights(ini)
    for name, make in MORE.items():
        if name in weights:
            model.neural.append(make(name))
            model.columns[name] = np.array([len(model.feature_names)])
            model.feature_names.append(f"{name}:0")
            vector = np.append(vector, weights[name])
    return tiny, model, vector


def _values(tiny: TinyModel, words: list[str], path: Path3) -> dict[str, float]:
    """Return all features of a derivation by name, including neural ones."""
    found = {f"{name}:{k}": v for name, vs in features(tiny, words, path).items() for k, v in enumerate(vs)}
    text = [word for *_, target in path for word in target]
    bigrams = Bigrams()
    line = [0, *bigrams.ids(text).tolist(), bigrams.end]
    found["bigrams:0"] = sum(bigrams.one((a,), b) for a, b in pairwise(line))
    return found | {"CSLM0:0": HashedScorer().text(text), "joint:0": joint_feature(words, path)}


def _sentences(seed: int, count: int, longest: int) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices(SOURCE, weights=[3, 3, 3, 1], k=rng.randint(1, longest))) for _ in range(count)]


@pytest.mark.parametrize(
    ("seed", "limit", "weights"),
    [
        (1, 6, {"CSLM": 0.4, "bigrams": 0.7}),
        (2, 2, {"CSLM": 0.4, "joint": 1.5}),
        (3, 6, {"joint": 0.8}),
        (4, 6, {"CSLM": 0.3, "joint": 0.5, "bigrams": -0.2}),
    ],
)
def test_the_combined_models_best_is_found(tmp_path, monkeypatch, seed, limit, weights):
    tiny, model, vector = _loaded(tmp_path, monkeypatch, seed, weights, limit)
    sentences = _sentences(seed, 4, 4)
    for sentence, result in zip(sentences, decode(model, sentences, vector, UNLIMITED), strict=True):
        best: dict[str, float] = {}
        for path in derivations(tiny, sentence.split()):
            values = _values(tiny, sentence.split(), path)
            score = sum(weight * values[name] for weight, name in zip(vector, model.feature_names, strict=True))
            text = " ".join(word for *_, target in path for word in target)
            best[text] = max(score, best.get(text, -np.inf))
        ranked = sorted(best.values(), reverse=True)[:50]
        assert result.score == pytest.approx(ranked[0], abs=1e-4)
        assert result.nbest.scores == pytest.approx(ranked, abs=1e-4)
        assert [best[text] for text in result.nbest.texts] == pytest.approx(ranked, abs=1e-4)


def test_features_are_those_of_the_derivations(tmp_path, monkeypatch):
    """Features equal those of the derivations for any number of sentences in flight and cache size."""
    weights = {"CSLM": 0.4, "joint": 0.6}
    tiny, _, _ = _loaded(tmp_path, monkeypatch, 5, weights)
    sentences = ["", *_sentences(5, 12, 7)]
    expected = None
    for in_flight, threads, limit in [(64, 1, 1 << 20), (3, 2, 1 << 20), (2, 1, 20)]:
        monkeypatch.setattr(neural, "MAX_ENTRIES", limit)
        _, model, vector = _loaded(tmp_path, monkeypatch, 5, weights)
        options = SearchOptions(nbest=5, in_flight=in_flight, threads=threads, pop_limit=100, cslm_cells=30)
        results = decode(model, sentences, vector, options)
        found = [(result.text, result.score, result.nbest.texts) for result in results]
        expected = expected or found
        assert found == expected
        assert all((feature.scored_before > 0) == (limit == 20) for feature in model.neural)
        for sentence, result in zip(sentences, results, strict=True):
            for text, phrases, row in zip(result.nbest.texts, result.nbest.phrases, result.nbest.features, strict=True):
                values = _values(tiny, sentence.split(), path_of(text, phrases))
                assert row == pytest.approx([values[name] for name in model.feature_names], abs=1e-4)


def test_a_feature_of_weight_0_changes_nothing(tmp_path, monkeypatch):
    sentences = _sentences(6, 10, 7)
    options = SearchOptions(nbest=5, pop_limit=100, cslm_cells=30)
    outcomes = []
    for weights in ({"CSLM": 0.4}, {"CSLM": 0.4, "joint": 0.0}):
        _, model, vector = _loaded(tmp_path, monkeypatch, 6, weights)
        results = decode(model, sentences, vector, options)
        outcomes.append([(result.text, result.nbest.texts) for result in results])
    assert outcomes[0] == outcomes[1]
