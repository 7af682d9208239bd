"""A neural LM as a feature of the search: the n-grams of many sentences are scored together, each of them once.

The store of scores lives as long as the model, across sentences and decodings (MERT decodes the same text repeatedly).
It is emptied if it has more than ``MAX_ENTRIES`` entries and no sentence is under way.
"""

from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from rnnsmt.networks.options import need_torch
from rnnsmt.search.kernels import neural_store
from rnnsmt.search.kernels.neural_store import ASKED, CONTEXTS, ENTRIES, ENTRY, Store
from rnnsmt.search.kernels.records import Work
from rnnsmt.search.memory import MAX_ENTRIES
from rnnsmt.search.nbest import Derivations
from rnnsmt.search.table_reader import TargetPhrases

_FIRST = 1 << 16
"""Initial capacity of the store, in n-grams; a power of two."""


class NeuralScorer(Protocol):
    """Interface of a neural LM for the search, implemented by ``rnnsmt.cslm.ngram_scorer.NGramScorer``.

    Attributes:
        order: order of the n-grams.
        padding: class of the words before the beginning of a sentence.
        unknown: class of unknown words.
        end: class of ``</s>``.
    """

    order: int
    padding: int
    unknown: int
    end: int

    def ids(self, words: list[str]) -> np.ndarray:
        """Return the classes of words, ``int32``."""
        ...

    def score(self, contexts: np.ndarray, owner: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Compute natural-log probabilities of words after contexts.

        Args:
            contexts: ``int32`` [contexts, order - 1].
            owner: ``int32`` [R], index of the context of each word, ascending.
            words: ``int32`` [R], classes.

        Returns:
            ``float32`` [R].
        """
        ...


class NeuralCounts(NamedTuple):
    """Statistics of a neural LM.

    Attributes:
        requested: number of n-grams that the search requested.
        scored: number of n-grams that were scored by the network, including those of n-best lists.
        batches: number of batches in which they were scored.
    """

    requested: int
    scored: int
    batches: int


class NeuralFeature:
    """A neural LM with the store of its scores."""

    def __init__(self, scorer: NeuralScorer) -> None:
        self.scorer = scorer
        self.batches = 0
        self.scored_before = 0
        self.requested_before = 0
        self.waiting_from = 0
        self.store = self._empty(_FIRST)

    def _empty(self, size: int) -> Store:
        contexts = np.full((size + 1, self.scorer.order - 1), self.scorer.padding, np.int32)
        counts = np.zeros(3, np.int64)
        counts[CONTEXTS] = 1  # context 0 is the beginning of a sentence: padding only
        free = np.full(2 * size, -1, np.int32)
        store = Store(np.zeros(size, ENTRY), free, contexts, free.copy(), counts)
        neural_store.rebuild_slots(store)
        return store

    def reserve(self, more: int) -> None:
        """Enlarge the store, if needed, to take ``more`` further entries."""
        old, used = self.store, int(self.store.counts[ENTRIES])
        size = len(old.entries)
        if used + more <= size:
            return
        while size < used + more:
            size *= 2
        store = self._empty(size)
        store.entries[:used] = old.entries[:used]
        known = int(old.counts[CONTEXTS])
        store.contexts[:known] = old.contexts[:known]
        store.counts[:] = old.counts
        store.context_slots[:] = -1  # ``_empty`` has entered context 0; ``rebuild_slots`` enters all contexts
        neural_store.rebuild_slots(store)
        self.store = store

    def forget(self) -> None:
        """Empty the store if it is too large; numbers of contexts become invalid."""
        if self.full():
            self.requested_before += int(self.store.counts[ASKED])
            self.scored_before += int(self.store.counts[ENTRIES])
            self.waiting_from = 0
            self.store = self._empty(_FIRST)

    def full(self) -> bool:
        """Return whether the store has more than ``MAX_ENTRIES`` entries."""
        return int(self.store.counts[ENTRIES]) > MAX_ENTRIES

    def counts(self) -> NeuralCounts:
        """Return the statistics since the model was loaded."""
        asked, entries = int(self.store.counts[ASKED]), int(self.store.counts[ENTRIES])
        return NeuralCounts(self.requested_before + asked, self.scored_before + entries, self.batches)

    def gather(self, work: Work, requests: int, targets: TargetPhrases, last: bool) -> None:
        """Look up the n-grams of a sentence's requests; new ones are added and wait for ``answer``.

        Args:
            work: workspace of the sentence.
            requests: number of its requests.
            targets: the target phrases.
            last: whether the phrases complete the sentence, so that ``</s>`` is scored.
        """
        self.reserve(len(work.entries))
        end = self.scorer.end if last else -1
        neural_store.gather(requests, work, self.store, targets.bounds, targets.neural_words, end)

    def answer(self) -> None:
        """Score all waiting n-grams with the network, in one batch."""
        first, last = self.waiting_from, int(self.store.counts[ENTRIES])
        if first == last:
            return
        # entries with the same context are scored together: their keys are context << 32 | word
        fresh = self.store.entries[first:last]
        known, owner = np.unique(fresh["key"] >> 32, return_inverse=True)
        order = np.argsort(owner, kind="stable")
        words = (fresh["key"] & 0xFFFFFFFF).astype(np.int32)
        scores = self.scorer.score(self.store.contexts[known], owner[order].astype(np.int32), words[order])
        fresh["score"][order] = scores
        self.waiting_from = last
        self.batches += 1

    def derivation_scores(self, derivations: Derivations, phrases: np.ndarray, targets: TargetPhrases) -> np.ndarray:
        """Compute the scores of derivations, including ``</s>``.

        Args:
            derivations: the derivations.
            phrases: target phrase of each of their options.
            targets: the target phrases.

        Returns:
            ``float64`` [n].
        """
        used = int(derivations.offsets[-1])
        lengths = int((targets.bounds[phrases + 1] - targets.bounds[phrases]).sum())
        count = len(derivations.offsets) - 1
        self.reserve(lengths + count)
        places = np.empty(lengths + 2 * count + 2, np.int32)
        neural_store.derivation_entries(
            derivations.offsets,
            phrases[:used],
            self.store,
            targets.bounds,
            targets.neural_words,
            self.scorer.end,
            places,
        )
        self.answer()
        totals = np.empty(count)
        neural_store.derivation_scores(self.store, places, totals)
        return totals


def load_feature(
    path: str | Path, unknown_score: str, threads: int = 1, device: str = "auto", precision: str = "reduced"
) -> NeuralFeature:
    """Load a neural LM from a model file.

    Args:
        path: the model file.
        unknown_score: score of words outside the shortlist, see ``rnnsmt.moses.ini.CSLM_UNKNOWN``.
        threads: number of threads on a CPU.
        device: cpu, cuda or auto.
        precision: precision of the sum over the vocabulary, ``float32`` or ``reduced``, see
            ``rnnsmt.cslm.ngram_scorer.NGramScorer``.

    Raises:
        InputError: the file is missing or damaged, or the device is not available.
    """
    need_torch()

    from rnnsmt.cslm.ngram_scorer import NGramScorer

    return NeuralFeature(
        NGramScorer(path, device, threads, reduced=precision == "reduced", unknown_score=unknown_score)
    )
