"""The accumulated n-best lists of all iterations: distinct candidates of every sentence, in flat arrays."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rnnsmt.tuning.kernels.hashing import row_hashes


@dataclass(frozen=True)
class Lump:
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
    """Grows by lumps; a candidate with the same sentence, features and BLEU statistics as an earlier one is dropped.

    The text itself is not kept: two texts with equal features and statistics are the same to MERT.
    """

    def __init__(self, sentences: int, features: int) -> None:
        """An empty pool for so many sentences and features."""
        self._sentences = sentences
        self._lumps: list[Lump] = []
        self._hashes = np.empty(0, np.uint64)
        self._features = features

    def __len__(self) -> int:
        return self._hashes.size

    def add(self, lump: Lump) -> Lump:
        """Add the candidates that are new; return them."""
        features = lump.features + np.float32(0)  # no negative zeros
        hashes = np.empty(len(features), np.uint64)
        row_hashes(features.view(np.uint32), lump.statistics, lump.sentences, hashes)
        first = np.zeros(hashes.size, np.bool_)
        first[np.unique(hashes, return_index=True)[1]] = True
        new = first & ~np.isin(hashes, self._hashes)
        fresh = Lump(features[new], lump.statistics[new], lump.sentences[new])
        self._lumps.append(fresh)
        self._hashes = np.sort(np.concatenate([self._hashes, hashes[new]]))
        return fresh

    def flat(self) -> FlatPool:
        """All candidates so far, in the layout of the kernels."""
        sentences = np.concatenate([lump.sentences for lump in self._lumps])
        order = np.argsort(sentences, kind="stable")
        features = np.empty((self._features, order.size), np.float32)
        np.take(np.concatenate([lump.features for lump in self._lumps]).T, order, axis=1, out=features)
        statistics = np.concatenate([lump.statistics for lump in self._lumps])[order]
        offsets = np.zeros(self._sentences + 1, np.int64)
        np.cumsum(np.bincount(sentences, minlength=self._sentences), out=offsets[1:])
        return FlatPool(features, statistics, offsets)


def lump_of(candidates: Sequence[NDArray[np.float64]], statistics: NDArray[np.int32]) -> Lump:
    """A lump from each sentence's feature vectors (``[n_s, F]``) and the statistics of all in the same order."""
    sizes = [len(rows) for rows in candidates]
    return Lump(
        np.concatenate(candidates).astype(np.float32),
        statistics,
        np.repeat(np.arange(len(sizes), dtype=np.int32), sizes),
    )
