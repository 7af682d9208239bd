"""Numba kernels over the pooled n-best lists: hashes of candidates, their scores, and the best of every sentence."""

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


@kernel()
def project(features, weights, out):
    """Compute ``out[n] = sum over k of weights[k] features[k, n]``; features float32 ``[F, N]``, out float64 [N]."""
    out[:] = 0.0
    # features outside, candidates inside: every row of ``features`` is contiguous, and zero weights are skipped
    for k in range(features.shape[0]):
        weight = weights[k]
        if weight != 0.0:
            row = features[k]
            for n in range(out.size):
                out[n] += weight * row[n]


@kernel()
def best_candidates(scores, offsets, out):
    """Write the index of the highest-scoring candidate of every sentence to ``out`` ``[S]``, the first one if tied."""
    for s in range(offsets.size - 1):
        best = offsets[s]
        for n in range(offsets[s] + 1, offsets[s + 1]):
            if scores[n] > scores[best]:
                best = n
        out[s] = best
