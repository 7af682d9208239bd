"""Search under one set of weights: data shared by all sentences, search of one sentence, and its results.

Without neural features a sentence is searched in one call of a kernel (``SentenceSearch.translation``); ``lockstep``
drives the same kernels stack by stack.
"""

import threading

import numpy as np

from rnnsmt.search.kernels import stack as kernels
from rnnsmt.search.kernels.features import FeatureTables, all_features
from rnnsmt.search.kernels.records import CELLS, QUERIES, LanguageModels, SearchConstants, Work, new_work
from rnnsmt.search.model import SearchModel
from rnnsmt.search.nbest import Derivations, NBest, NBestExtractor, Translation, best_derivation, target_strings
from rnnsmt.search.neural import FeatureText, NeuralFeature
from rnnsmt.search.options import SearchOptions
from rnnsmt.search.phrase_pairs import TranslationOptions
from rnnsmt.search.source_text import MAX_WORDS
from rnnsmt.search.translation_options import rank

LEAST_ROOM = 40
"""Minimum capacity of a workspace, in source words."""


class SentenceSearch:
    """Search of sentences under one set of weights, with one workspace per thread.

    Attributes:
        neural: the neural features whose weight is not 0, in the order of the kernels, each with its view of the text.
        counts: ``int64``, statistics of all searches so far; the indices are those of ``Work.counts``.
    """

    def __init__(
        self, model: SearchModel, looked_up: TranslationOptions, weights: np.ndarray, options: SearchOptions
    ) -> None:
        self.model, self.looked_up, self.weights, self.options = model, looked_up, weights, options
        self.ranked = rank(model, looked_up, weights)
        texts = [FeatureText(looked_up, prepared, self.ranked) for prepared in looked_up.prepared]
        self._all_neural = list(zip(model.neural, texts, model.neural_columns, strict=True))
        active = [(feature, text, weights[column]) for feature, text, column in self._all_neural if weights[column]]
        self.neural: list[tuple[NeuralFeature, FeatureText]] = [(feature, text) for feature, text, _ in active]
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
            forward_bound=max(0.0, float(self.ranked.forward.max(initial=0.0))),
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
            np.concatenate([model.reordering_places, *alone]).astype(np.int64),
            model.hierarchical,
        )
        self._local = threading.local()
        self.counts = np.zeros(QUERIES + 1, np.int64)
        self._lock = threading.Lock()
        self._strings = target_strings(self.ranked, looked_up.targets.words)

    def translation(self, number: int) -> Translation:
        """Translate a sentence, given by its index, without neural features."""
        spans, walls = self.looked_up.spans[number], self.looked_up.walls[number]
        if len(spans) == 0:
            return self.nothing()
        work = self.work_for(len(spans))
        hypothesis = kernels.search_sentence(spans, walls, self.lms, self.several, self.ranked, work, self.constants)
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
        self._add_counts(work)
        derivation = best_derivation(work, hypothesis)
        best = self.realized(derivation, number)
        rows = self.ranked.row[derivation.options[: derivation.offsets[-1]]]
        passed = len(self.looked_up.unknown)
        nbest = NBest.none(len(self.weights))
        if self.options.nbest > 0:
            words = len(self.looked_up.spans[number])
            nbest = self.realized(self._extractor().derivations(work, words, self.options.nbest), number)
        return Translation(
            best.texts[0],
            float(best.scores[0]),
            best.features[0],
            best.phrases[0],
            nbest,
            int(np.count_nonzero((rows >= self.looked_up.known) & (rows < self.looked_up.known + passed))),
        )

    def realized(self, derivations: Derivations, number: int) -> NBest:
        """Convert derivations of a sentence, given by its index, into translations with features and scores."""
        looked_up, targets = self.looked_up, self.looked_up.targets
        used, offsets = derivations.offsets[-1], derivations.offsets
        rows = self.ranked.row[derivations.options[:used]]
        features = self.features_of(derivations, rows, np.full(len(offsets) - 1, number))
        phrases = looked_up.target_of[rows]
        lengths = targets.bounds[phrases + 1] - targets.bounds[phrases]
        ends = np.concatenate([[0], np.cumsum(lengths)])
        # concatenated ranges bounds[p]..bounds[p + 1] - 1 of all phrases
        places = np.arange(ends[-1]) + np.repeat(targets.bounds[phrases] - ends[:-1], lengths)
        segments = np.stack([derivations.starts[:used], derivations.ends[:used], lengths.astype(np.int32)], axis=1)
        return NBest(
            targets.words[places],
            ends[offsets],
            looked_up.words,
            features,
            features @ self.weights,
            segments,
            offsets,
        )

    def features_of(self, derivations: Derivations, rows: np.ndarray, sentences: np.ndarray) -> np.ndarray:
        """Compute the features of derivations.

        Args:
            derivations: the derivations.
            rows: row of the phrase pair of each of their options.
            sentences: ``int64`` [n], index of the sentence of each derivation.

        Returns:
            ``float64`` [n, F].
        """
        features = np.empty((len(derivations.offsets) - 1, len(self.weights)))
        all_features(derivations.offsets, rows, derivations.starts, derivations.ends, self.tables, features)
        for feature, text, column in self._all_neural:
            with self._lock:
                if not self.weights[column]:  # without a lockstep search nothing else empties the store in time
                    feature.forget()
                features[:, column] = feature.derivation_scores(derivations, rows, sentences, text)
        return features

    def _add_counts(self, work: Work) -> None:
        with self._lock:
            self.counts[CELLS:] += work.counts[CELLS:]
        work.counts[CELLS:] = 0

    def _extractor(self) -> NBestExtractor:
        """Return the n-best extractor of the calling thread."""
        extractor: NBestExtractor | None = getattr(self._local, "extractor", None)
        if extractor is None:
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
