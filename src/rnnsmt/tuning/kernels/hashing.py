"""Hashes of n-best candidates, by which the pool recognises duplicates."""

import numpy as np

from rnnsmt.base.kernels.decorator import kernel
from rnnsmt.base.kernels.hashing import GOLDEN_RATIO, scramble


@kernel()
def row_hashes(features, statistics, sentences, out):
    """Write a 64-bit hash of every candidate to ``out``: SplitMix64 over its sentence number and its 32-bit words.

    Args:
        features: uint32 ``[n, F]``, bit patterns of the float32 features, without negative zeros.
        statistics: int32 ``[n, 9]``.
        sentences: int32 ``[n]``, sentence number of each candidate.
        out: uint64 ``[n]``, written.
    """
    for n in range(out.size):
        value = np.uint64(sentences[n])
        for k in range(features.shape[1] + statistics.shape[1]):
            word = features[n, k] if k < features.shape[1] else np.uint32(statistics[n, k - features.shape[1]])
            value = scramble((value ^ np.uint64(word)) + GOLDEN_RATIO)
        out[n] = value
