"""The accumulated n-best lists of all iterations: distinct candidates of every sentence, in flat arrays."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rnnsmt.tuning.kernels.hashing import row_hashes


@dataclass(frozen=True)
class CandidateBatch:
    """Candidates of one iteration, sentence by sentence.

    ``features`` float32 ``[n, F]``, ``statistics`` int32 ``[n, 9]``, ``sentences`` int32 ``[n]`` ascending.
    """

    features: NDArray[np.float32]
    statistics: NDArray[np.int32]
    sentences: NDArray[np.int32]


@dataclass(frozen=True)
class FlatPool:
    """All candidates, those of a sentence side by side in the order they came.

    ``features`` float32 ``[F, N]``, ``statistics`` int32 ``[N, 9]``, ``offsets`` int64 ``[S + 1]``.
    """

    features: NDArray[np.float32]
    statistics: NDArray[np.int32]
    offsets: NDArray[np.int64]

    @property
    def sentences(self) -> int:
        """Number of sentences."""
        return self.offsets.size - 1


class NbestPool:
    """Grows by batches; a candidate with the same sentence, features and BLEU statistics as an earlier one is dropped.

    The text itself is not kept: two texts with equal features and statistics are the same to MERT.
    """

    def __init__(self, sentences: int, features: int) -> None:
        """An empty pool for so many sentences and features."""
        self._sentences = sentences
        self._batches: list[CandidateBatch] = []
        self._hashes = np.empty(0, np.uint64)
        self._features = features

    def __len__(self) -> int:
        return self._hashes.size

    def add(self, batch: CandidateBatch) -> CandidateBatch:
        """Add the candidates that are new; return them."""
        features = batch.features + np.float32(0)  # no negative zeros
        hashes = np.empty(len(features), np.uint64)
        row_hashes(features.view(np.uint32), batch.statistics, batch.sentences, hashes)
        first = np.zeros(hashes.size, np.bool_)
        first[np.unique(hashes, return_index=True)[1]] = True
        new = first & ~np.isin(hashes, self._hashes)
        fresh = CandidateBatch(features[new], batch.statistics[new], batch.sentences[new])
        self._batches.append(fresh)
        self._hashes = np.sort(np.concatenate([self._hashes, hashes[new]]))
        return fresh

    def flat(self) -> FlatPool:
        """All candidates so far, in the layout of the kernels."""
        sentences = np.concatenate([batch.sentences for batch in self._batches])
        order = np.argsort(sentences, kind="stable")
        features = np.empty((self._features, order.size), np.float32)
        np.take(np.concatenate([batch.features for batch in self._batches]).T, order, axis=1, out=features)
        statistics = np.concatenate([batch.statistics for batch in self._batches])[order]
        offsets = np.zeros(self._sentences + 1, np.int64)
        np.cumsum(np.bincount(sentences, minlength=self._sentences), out=offsets[1:])
        return FlatPool(features, statistics, offsets)


def candidate_batch(candidates: Sequence[NDArray[np.float64]], statistics: NDArray[np.int32]) -> CandidateBatch:
    """A batch from each sentence's feature vectors (``[n_s, F]``) and the statistics of all in the same order."""
    sizes = [len(rows) for rows in candidates]
    return CandidateBatch(
        np.concatenate(candidates).astype(np.float32),
        statistics,
        np.repeat(np.arange(len(sizes), dtype=np.int32), sizes),
    )
