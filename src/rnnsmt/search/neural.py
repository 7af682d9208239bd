"""A neural LM as a feature of the search: the n-grams of many sentences scored together, every one only once.

The store of scores lives as long as the model, across sentences and decodings (MERT decodes the same text again and
again). It is emptied when it has outgrown ``MAX_ENTRIES`` and no sentence is under way.
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


class NeuralScorer(Protocol):
    """What the search needs of a neural LM; ``rnnsmt.cslm.scoring.NGramScorer`` is one."""

    order: int
    padding: int
    unknown: int
    end: int

    def ids(self, words: list[str]) -> np.ndarray:
        """Classes ``int32`` of words."""
        ...

    def score(self, contexts: np.ndarray, owner: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Natural-log probabilities ``float32`` [R] of words[r] after contexts[owner[r]]; owner ascending."""
        ...


class NeuralCounts(NamedTuple):
    """requested: n-grams that the search asked for.

    scored: those that the network had to be asked for, the ones of n-best lists among them; in how many batches.
    """

    requested: int
    scored: int
    batches: int


class NeuralFeature:
    """A neural LM and what it has answered."""

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
        counts[CONTEXTS] = 1  # number 0: the beginning of a sentence
        free = np.full(2 * size, -1, np.int32)
        store = Store(np.zeros(size, ENTRY), free, contexts, free.copy(), counts)
        neural_store.rebuild_slots(store)
        return store

    def reserve(self, more: int) -> None:
        """Make room for so many more entries."""
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
        store.context_slots[:] = -1
        neural_store.rebuild_slots(store)
        self.store = store

    def forget(self) -> None:
        """Empty a store that has grown too large. Numbers of contexts lose their meaning."""
        if self.full():
            self.requested_before += int(self.store.counts[ASKED])
            self.scored_before += int(self.store.counts[ENTRIES])
            self.waiting_from = 0
            self.store = self._empty(_FIRST)

    def full(self) -> bool:
        """Whether the store is larger than it should be."""
        return int(self.store.counts[ENTRIES]) > MAX_ENTRIES

    def counts(self) -> NeuralCounts:
        """Since the model was loaded."""
        asked, entries = int(self.store.counts[ASKED]), int(self.store.counts[ENTRIES])
        return NeuralCounts(self.requested_before + asked, self.scored_before + entries, self.batches)

    def gather(self, work: Work, requests: int, targets: TargetPhrases, last: bool) -> None:
        """Find the n-grams of a sentence's requests; new ones wait for ``answer``. ``last``: ``</s>`` follows."""
        self.reserve(len(work.entries))
        end = self.scorer.end if last else -1
        neural_store.gather(requests, work, self.store, targets.bounds, targets.neural_words, end)

    def answer(self) -> None:
        """Ask the network for everything that waits."""
        first, last = self.waiting_from, int(self.store.counts[ENTRIES])
        if first == last:
            return
        fresh = self.store.entries[first:last]
        known, owner = np.unique(fresh["key"] >> 32, return_inverse=True)
        order = np.argsort(owner, kind="stable")
        words = (fresh["key"] & 0xFFFFFFFF).astype(np.int32)
        scores = self.scorer.score(self.store.contexts[known], owner[order].astype(np.int32), words[order])
        fresh["score"][order] = scores
        self.waiting_from = last
        self.batches += 1

    def derivation_scores(self, derivations: Derivations, phrases: np.ndarray, targets: TargetPhrases) -> np.ndarray:
        """Scores ``float64`` [n] of derivations with ``</s>``; ``phrases``: target phrase of every option of theirs."""
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
    """The neural LM of a model file, on a device: cpu, cuda, or auto.

    unknown_score: what words outside the shortlist score, see ``rnnsmt.moses.ini.CSLM_UNKNOWN``.
    precision: of the sum over the vocabulary, ``float32`` or ``reduced``, see ``rnnsmt.cslm.scoring.NGramScorer``.

    Raises:
        InputError: missing or damaged, or the device is not there.
    """
    need_torch()

    from rnnsmt.cslm.scoring import NGramScorer

    return NeuralFeature(
        NGramScorer(path, device, threads, reduced=precision == "reduced", unknown_score=unknown_score)
    )
