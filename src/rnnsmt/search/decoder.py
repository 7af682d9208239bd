"""Decoding: the Python interface of the search.

``load_model`` once, then ``decode`` as often as weights change. Sentences are searched independently, on several
threads if asked for; results do not depend on the number of threads.
"""

import math
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rnnsmt.io import InputError, read_lines
from rnnsmt.search.kernels import stack as kernels
from rnnsmt.search.kernels.features import all_features
from rnnsmt.search.lockstep import Flight
from rnnsmt.search.model import SearchModel, load_model
from rnnsmt.search.nbest import Extractor, NBest, Paths, best_path, target_hashes
from rnnsmt.search.records import CELLS, Inventory, Settings, Work, new_work
from rnnsmt.search.table_reader import words_of
from rnnsmt.search.translation_options import Prepared, prepare, weighted

NEURAL_CELLS = 100

MAX_WORDS = 4000
"""A longer line is refused: nobody means it, and its search would need gigabytes."""

__all__ = ["NBest", "SearchOptions", "Translation", "decode", "load_model"]


@dataclass(frozen=True)
class SearchOptions:
    """How wide to search.

    Scores under Moses' tuned weights are about a tenth of log-probabilities, so limits given as probabilities or nats
    are scaled by ``score_scale``: a search does not change when all weights are multiplied by the same number.

    Attributes:
        pop_limit: cells (hypothesis and option) that are scored for one stack.
        stack_size: hypotheses that a stack keeps (histogram pruning).
        beam_threshold: hypotheses worse than this factor times the best of the stack are dropped. None: 1e-5, Moses'
            default, or 1e-7 where n-best lists are wanted, whose lower entries would otherwise be missing.
        threads: sentences searched at the same time.
        nbest: distinct translations per sentence to extract; 0 for none.
        margin: cells whose estimate is more than so many nats below the best estimate of the stack are not scored.
        neural_cells: cells of a stack that a neural LM scores; the others are dropped. Half of them are the best
            without it, half each the best of a group that the search without it would recombine.
        in_flight: sentences of up to 40 words that are searched side by side when there is a neural LM; a longer one
            counts as several.
    """

    pop_limit: int = 1000
    stack_size: int = 1000
    beam_threshold: float | None = None
    threads: int = 1
    nbest: int = 0
    margin: float = 20.0
    neural_cells: int = NEURAL_CELLS
    in_flight: int = 128

    def log_beam(self) -> float:
        """The natural logarithm of the beam threshold."""
        if self.beam_threshold is None:
            return math.log(1e-7 if self.nbest else 1e-5)
        return math.log(self.beam_threshold) if self.beam_threshold > 0 else -math.inf


