"""Search of the sentences of a text under one set of weights: constants of the kernels, workspaces, and translations.

Without neural features, one kernel call searches ``BATCH`` sentences. For the search with neural features, see
``lockstep``.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from rnnsmt.base.arrays import concatenated_ranges
from rnnsmt.search.kernels import stack as kernels
from rnnsmt.search.kernels.features import FeatureTables, all_features
from rnnsmt.search.kernels.neural_store import NgramText
from rnnsmt.search.kernels.records import (
    CELLS,
    QUERIES,
    Derivations,
    LanguageModels,
    Scratch,
    SearchConstants,
    Work,
    new_scratch,
    new_work,
)
from rnnsmt.search.model import SearchModel
from rnnsmt.search.nbest import NBest, NBestExtractor, Translation, target_strings
from rnnsmt.search.neural import NeuralFeature
from rnnsmt.search.options import SearchOptions
from rnnsmt.search.phrase_pairs import TranslationOptions
from rnnsmt.search.source_text import MAX_WORDS
from rnnsmt.search.translation_options import rank

LEAST_ROOM = 40
"""Minimum capacity of a workspace, in source words."""

BATCH = 32
"""Number of sentences that one kernel call searches if no n-best lists are requested. With one call for each sentence,
passing dozens of arrays from Python to numba and converting the result would take a tenth of the time."""


class SentenceSearch:
    """Search of sentences under one set of weights, with one workspace per thread.

    Attributes:
        neural: the neural features whose weight is not 0, each with its text, in the order of the kernels; empty
            outside of ``networks``.
        counts: ``int64``, statistics of all searches so far; the indices are those of ``Work.counts``.
    """

    def __init__(
        self, model: SearchModel, looked_up: TranslationOptions, weights: np.ndarray, options: SearchOptions
    ) -> None:
        self.model, self.looked_up, self.weights, self.options = model, looked_up, weights, options
        self.ranked = rank(model, looked_up, weights)
        self.neural: list[tuple[NeuralFeature, NgramText]] = []
        self._all_neural: list[tuple[NeuralFeature, NgramText, int]] = []
        columns = zip(model.neural, model.neural_columns, strict=True)
        active = [(feature, weights[column]) for feature, column in columns if weights[column]]
        self._active = len(active)
        distortion = model.columns.get("Distortion")
        scale = score_scale(model, weights)
        lm_weights = np.ascontiguousarray(weights[model.columns["LM"]])
        self.several = None if len(lm_weights) == 1 else True  # None lets numba omit the code for several LMs
        self.lms = LanguageModels(
            arrays=tuple(lm.arrays for lm in model.lms),
            starts=np.array([lm.start for lm in model.lms], np.int32),
            ends=np.array([lm.end for lm in model.lms], np.int32),
            weights=lm_weights,
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
            by_source=int(any(feature.by_source for feature, _ in active)),
            neural_weight=float(sum(weight for _, weight in active)),
            neural_weights=np.array([weight for _, weight in active], np.float64),
        )
        alone = [model.columns.get(kind, np.array([-1])) for kind in ("Distortion", "LM")]
        self.tables = FeatureTables(
            lms=self.lms,
            bounds=looked_up.targets.bounds,
            words=looked_up.targets.lm_words,
            target_of=looked_up.target_of,
            static=looked_up.static,
            reordering=looked_up.reordering,
            reordering_of=looked_up.reordering_of,
            places=np.concatenate([model.reordering_places, *alone]).astype(np.int64),
            hierarchical=model.hierarchical,
        )
        self._local = threading.local()
        self.counts = np.zeros(QUERIES + 1, np.int64)
        self._lock = threading.Lock()
        self._strings = target_strings(self.ranked, looked_up.targets.words) if options.nbest > 0 else None
        self._bounds = np.cumsum([0, *map(len, looked_up.spans)])
        self._spans = np.concatenate([np.zeros((0, looked_up.longest), np.int32), *looked_up.spans])

    @contextmanager
    def networks(self) -> Iterator[None]:
        """Reserve the neural features of the model for this search within the ``with`` block.

        If the model has neural features, searches and ``features_of`` require it. No other search can use the features
        at the same time, see ``SearchModel.lend``.
        """
        with self.model.lend() as features:
            texts = [feature.numbered(text) for feature, text in zip(features, self.looked_up.prepared, strict=True)]
            self._all_neural = list(zip(features, texts, self.model.neural_columns, strict=True))
            self.neural = [(feature, text) for feature, text, column in self._all_neural if self.weights[column]]
            try:
                yield
            finally:
                self.neural, self._all_neural = [], []

    @property
    def batch_size(self) -> int:
        """Return the number of sentences of a batch: one if n-best lists are extracted after the search."""
        return 1 if self.options.nbest > 0 else BATCH

    def batch(self, first: int) -> list[Translation]:
        """Translate the batch of sentences that begins at the index ``first``, without neural features."""
        end = min(first + self.batch_size, len(self.looked_up.spans))
        words = np.diff(self._bounds[first : end + 1])
        work = self.work_for(int(words.max()))
        derivations = Derivations.empty(end - first, int(words.sum()))
        kernels.search_sentences(
            first, self._bounds, self._spans, self.lms, self.several, self.ranked, work, self.constants, derivations
        )
        return self.found(first, derivations, work)

    def work_for(self, words: int) -> Work:
        """Return the workspace of the calling thread, enlarged if needed for sentences of up to ``words`` words."""
        size, work = getattr(self._local, "work", (0, None))
        if work is None or size < words:
            size = max(words, LEAST_ROOM, min(2 * size, MAX_WORDS))
            work = self.new_work(size, self.new_scratch())
            self._local.work = (size, work)
        return work

    def new_scratch(self) -> Scratch:
        """Return the scratch space of a thread, for all of its workspaces."""
        return new_scratch(**self._limits)

    def new_work(self, words: int, scratch: Scratch) -> Work:
        """Return a workspace for sentences of up to ``words`` words."""
        return new_work(
            words,
            scratch,
            **self._limits,
            keep_arcs=self.options.nbest > 0,
            lms=len(self.model.lms),
            longest_target=int(np.diff(self.looked_up.targets.bounds).max(initial=0)),
        )

    @property
    def _limits(self) -> dict[str, int]:
        """Return the arguments that ``new_scratch`` and ``new_work`` have in common."""
        options = self.options
        return {
            "longest": self.looked_up.longest,
            "starts": self.constants.distortion_limit + 1,
            "pop_limit": options.pop_limit,
            "stack_size": options.stack_size,
            "neural": self._active,
            "cslm_cells": min(options.cslm_cells, options.pop_limit) if self._active else 0,
        }

    def nothing(self) -> Translation:
        """Return the translation of an empty sentence."""
        count = len(self.weights)
        return Translation("", 0.0, np.zeros(count), [], NBest.none(count))

    def found(self, first: int, derivations: Derivations, work: Work) -> list[Translation]:
        """Return the translations of consecutive sentences, beginning at the index ``first``.

        Args:
            derivations: the best derivation of each of these sentences.
            work: workspace of the search that has just ended. If n-best lists are requested, there is only one
                sentence, whose list is extracted from the workspace.
        """
        self._count(work)
        numbers = np.arange(first, first + len(derivations.offsets) - 1)
        words = self._bounds[numbers + 1] - self._bounds[numbers]
        best, nbest = None, NBest.none(len(self.weights))
        if self.options.nbest > 0 and words[0]:
            listed = self._extractor().derivations(work, int(words[0]), self.options.nbest)
            nbest = self.realized(listed, np.full(len(listed.offsets) - 1, first))
            if derivations.is_first_of(listed):  # the usual case: its features are known
                best = nbest.first(self.weights)
        best = best or self.realized(derivations, numbers)
        passed = np.concatenate([[0], np.cumsum(self._is_passed(derivations))])[derivations.offsets]
        return [
            Translation(
                best.texts[i],
                # computed for each row, because a product over many rows, as in ``best``, may be rounded differently
                float((best.features[i : i + 1] @ self.weights)[0]),
                best.features[i],
                best.phrases[i],
                nbest,
                int(passed[i + 1] - passed[i]),
            )
            if words[i]
            else self.nothing()
            for i in range(len(numbers))
        ]

    def _count(self, work: Work) -> None:
        """Add the statistics of a workspace to those of all searches."""
        with self._lock:
            self.counts[CELLS:] += work.counts[CELLS:]
        work.counts[CELLS:] = 0

    def _is_passed(self, derivations: Derivations) -> np.ndarray:
        """Return, for each phrase of derivations, whether it is a source word that is passed through or dropped."""
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
            words=targets.words[places],
            bounds=ends[offsets],
            vocabulary=looked_up.words,
            features=features,
            scores=features @ self.weights,
            segments=segments,
            offsets=offsets,
        )

    def features_of(self, derivations: Derivations, rows: np.ndarray, sentences: np.ndarray) -> np.ndarray:
        """Compute the features of derivations.

        Args:
            rows: row of the phrase pair of each option of the derivations.
            sentences: ``int64`` [n], index of the sentence of each derivation.

        Returns:
            ``float64`` [n, F].
        """
        assert len(self._all_neural) == len(self.model.neural), "called outside of networks()"
        features = np.empty((len(derivations.offsets) - 1, len(self.weights)))
        all_features(derivations.offsets, rows, derivations.starts, derivations.ends, self.tables, features)
        for feature, text, column in self._all_neural:
            with self._lock:
                if not self.weights[column]:  # features of weight 0 are not in the search, which empties stores
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

    It is the maximum of two values: the absolute value of the sum of the weights of n-gram LMs and neural features, and
    a tenth of the sum of the absolute values of all weights except that of the unknown-word penalty.
    """
    tuned = weights.copy()
    tuned[model.columns.get("UnknownWordPenalty", [])] = 0.0
    lm_weight = float(weights[[*model.columns["LM"], *model.neural_columns]].sum())
    return max(abs(lm_weight), float(np.abs(tuned).sum()) / 10, 1e-9)
