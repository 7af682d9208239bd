"""Hashes of n-best candidates, compiled: by them the pool tells new candidates from those that it has."""

import numpy as np

from rnnsmt.kernels.decorator import kernel
from rnnsmt.kernels.hashing import GOLDEN_RATIO, scramble


@kernel()
def row_hashes(features, statistics, sentences, out):
    """A 64-bit hash of every candidate (SplitMix64 over its words): uint32 ``[n, F]``, int32 ``[n, 9]``, ``[n]``."""
    for n in range(out.size):
        value = np.uint64(sentences[n])
        for k in range(features.shape[1] + statistics.shape[1]):
            word = features[n, k] if k < features.shape[1] else np.uint32(statistics[n, k - features.shape[1]])
            value = scramble((value ^ np.uint64(word)) + GOLDEN_RATIO)
        out[n] = value
