"""Hashes of 64-bit integers."""

import numpy as np

from rnnsmt.kernels.decorator import kernel

GOLDEN_RATIO = np.uint64(0x9E3779B97F4A7C15)
"""2^64 divided by the golden ratio: the step of SplitMix64, and a good odd factor."""

_MIX = np.uint64(0xFF51AFD7ED558CCD)

_S32 = np.uint64(32)

_S29 = np.uint64(29)


@kernel(inline="always")
def mix(value):
    """Spread the bits of a ``uint64`` key over the slots of a table; quick, for keys that are compared in full."""
    value ^= value >> _S32
    value *= _MIX
    value ^= value >> _S29
    return value


@kernel()
def scramble(value):
    """The finaliser of SplitMix64 (Steele et al. 2014): related numbers become unrelated ones.

    For hashes that stand for what they were made of, without another comparison.
    """
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))
