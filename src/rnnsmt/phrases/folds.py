"""Folds of the sentence pairs: which phrase pairs come from which part of the text.

A phrase pair that a network has never seen is one that no sentence of its training text contains. Pairs drawn from the
phrase table are not of that kind: the same sentences, and longer and shorter phrases of them, remain. So every sentence
pair belongs to one of ``FOLDS`` folds, by what it says, and the phrase table knows of each pair the first and the last
fold that it comes from: where both are fold k, only sentences of fold k contain it.
"""

import zlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from rnnsmt.phrases.aligned_text import AlignedBlock

FOLDS = 100

_FACTOR = np.uint64(0x9E3779B97F4A7C15)

Hashes = NDArray[np.uint64]


def word_hashes(words: Iterable[bytes]) -> Hashes:
    """Of every word, the same wherever it stands."""
    return _scrambled(np.array([zlib.crc32(word) for word in words], np.uint64))


def sentence_folds(block: AlignedBlock, source: Hashes, target: Hashes) -> NDArray[np.uint8]:
    """The fold of every sentence pair ``[S]``: it follows from its words and their order alone.

    source, target: ``word_hashes`` of the words by their numbers.
    """
    with np.errstate(over="ignore"):
        one = _sentences(block.source, block.source_offsets, source)
        other = _sentences(block.target, block.target_offsets, target)
        return (_scrambled(one + _scrambled(other)) % np.uint64(FOLDS)).astype(np.uint8)


def _sentences(words: NDArray[np.int32], offsets: NDArray[np.int64], hashes: Hashes) -> Hashes:
    """A hash of every sentence: the sum over its words, each times an odd number for its place."""
    place = np.arange(len(words)) - np.repeat(offsets[:-1], np.diff(offsets))
    sums = np.zeros(len(words) + 1, np.uint64)
    np.cumsum(hashes[words] * (2 * place + 1).astype(np.uint64), out=sums[1:])
    return sums[offsets[1:]] - sums[offsets[:-1]]


def _scrambled(value: Hashes) -> Hashes:
    with np.errstate(over="ignore"):
        value = (value ^ (value >> np.uint64(31))) * _FACTOR
        value = (value ^ (value >> np.uint64(29))) * _FACTOR
        return value ^ (value >> np.uint64(32))
