"""Decoding: the Python interface of the search.

``load_model`` once, then ``decode`` as often as weights change. Sentences are searched independently, on several threads
if asked for; results do not depend on the number of threads.
"""

import math
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from rnnsmt.io import InputError
from rnnsmt.search import kernels
from rnnsmt.search.arrays import Inventory, Settings, Work, new_work
from rnnsmt.search.model import SearchModel, load_model
from rnnsmt.search.nbest import NBest, best_path, kbest
from rnnsmt.search.options import Prepared, prepare, weighted
from rnnsmt.search.paths import path_features

MAX_WORDS = 4000
"""A longer line is refused: nobody means it, and its search would need gigabytes."""

__all__ = ["NBest", "SearchOptions", "Translation", "decode", "load_model"]


@dataclass(frozen=True)
class SearchOptions:
    """How wide to search.

    Attributes:
        pop_limit: cells taken from the cubes of one stack.
        stack_size: hypotheses that a stack keeps (histogram pruning).
        beam_threshold: hypotheses worse than this factor times the best of the stack are dropped (Moses' default).
        threads: sentences searched at the same time.
        nbest: distinct translations per sentence to extract; 0 for none.
        lookahead: how far, in units of LM log-probability, an edge's first real score may exceed its estimate: edges
            are opened that much earlier. ``math.inf`` opens all.
    """

    pop_limit: int = 1000
    stack_size: int = 1000
    beam_threshold: float = 1e-5
    threads: int = 1
    nbest: int = 0
    lookahead: float = math.inf


@dataclass
class Translation:
    """The best translation of one sentence.

    Attributes:
        text: words joined by single spaces; empty for an empty sentence.
        score: weights times ``features``.
        features: ``float64`` [F].
        phrases: (first source word, last source word, number of target words) in the order of the translation.
        nbest: distinct translations, best first; empty when none were asked for.
        unknown: source words passed through.
    """

    text: str
    score: float
    features: np.ndarray
    phrases: list[tuple[int, int, int]]
    nbest: NBest
    unknown: int = 0


class Decoder:
    """One set of weights over prepared sentences; keeps one workspace per thread."""

    def __init__(self, model: SearchModel, prepared: Prepared, weights: np.ndarray, options: SearchOptions) -> None:
        self.model, self.prepared, self.weights, self.options = model, prepared, weights, options
        self.inventory: Inventory = weighted(model, prepared, weights)
        distortion = model.columns.get("Distortion")
        lm_weight = float(weights[model.columns["LM"][0]])
        self.settings = Settings(
            lm_weight,
            float(weights[distortion[0]]) if distortion is not None else 0.0,
            model.distortion_limit,
            options.pop_limit,
            options.stack_size,
            math.log(options.beam_threshold) if options.beam_threshold > 0 else -math.inf,
            options.lookahead * abs(lm_weight) if lm_weight and math.isfinite(options.lookahead) else math.inf,
            model.lm.start,
            model.lm.end,
            int(options.nbest > 0),
        )
        places = np.full(8, -1, np.int64)
        for kind, at in (("LexicalReordering", slice(0, 6)), ("Distortion", slice(6, 7)), ("LM", slice(7, 8))):
            if kind in model.columns:
                places[at] = model.columns[kind]
        self.places = places
        self._local = threading.local()
        self.counts = np.zeros(9, np.int64)
        self._lock = threading.Lock()

    def work_for(self, words: int) -> Work:
        """The calling thread's workspace, large enough for a sentence of so many words."""
        size, work = getattr(self._local, "work", (0, None))
        if work is None or size < words:
            size = max(words, 40, min(2 * size, MAX_WORDS))
            options = self.options
            work = new_work(
                size,
                self.model.longest,
                self.settings.distortion_limit + 1,
                options.pop_limit,
                options.stack_size,
                options.nbest > 0,
            )
            self._local.work = (size, work)
        return work

    def features(self, rows: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Feature values ``float64`` [F] of a derivation: rows of pairs and their source spans (``int32`` each)."""
        out = np.zeros(len(self.weights))
        prepared, lm = self.prepared, self.model.lm
        path_features(
            rows, starts, ends, lm.arrays, lm.start, lm.end, prepared.targets.bounds, prepared.targets.lm_words,
            prepared.target_of, prepared.static, prepared.reordering, self.places, out,
        )  # fmt: skip
        return out

    def text(self, rows: np.ndarray) -> str:
        """The words of a derivation."""
        targets, words = self.prepared.targets, self.prepared.words
        out: list[str] = []
        for row in rows:
            phrase = self.prepared.target_of[row]
            out += [words[w] for w in targets.words[targets.bounds[phrase] : targets.bounds[phrase + 1]]]
        return " ".join(out)

    def sentence(self, number: int) -> Translation:
        """Translate one of the prepared sentences."""
        spans = self.prepared.spans[number]
        nothing = NBest([], np.zeros((0, len(self.weights))), np.zeros(0), [])
        if len(spans) == 0:
            return Translation("", 0.0, np.zeros(len(self.weights)), [], nothing)
        work = self.work_for(len(spans))
        before = work.counts.copy()
        best = kernels.search_sentence(spans, self.model.lm.arrays, self.inventory, work, self.settings)
        options, starts, ends = best_path(work, int(best))
        rows = self.inventory.row[options]
        features = self.features(rows, starts, ends)
        nbest = kbest(self, work, len(spans)) if self.options.nbest else nothing
        with self._lock:
            self.counts += work.counts - before
        sizes = np.diff(self.prepared.targets.bounds)[self.prepared.target_of[rows]]
        phrases = list(zip(starts.tolist(), ends.tolist(), sizes.tolist(), strict=True))
        return Translation(
            self.text(rows), float(features @ self.weights), features, phrases, nbest, self.prepared.unknown[number]
        )


def decode(
    model: SearchModel, sentences: list[str], weights: np.ndarray, options: SearchOptions | None = None
) -> list[Translation]:
    """Translate tokenised sentences.

    Args:
        weights: ``float64`` [F] in the order of ``model.feature_names``.

    Raises:
        InputError: a weight is not finite, their number is wrong, or a sentence has more than ``MAX_WORDS`` words.
    """
    options = options or SearchOptions()
    weights = np.ascontiguousarray(weights, np.float64)
    if weights.shape != (len(model.feature_names),):
        raise InputError(f"{weights.size} weights for {len(model.feature_names)} features")
    if not np.isfinite(weights).all():
        raise InputError(f"the weight of {model.feature_names[int(np.argmin(np.isfinite(weights)))]} is not finite")
    for number, sentence in enumerate(sentences, 1):
        if len(sentence) > 2 * MAX_WORDS and len(sentence.split()) > MAX_WORDS:
            raise InputError(f"sentence {number} has more than {MAX_WORDS} words; split it")
    decoder = Decoder(model, _prepared(model, sentences), weights, options)
    if options.threads <= 1:
        return [decoder.sentence(number) for number in range(len(sentences))]
    with ThreadPoolExecutor(options.threads) as pool:
        return list(pool.map(decoder.sentence, range(len(sentences))))


def _prepared(model: SearchModel, sentences: list[str]) -> Prepared:
    """Look the sentences up, or take them from the last call when they are the same (MERT)."""
    last = model.cache.get("prepared")
    if isinstance(last, tuple) and last[0] == sentences:
        return last[1]
    prepared = prepare(model, sentences)
    model.cache["prepared"] = (list(sentences), prepared)
    return prepared
