"""The decoder: a model is loaded once (``model.load_model``), and ``decode`` is called for each set of weights.

Sentences are searched independently, on several threads if requested; the results do not depend on the number of
threads. ``SentenceSearch`` has the data that all sentences share under one set of weights. Without neural features, one
kernel call searches ``BATCH`` sentences, or one sentence if n-best lists are requested.

With neural features, ``LockstepSearch`` calls the same kernels for many sentences, stack by stack. The n-grams of all
sentences in progress are scored in one batch, after the cells of a stack are selected and before they become
hypotheses. A sentence that is complete is replaced by the next one. Neither the requests of a sentence nor their scores
depend on other sentences, so translations do not depend on the number of sentences in progress or on earlier scores.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import TypeVar

import numpy as np

from rnnsmt.base.io import InputError, words_of
from rnnsmt.moses.nbest import Segment
from rnnsmt.search.kernels import stack as kernels
from rnnsmt.search.kernels.features import FeatureTables, all_features
from rnnsmt.search.kernels.neural_choice import next_stack
from rnnsmt.search.kernels.neural_store import NgramText
from rnnsmt.search.kernels.records import CELLS, QUERIES, LanguageModels, SearchConstants, Work, new_work
from rnnsmt.search.model import SearchModel
from rnnsmt.search.nbest import Derivations, NBest, NBestExtractor, Translation, best_derivation, target_strings
from rnnsmt.search.neural import NeuralFeature
from rnnsmt.search.options import SearchOptions
from rnnsmt.search.phrase_pairs import TranslationOptions, concatenated_ranges
from rnnsmt.search.source_text import MAX_WORDS
from rnnsmt.search.translation_options import look_up, rank

LEAST_ROOM = 40
"""Minimum capacity of a workspace, in source words."""

CHUNK = 1000
"""Number of sentences that a command looks up and searches at a time, so that its memory does not grow with the text.
Phrases that occur in several chunks are looked up again: 0.05 CPU s for each chunk."""

BATCH = 32
"""Number of sentences that one kernel call searches if no n-best lists are requested: passing dozens of arrays from
Python to numba and converting the result would take a tenth of the time of a sentence."""


class SentenceSearch:
    """Search of sentences under one set of weights, with one workspace per thread.

    Attributes:
        neural: the neural features whose weight is not 0, in the order of the kernels, each with its text.
        counts: ``int64``, statistics of all searches so far; the indices are those of ``Work.counts``.
    """

    def __init__(
        self, model: SearchModel, looked_up: TranslationOptions, weights: np.ndarray, options: SearchOptions
    ) -> None:
        self.model, self.looked_up, self.weights, self.options = model, looked_up, weights, options
        self.ranked = rank(model, looked_up, weights)
        self._all_neural = list(zip(model.neural, looked_up.prepared, model.neural_columns, strict=True))
        active = [(feature, text, weights[column]) for feature, text, column in self._all_neural if weights[column]]
        self.neural: list[tuple[NeuralFeature, NgramText]] = [(feature, text) for feature, text, _ in active]
        distortion = model.columns.get("Distortion")
        scale = score_scale(model, weights)
        lm_weights = np.ascontiguousarray(weights[model.columns["LM"]])
        self.several = None if len(lm_weights) == 1 else True  # None lets numba omit the code for several LMs
        self.lms = LanguageModels(
            tuple(lm.arrays for lm in model.lms),
            np.array([lm.start for lm in model.lms], np.int32),
            np.array([lm.end for lm in model.lms], np.int32),
            lm_weights,
        )
        self.constants = SearchConstants(
            lm_weight=float(lm_weights[0]) if len(lm_weights) == 1 else float(np.abs(lm_weights).sum()) or 1.0,
            distortion_weight=float(weights[distortion[0]]) if distortion is not None else 0.0,
            distortion_limit=model.distortion_limit,
            pop_limit=options.pop_limit,
            stack_size=options.stack_size,
            beam=options.log_beam() * scale,
            margin=min(options.margin * scale, 1e12),
            forward_bound=max(0.0, float(self.ranked.forward.max(axis=1)[self.ranked.forward_class].max(initial=0.0))),
            hierarchical=int(model.hierarchical),
            keep_arcs=int(options.nbest > 0),
            cslm_cells=options.cslm_cells,
            by_source=int(any(feature.by_source for feature, _ in self.neural)),
            neural_weight=float(sum(weight for *_, weight in active)),
            neural_weights=np.array([weight for *_, weight in active], np.float64),
        )
        alone = [model.columns.get(kind, np.array([-1])) for kind in ("Distortion", "LM")]
        self.tables = FeatureTables(
            self.lms,
            looked_up.targets.bounds,
            looked_up.targets.lm_words,
            looked_up.target_of,
            looked_up.static,
            looked_up.reordering,
            looked_up.reordering_of,
            np.concatenate([model.reordering_places, *alone]).astype(np.int64),
            model.hierarchical,
        )
        self._local = threading.local()
        self.counts = np.zeros(QUERIES + 1, np.int64)
        self._lock = threading.Lock()
        self._strings = target_strings(self.ranked, looked_up.targets.words) if options.nbest > 0 else None
        self._bounds = np.cumsum([0, *map(len, looked_up.spans)])
        self._spans = np.concatenate([np.zeros((0, looked_up.longest), np.int32), *looked_up.spans])

    def batch(self, first: int) -> list[Translation]:
        """Translate up to ``BATCH`` sentences from the index ``first`` on, without neural features and n-best lists."""
        end = min(first + BATCH, len(self.looked_up.spans))
        words = np.diff(self._bounds[first : end + 1])
        work = self.work_for(int(words.max()))
        derivations = Derivations(np.zeros(end - first + 1, np.int64), *np.zeros((3, int(words.sum())), np.int32))
        kernels.search_sentences(
            first, self._bounds, self._spans, self.lms, self.several, self.ranked, work, self.constants,
            derivations.offsets, derivations.options, derivations.starts, derivations.ends,
        )  # fmt: skip
        self._count(work)
        best = self.realized(derivations, np.arange(first, end))
        passed = np.concatenate([[0], np.cumsum(self._is_passed(derivations))])[derivations.offsets]
        return [
            Translation(
                best.texts[i],
                # computed for each row, because the product in ``best`` over many rows may be rounded differently
                float((best.features[i : i + 1] @ self.weights)[0]),
                best.features[i],
                best.phrases[i],
                NBest.none(len(self.weights)),
                int(passed[i + 1] - passed[i]),
            )
            if words[i]
            else self.nothing()
            for i in range(end - first)
        ]

    def translation(self, number: int) -> Translation:
        """Translate a sentence, given by its index, without neural features."""
        spans = self.looked_up.spans[number]
        if len(spans) == 0:
            return self.nothing()
        work = self.work_for(len(spans))
        hypothesis = kernels.search_sentence(spans, self.lms, self.several, self.ranked, work, self.constants)
        return self.found(number, work, int(hypothesis))

    def work_for(self, words: int) -> Work:
        """Return the workspace of the calling thread, enlarged if needed to the given number of words."""
        size, work = getattr(self._local, "work", (0, None))
        if work is None or size < words:
            size = max(words, LEAST_ROOM, min(2 * size, MAX_WORDS))
            work = self.new_work(size)
            self._local.work = (size, work)
        return work

    def new_work(self, words: int) -> Work:
        """Return a workspace for sentences of up to ``words`` words."""
        options = self.options
        return new_work(
            words,
            longest=self.looked_up.longest,
            starts=self.constants.distortion_limit + 1,
            pop_limit=options.pop_limit,
            stack_size=options.stack_size,
            keep_arcs=options.nbest > 0,
            lms=len(self.model.lms),
            neural=len(self.neural),
            cslm_cells=min(options.cslm_cells, options.pop_limit) if self.neural else 0,
            longest_target=int(np.diff(self.looked_up.targets.bounds).max(initial=0)),
        )

    def nothing(self) -> Translation:
        """Return the translation of an empty sentence."""
        count = len(self.weights)
        return Translation("", 0.0, np.zeros(count), [], NBest.none(count))

    def found(self, number: int, work: Work, hypothesis: int) -> Translation:
        """Return the translation of a sentence whose search has ended, with ``hypothesis`` as the best one."""
        self._count(work)
        derivation = best_derivation(work, hypothesis)
        nbest = NBest.none(len(self.weights))
        best = None
        if self.options.nbest > 0:
            words = len(self.looked_up.spans[number])
            listed = self._extractor().derivations(work, words, self.options.nbest)
            nbest = self.realized(listed, np.full(len(listed.offsets) - 1, number))
            if not self._all_neural and derivation.is_first_of(listed):  # the usual case
                best = nbest.first(self.weights)
        if best is None:
            best = self.realized(derivation, np.array([number]))
        return Translation(
            best.texts[0],
            float(best.scores[0]),
            best.features[0],
            best.phrases[0],
            nbest,
            int(np.count_nonzero(self._is_passed(derivation))),
        )

    def _count(self, work: Work) -> None:
        """Add the statistics of a workspace to those of all searches."""
        with self._lock:
            self.counts[CELLS:] += work.counts[CELLS:]
        work.counts[CELLS:] = 0

    def _is_passed(self, derivations: Derivations) -> np.ndarray:
        """Return whether each phrase of derivations is a source word that is passed through or dropped."""
        rows = self.ranked.row[derivations.options[: derivations.offsets[-1]]]
        return np.asarray(rows >= self.looked_up.known)

    def realized(self, derivations: Derivations, sentences: np.ndarray) -> NBest:
        """Convert derivations of sentences ``int64`` [n], given by their indices, into translations."""
        looked_up, targets = self.looked_up, self.looked_up.targets
        used, offsets = derivations.offsets[-1], derivations.offsets
        rows = self.ranked.row[derivations.options[:used]]
        features = self.features_of(derivations, rows, sentences)
        phrases = looked_up.target_of[rows]
        lengths = targets.bounds[phrases + 1] - targets.bounds[phrases]
        ends = np.concatenate([[0], np.cumsum(lengths)])
        places = concatenated_ranges(targets.bounds[phrases], lengths)
        segments = np.stack([derivations.starts[:used], derivations.ends[:used], lengths.astype(np.int32)], axis=1)
        return NBest(
            targets.words[places], ends[offsets], looked_up.words, features, features @ self.weights, segments, offsets
        )

    def features_of(self, derivations: Derivations, rows: np.ndarray, sentences: np.ndarray) -> np.ndarray:
        """Compute the features of derivations.

        Args:
            rows: row of the phrase pair of each of their options.
            sentences: ``int64`` [n], index of the sentence of each derivation.

        Returns:
            ``float64`` [n, F].
        """
        features = np.empty((len(derivations.offsets) - 1, len(self.weights)))
        all_features(derivations.offsets, rows, derivations.starts, derivations.ends, self.tables, features)
        for feature, text, column in self._all_neural:
            with self._lock:
                if not self.weights[column]:  # features of weight 0 are not in the search, which empties the others
                    feature.forget()
                features[:, column] = feature.derivation_scores(derivations, rows, sentences, text)
        return features

    def _extractor(self) -> NBestExtractor:
        """Return the n-best extractor of the calling thread."""
        extractor: NBestExtractor | None = getattr(self._local, "extractor", None)
        if extractor is None:
            assert self._strings is not None, "n-best lists were not requested"
            extractor = self._local.extractor = NBestExtractor(self._strings)
        return extractor


def score_scale(model: SearchModel, weights: np.ndarray) -> float:
    """Return the scale of scores under these weights: the score that corresponds to one nat.

    This is the absolute value of the sum of the weights of n-gram LMs and neural features, or, if that is larger, a
    tenth of the sum of the absolute values of all weights except that of the unknown-word penalty.
    """
    tuned = weights.copy()
    tuned[model.columns.get("UnknownWordPenalty", [])] = 0.0
    lm_weight = float(weights[[*model.columns["LM"], *model.neural_columns]].sum())
    return max(abs(lm_weight), float(np.abs(tuned).sum()) / 10, 1e-9)


T = TypeVar("T")


class _Sentence:
    """A sentence in progress: the stack to be filled next, and the cells, requests and groups selected for it."""

    def __init__(self, number: int, words: int, room: int, work: Work) -> None:
        self.number, self.words, self.room, self.work = number, words, room, work
        self.stack = 0
        self.chosen = (0, 0, 0)


class LockstepSearch:
    """Lockstep search of all sentences of a ``SentenceSearch``.

    Workspaces have a capacity of ``LEAST_ROOM`` words times a power of two and are reused. Their total capacity is
    ``in_flight`` times ``LEAST_ROOM`` words, so fewer long sentences are in progress at a time, and memory does not
    grow with the length of the sentences.

    Args:
        search: the search, which has neural features.
        pool: runs the compiled parts of the search.
    """

    def __init__(self, search: SentenceSearch, pool: ThreadPoolExecutor) -> None:
        self.search, self.pool = search, pool
        self.idle: list[tuple[int, Work]] = []
        self.room = max(search.options.in_flight, 1) * LEAST_ROOM
        """Total capacity, in words, of the workspaces that may still be allocated."""

    def translations(self) -> Iterator[Translation]:
        """Yield all translations, in order."""
        spans = self.search.looked_up.spans
        done: dict[int, Translation] = {}
        waiting = iter(range(len(spans)))
        under_way: list[_Sentence] = []
        upcoming = 0
        number = next(waiting, None)
        while number is not None or under_way:
            if not under_way:  # only now may stores be emptied: hypotheses contain context numbers
                for feature, _ in self.search.neural:
                    feature.forget()
            while number is not None and not (under_way and self._is_full()):
                if len(spans[number]) == 0:
                    done[number] = self.search.nothing()
                else:
                    work = self._workspace(len(spans[number]), bool(under_way))
                    if work is None:
                        break
                    under_way.append(self._begin(number, work))
                number = next(waiting, None)
            if under_way:
                self._advance(under_way)
                done_now = [sentence for sentence in under_way if sentence.stack > sentence.words]
                under_way = [sentence for sentence in under_way if sentence.stack <= sentence.words]
                done |= zip([s.number for s in done_now], self._map(self._finish, done_now), strict=True)
            # sentences are completed out of order
            while upcoming in done:
                yield done.pop(upcoming)
                upcoming += 1

    def _is_full(self) -> bool:
        """Return whether a store must be emptied before further sentences are started."""
        return any(feature.full() for feature, _ in self.search.neural)

    def _workspace(self, words: int, may_wait: bool) -> tuple[int, Work] | None:
        """Return a workspace for a sentence and its capacity in words.

        Return None, which ``may_wait`` allows, if another sentence must end first.
        """
        room = LEAST_ROOM
        while room < words:
            room *= 2
        index = next((i for i, (size, _) in enumerate(self.idle) if size == room), None)
        if index is not None:
            return self.idle.pop(index)
        # free idle workspaces of other sizes
        while self.idle and self.room < room:
            self.room += self.idle.pop()[0]
        if self.room < room and may_wait:
            return None
        self.room -= room
        return room, self.search.new_work(room)

    def _begin(self, number: int, workspace: tuple[int, Work]) -> _Sentence:
        search, spans = self.search, self.search.looked_up.spans[number]
        kernels.begin(spans, search.lms, search.several, search.ranked, workspace[1], search.constants)
        return _Sentence(number, len(spans), *workspace)

    def _advance(self, under_way: list[_Sentence]) -> None:
        """Fill one stack of every sentence, select the cells of the next stack, and score their n-grams."""
        self._map(self._next_stack, under_way)
        for index, (feature, text) in enumerate(self.search.neural):
            for sentence in under_way:
                if sentence.stack <= sentence.words:
                    last = sentence.stack == sentence.words
                    requests, ranked = sentence.chosen[1], self.search.ranked
                    feature.gather(index, sentence.number, sentence.work, requests, ranked, text, last)
            feature.answer()

    def _next_stack(self, sentence: _Sentence) -> None:
        search, spans = self.search, self.search.looked_up.spans[sentence.number]
        stores = tuple(feature.store for feature, _ in search.neural)
        sentence.chosen = next_stack(
            sentence.stack, sentence.chosen, spans, search.lms, search.several, search.ranked, sentence.work,
            stores, search.constants,
        )  # fmt: skip
        sentence.stack += 1

    def _finish(self, sentence: _Sentence) -> Translation:
        work = sentence.work
        best = int(kernels.best_complete(work, sentence.words))
        translation = self.search.found(sentence.number, work, best)
        self.idle.append((sentence.room, work))
        return translation

    def _map(self, function: Callable[[_Sentence], T], sentences: list[_Sentence]) -> list[T]:
        if self.search.options.threads <= 1:
            return [function(sentence) for sentence in sentences]
        return list(self.pool.map(function, sentences))


def decode(
    model: SearchModel, sentences: list[str], weights: np.ndarray, options: SearchOptions | None = None
) -> list[Translation]:
    """Translate tokenised sentences.

    Args:
        weights: ``float64`` [F] in the order of ``model.feature_names``.
        options: limits of the search, defaults if None.
    """
    weights = np.ascontiguousarray(weights, np.float64)
    if weights.shape != (len(model.feature_names),):
        raise InputError(f"{weights.size} weights for {len(model.feature_names)} features")
    if not np.isfinite(weights).all():
        raise InputError(f"the weight of {model.feature_names[int(np.argmin(np.isfinite(weights)))]} is not finite")
    return list(translations(SentenceSearch(model, look_up(model, sentences), weights, options or SearchOptions())))


def translations(search: SentenceSearch) -> Iterator[Translation]:
    """Yield the translations of all sentences of a search, in order."""
    count, threads = len(search.looked_up.spans), search.options.threads
    pool = ThreadPoolExecutor(threads)
    try:
        each = map if threads <= 1 else pool.map
        if search.neural:
            yield from LockstepSearch(search, pool).translations()
        elif search.options.nbest > 0:
            yield from each(search.translation, range(count))
        else:
            yield from chain.from_iterable(each(search.batch, range(0, count, BATCH)))
    finally:
        pool.shutdown(cancel_futures=True)


def features_of_derivations(
    model: SearchModel, sentences: list[str], derivations: Sequence[tuple[str, Sequence[Segment]]]
) -> np.ndarray:
    """Compute the features of given derivations, for example those of another decoder.

    Args:
        sentences: tokenised source sentences.
        derivations: text and phrases of each translation.

    Returns:
        ``float64`` [sentences, F]; NaN where the model cannot produce the derivation because its table lacks a phrase
        pair.
    """
    looked_up = look_up(model, sentences)
    numbers = {word: number for number, word in enumerate(looked_up.words)}
    rows: list[int] = []
    segments: list[Segment] = []
    offsets, possible = [0], []
    for number, (spans, (text, phrases)) in enumerate(zip(looked_up.spans, derivations, strict=True)):
        words = np.array([numbers.get(word, -1) for word in words_of(text)], np.int32)
        ends = np.cumsum([length for *_, length in phrases], dtype=np.int64)
        sums = [
            looked_up.find(int(spans[first, last - first]), words[end - length : end])
            for (first, last, length), end in zip(phrases, ends, strict=True)
            if last - first < spans.shape[1]
        ]
        if sums and len(sums) == len(phrases) and -1 not in sums:
            rows += sums
            segments += phrases
            offsets.append(len(rows))
            possible.append(number)
    count = len(model.feature_names)
    starts, last_words, _ = np.array(segments, np.int32).reshape(-1, 3).T
    encoded = Derivations(np.array(offsets), np.array(rows, np.int32), starts.copy(), last_words.copy())
    features = np.full((len(sentences), count), np.nan)
    features[[not phrases for _, phrases in derivations]] = 0.0  # empty sentences
    features[possible] = SentenceSearch(model, looked_up, np.zeros(count), SearchOptions()).features_of(
        encoded, encoded.options, np.array(possible, np.int64)
    )
    return features
