"""The accumulated n-best lists of all iterations: distinct candidates of every sentence, in flat arrays."""

import numpy as np

from rnnsmt.kernels.decorator import kernel


@kernel()
def row_hashes(features, statistics, sentences, out):
    """A 64-bit hash of every candidate (splitmix64 over its words): uint32 ``[n, F]``, int32 ``[n, 9]``, ``[n]``."""
    for n in range(out.size):
        value = np.uint64(sentences[n])
        for k in range(features.shape[1] + statistics.shape[1]):
            word = features[n, k] if k < features.shape[1] else np.uint32(statistics[n, k - features.shape[1]])
            value = (value ^ np.uint64(word)) + np.uint64(0x9E3779B97F4A7C15)
            value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            value ^= value >> np.uint64(31)
        out[n] = value
