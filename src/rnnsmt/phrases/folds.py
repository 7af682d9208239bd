"""Folds of the sentence pairs, which record the parts of the text that a phrase pair occurs in.

A phrase pair is unseen by a network if no sentence of its training text contains it. Pairs held out from the phrase
table are not unseen in this sense, because the same sentences, and longer and shorter phrases of them, remain in
training. Therefore, every sentence pair belongs to one of ``FOLDS`` folds, determined by its words, and the phrase
table records the first and the last fold of each pair: if both are fold k, only sentences of fold k contain it.
"""

import zlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from rnnsmt.phrases.aligned_text import AlignedBlock

FOLDS = 100
"""Number of folds."""

_FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""2^64 divided by the golden ratio: an odd multiplier that spreads bits."""

Hashes = NDArray[np.uint64]


def word_hashes(words: Iterable[bytes]) -> Hashes:
    """Return a hash of every word, uint64, which depends on the word only."""
    return _scrambled(np.array([zlib.crc32(word) for word in words], np.uint64))


def sentence_folds(block: AlignedBlock, source: Hashes, target: Hashes) -> NDArray[np.uint8]:
    """Return the fold of every sentence pair, uint8 [S], which depends only on its words and their order.

    Args:
        block: sentence pairs.
        source, target: ``word_hashes`` by word number.
    """
    with np.errstate(over="ignore"):
        one = _sentences(block.source, block.source_offsets, source)
        other = _sentences(block.target, block.target_offsets, target)
        return (_scrambled(one + _scrambled(other)) % np.uint64(FOLDS)).astype(np.uint8)


def _sentences(words: NDArray[np.int32], offsets: NDArray[np.int64], hashes: Hashes) -> Hashes:
    """Return a hash of every sentence.

    It is the sum of the hashes of its words, each multiplied by an odd number for its position.
    """
    place = np.arange(len(words)) - np.repeat(offsets[:-1], np.diff(offsets))
    # differences of prefix sums modulo 2^64: exact in spite of overflow
    sums = np.zeros(len(words) + 1, np.uint64)
    np.cumsum(hashes[words] * (2 * place + 1).astype(np.uint64), out=sums[1:])
    return sums[offsets[1:]] - sums[offsets[:-1]]


def _scrambled(value: Hashes) -> Hashes:
    """Return the values with all bits mixed, by multiplication and xor-shift."""
    with np.errstate(over="ignore"):
        value = (value ^ (value >> np.uint64(31))) * _FACTOR
        value = (value ^ (value >> np.uint64(29))) * _FACTOR
        return value ^ (value >> np.uint64(32))