@dataclass
class Translation:
    """The best translation of one sentence.

    Attributes:
        text: words joined by single spaces; empty for an empty sentence.
        score: weights times ``features``.
        features: ``float64`` [F].
        phrases: (first source word, last source word, number of target words) in the order of the translation.
        nbest: distinct translations, best first; empty when none were asked for.
        unknown: source words passed through; words that a longer phrase translates are not among them.
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
        scale = score_scale(model, weights)
        self.settings = Settings(
            lm_weight,
            float(weights[distortion[0]]) if distortion is not None else 0.0,
            model.distortion_limit,
            options.pop_limit,
            options.stack_size,
            options.log_beam() * scale,
            min(options.margin * scale, 1e12),
            max(0.0, float(self.inventory.forward.max(initial=0.0))),
            model.lm.start,
            model.lm.end,
            int(options.nbest > 0),
            float(weights[model.columns["CSLM"][0]]) if model.neural is not None else 0.0,
            options.neural_cells,
        )
        self.neural = model.neural if self.settings.neural_weight != 0.0 else None
        """The neural LM, where it has a say."""
        places = np.full(8, -1, np.int64)
        for kind, at in (("LexicalReordering", slice(0, 6)), ("Distortion", slice(6, 7)), ("LM", slice(7, 8))):
            if kind in model.columns:
                places[at] = model.columns[kind]
        self.places = places
        self._local = threading.local()
        self.counts = np.zeros(9, np.int64)
        self._lock = threading.Lock()
        self._hashes = target_hashes(self.inventory, prepared.targets.words)

    def work_for(self, words: int) -> Work:
        """The calling thread's workspace, large enough for a sentence of so many words."""
        size, work = getattr(self._local, "work", (0, None))
        if work is None or size < words:
            size = max(words, 40, min(2 * size, MAX_WORDS))
            work = self.new_work(size)
            self._local.work = (size, work)
        return work

    def new_work(self, words: int) -> Work:
        """A workspace for sentences of up to so many words."""
        options, bounds = self.options, self.prepared.targets.bounds
        starts = self.settings.distortion_limit + 1
        neural = (0, 0)
        if self.neural is not None:
            neural = min(options.neural_cells, options.pop_limit), int(np.diff(bounds).max(initial=0))
        return new_work(
            words, self.model.longest, starts, options.pop_limit, options.stack_size, options.nbest > 0, neural
        )

    def translations(self) -> Iterator[Translation]:
        """Translate all prepared sentences, in order."""
        numbers = range(len(self.prepared.spans))
        threads = self.options.threads
        if self.neural is None and threads <= 1:
            yield from map(self.sentence, numbers)
            return
        pool = ThreadPoolExecutor(threads)
        try:
            if self.neural is None:
                yield from pool.map(self.sentence, numbers)
            else:
                yield from Flight(self, self.neural, pool).translations()
        finally:
            pool.shutdown(cancel_futures=True)

    def features_of(self, paths: Paths, rows: np.ndarray) -> np.ndarray:
        """Feature values ``float64`` [n, F] of derivations; ``rows``: the phrase pair of every option of theirs."""
        prepared, lm, targets = self.prepared, self.model.lm, self.prepared.targets
        features = np.empty((len(paths.offsets) - 1, len(self.weights)))
        all_features(
            paths.offsets, rows, paths.starts, paths.ends, lm.arrays, lm.start, lm.end, targets.bounds,
            targets.lm_words, prepared.target_of, prepared.static, prepared.reordering, self.places, features,
        )  # fmt: skip
        if self.model.neural is not None:
            with self._lock:
                if self.neural is None:  # nobody else asks it, and empties its store in time
                    self.model.neural.forget()
                scores = self.model.neural.path_scores(paths, prepared.target_of[rows], targets)
            features[:, self.model.columns["CSLM"][0]] = scores
        return features

    def realized(self, paths: Paths) -> NBest:
        """Derivations as texts, features and scores."""
        prepared, targets = self.prepared, self.prepared.targets
        rows = self.inventory.row[paths.options[: paths.offsets[-1]]]
        features = self.features_of(paths, rows)
        phrases = prepared.target_of[rows]
        first, last = targets.bounds[phrases].tolist(), targets.bounds[phrases + 1].tolist()
        spans = list(zip(paths.starts.tolist(), paths.ends.tolist(), map(int.__sub__, last, first), strict=False))
        words, flat = prepared.words, targets.words
        strings = [" ".join([words[w] for w in flat[a:b].tolist()]) for a, b in zip(first, last, strict=True)]
        bounds = list(zip(paths.offsets[:-1].tolist(), paths.offsets[1:].tolist(), strict=True))
        texts = [" ".join([string for string in strings[a:b] if string]) for a, b in bounds]
        return NBest(texts, features, features @ self.weights, [spans[a:b] for a, b in bounds])

    def sentence(self, number: int) -> Translation:
        """Translate one of the prepared sentences, without asking a neural LM."""
        spans = self.prepared.spans[number]
        if len(spans) == 0:
            return self.nothing()
        work = self.work_for(len(spans))
        hypothesis = kernels.search_sentence(spans, self.model.lm.arrays, self.inventory, work, self.settings)
        self.landed(work)
        return self.found(number, work, int(hypothesis))

    def landed(self, work: Work) -> None:
        """Add what a search has counted to ``counts``."""
        with self._lock:
            self.counts[CELLS:] += work.counts[CELLS:]
        work.counts[CELLS:] = 0

    def nothing(self) -> Translation:
        """The translation of an empty sentence."""
        nothing = NBest([], np.zeros((0, len(self.weights))), np.zeros(0), [])
        return Translation("", 0.0, np.zeros(len(self.weights)), [], nothing)

    def found(self, number: int, work: Work, hypothesis: int) -> Translation:
        """The translation of a sentence whose search has ended with ``hypothesis`` as the best."""
        path = best_path(work, hypothesis)
        best = self.realized(path)
        rows = self.inventory.row[path.options[: path.offsets[-1]]]
        nbest = self.nothing().nbest
        if self.options.nbest > 0:
            words = len(self.prepared.spans[number])
            nbest = self.realized(self._extractor().paths(work, words, self.options.nbest))
        return Translation(
            best.texts[0],
            float(best.scores[0]),
            best.features[0],
            best.phrases[0],
            nbest,
            int(np.count_nonzero(rows >= self.prepared.known)),
        )

    def _extractor(self) -> Extractor:
        """The calling thread's n-best extractor."""
        extractor: Extractor | None = getattr(self._local, "extractor", None)
        if extractor is None:
            extractor = self._local.extractor = Extractor(self.inventory, *self._hashes)
        return extractor


def score_scale(model: SearchModel, weights: np.ndarray) -> float:
    """What one nat is worth under these weights: the LMs' weight, or a tenth of all weights where they have little."""
    tuned = weights.copy()
    tuned[model.columns.get("UnknownWordPenalty", [])] = 0.0
    lm_weight = float(weights[[*model.columns["LM"], *model.columns.get("CSLM", ())]].sum())
    return max(abs(lm_weight), float(np.abs(tuned).sum()) / 10, 1e-9)


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
    return list(Decoder(model, look_up(model, sentences), weights, options).translations())


def look_up(model: SearchModel, sentences: list[str]) -> Prepared:
    """Look the sentences up in the table, or take them from the last call when they are the same (MERT).

    Raises:
        InputError: a sentence has more than ``MAX_WORDS`` words.
    """
    last = model.cache.get("prepared")
    if isinstance(last, tuple) and last[0] == sentences:
        return last[1]
    for number, sentence in enumerate(sentences, 1):
        if len(sentence) > 2 * MAX_WORDS and len(words_of(sentence)) > MAX_WORDS:
            raise InputError(f"the input, line {number}: more than {MAX_WORDS} words in one sentence; split it")
    prepared = prepare(model, sentences)
    model.cache["prepared"] = (list(sentences), prepared)
    return prepared


def read_sentences(path: Path) -> list[str]:
    """The lines of a tokenised text.

    Raises:
        InputError: a line is not UTF-8, has a control character, or has ``|||``, which separates Moses' fields.
    """
    sentences = []
    for number, line in enumerate(read_lines(path), 1):
        if "|||" in line:
            raise InputError(f"{path}, line {number}: ||| separates fields in Moses' files; escape it first")
        for character in line:
            if character < " " or "\x7f" <= character <= "\x9f":
                raise InputError(
                    f"{path}, line {number}: control character U+{ord(character):04X}; "
                    "clean the text with 'rnnsmt corpus prepare --keep-all' first"
                )
        sentences.append(line)
    return sentences
