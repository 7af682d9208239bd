"""Hash functions of 64-bit integers."""

import numpy as np

from rnnsmt.base.kernels.decorator import kernel

GOLDEN_RATIO = np.uint64(0x9E3779B97F4A7C15)
"""2^64 divided by the golden ratio: increment of SplitMix64, also a good multiplier for hashing."""

_MIX = np.uint64(0xFF51AFD7ED558CCD)
"""First multiplier of MurmurHash3's 64-bit finaliser."""

_S32 = np.uint64(32)

_S29 = np.uint64(29)


@kernel(inline="always")
def mix(value):
    """Mix the bits of a ``uint64`` key, so that its low bits can index a hash table.

    Faster and weaker than ``scramble``; for tables that compare full keys.
    """
    value ^= value >> _S32
    value *= _MIX
    value ^= value >> _S29
    return value


@kernel()
def scramble(value):
    """Apply the finaliser of SplitMix64 (Steele et al. 2014) to a ``uint64``.

    Strong enough for hashes that identify their content without a further comparison.
    """
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))
