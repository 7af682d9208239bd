"""Duplicates in n-best lists: of all derivations with the same target string, a list contains only the best.

The same applies to the derivations of a node of the lattice: the rest of a translation adds the same score to all
derivations of a node, so only the best derivation of each string can be part of a derivation in the list. Strings are
compared by a 64-bit hash of their words.
"""

from typing import NamedTuple

import numpy as np

from rnnsmt.base.kernels.decorator import INNER, UNCOUNTED, kernel
from rnnsmt.base.kernels.numbers import GOLDEN_RATIO, scramble

FREE = np.uint64(0)
"""Content of free slots in the set of keys."""


class TargetStrings(NamedTuple):
    """Target phrases as hashes, from ``phrase_hashes``.

    Attributes:
        target: ``int32`` [options], target phrase of each option.
        hashes, powers: ``uint64`` [phrases].
    """

    target: np.ndarray
    hashes: np.ndarray
    powers: np.ndarray


@kernel(**UNCOUNTED)
def phrase_hashes(bounds, words, hashes, powers):
    """Compute the polynomial hash of every target phrase, modulo 2^64.

    Args:
        bounds: ``int64`` [phrases + 1]; the words of phrase p are words[bounds[p]:bounds[p + 1]].
        words: ``int32`` [words], target vocabulary ids.
        hashes: ``uint64`` [phrases], filled.
        powers: ``uint64`` [phrases], filled with the factor by which the hash of a string must be multiplied before the
            hash of the phrase is added, to append the phrase to the string.
    """
    for phrase in range(hashes.shape[0]):
        value, power = np.uint64(0), np.uint64(1)
        for k in range(bounds[phrase], bounds[phrase + 1]):
            # + 1 because scramble(0) is 0: word 0 must also change the hash
            value = value * GOLDEN_RATIO + scramble(np.uint64(words[k] + 1))
            power *= GOLDEN_RATIO
        hashes[phrase] = value
        powers[phrase] = power


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def text_hash(strings, value, option):
    """Return the hash of a target string that is extended by the phrase of an option.

    Args:
        strings: ``TargetStrings``.
        value: hash of the target string before it is extended.
        option: the option; -1 for no phrase.
    """
    if option < 0:
        return value
    phrase = strings.target[option]
    return value * strings.powers[phrase] + strings.hashes[phrase]


@kernel(**UNCOUNTED)
def duplicate_key(node, derivation):
    """Return the key ``uint64`` of a derivation: of the derivations with the same key, only the best is extracted.

    Args:
        node: the node of the lattice.
        derivation: ``DERIVATION``, of which ``next`` and ``slot`` are not known yet.

    Returns:
        A hash of the node and the target string, different from ``FREE``. The node is scrambled before xor, so that
        node numbers and hashes do not cancel each other out.
    """
    return scramble(derivation.hash ^ scramble(~np.uint64(node))) | np.uint64(1)
