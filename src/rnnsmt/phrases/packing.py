"""Phrases as integers that sort in the same order as the lines of a phrase table.

``LC_ALL=C sort`` compares the bytes of lines ``source ||| target ||| ...``. A space is smaller than every byte of a
word, and ``|||`` follows the last word. Therefore, if words are numbered in byte order, and if ``|||`` is in the
vocabulary as the end of a phrase, sequences of word numbers sort in the same way as lines. Several word numbers are
packed into an int64 key, the first one in the most significant bits.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.kernels.decorator import UNCOUNTED, kernel

END = b"|||"


class Side(NamedTuple):
    """A ``Packing`` as an argument of kernels.

    ``width``, ``per_key`` and ``stop`` are attributes of ``Packing``. The word with the code c is
    ``text[offsets[c - 1]:offsets[c]]``.
    """

    width: int
    per_key: int
    stop: int
    text: Any  # uint8
    offsets: Any  # int64 [V + 1]


class Packing:
    """Bit layout for the phrases of one side, with at most ``max_length`` words.

    Attributes:
        words: vocabulary in byte order, including ``|||``; the code of a word is its index + 1. Code 0 marks an unused
            slot.
        width: number of bits of a code.
        per_key: number of codes in a key.
        keys: number of keys of a phrase.
        stop: code of ``|||``.
    """

    def __init__(self, words: Iterable[bytes], max_length: int) -> None:
        """Create the layout for a vocabulary, which may be in any order, and with or without ``|||``."""
        self.words = sorted({*words, END})
        self.width = len(self.words).bit_length()
        self.per_key = min(63 // self.width, max_length)  # 63 bits, so that keys are not negative
        self.keys = -(-max_length // self.per_key)
        self.stop = self.words.index(END) + 1

    def codes(self) -> dict[bytes, int]:
        """Return the code of every word."""
        return {word: code for code, word in enumerate(self.words, 1)}

    def pack(
        self, words: NDArray[np.int32], codes: NDArray[np.int64], spans: NDArray[np.int32], side: int
    ) -> NDArray[np.int64]:
        """Return the keys of N phrases, int64 [keys, N].

        Args:
            words: ``source`` or ``target`` of an ``AlignedBlock``.
            codes: code of every word number.
            spans: int32 [N, 4], as filled by ``extract_block``.
            side: 0 for source, 1 for target.
        """
        keys = np.empty((self.keys, len(spans)), np.int64)
        pack_phrases(words, codes, spans, side, self.stop, self.width, self.per_key, keys)
        return keys

    def side(self) -> Side:
        """Return the packing as an argument of kernels."""
        offsets = np.zeros(len(self.words) + 1, np.int64)
        np.cumsum([len(word) for word in self.words], out=offsets[1:])
        return Side(self.width, self.per_key, self.stop, np.frombuffer(b"".join(self.words), np.uint8), offsets)


@kernel()
def pack_phrases(words: Any, codes: Any, spans: Any, side: int, stop: int, width: int, per_key: int, keys: Any) -> None:
    """Pack the words of each phrase into integers that sort like the lines of a phrase table.

    Args:
        words: int32, ``source`` or ``target`` of an ``AlignedBlock``.
        codes: int64 [V], code of each word number; codes are at least 1 and ascend in byte order of the words.
        spans: int32 [N, 4], as filled by ``extract_block``.
        side: 0 for source, 1 for target.
        stop: code of ``|||``, which ends a phrase that does not fill all slots; the slots after it are 0.
        width: number of bits of a code.
        per_key: number of codes in a key.
        keys: int64 [K, N], filled; the first word of a phrase is in the most significant used bits of the first key.
    """
    slots = keys.shape[0] * per_key
    for n in range(spans.shape[0]):
        begin, length = spans[n, 2 * side], spans[n, 2 * side + 1]
        slot = 0
        for key in range(keys.shape[0]):
            packed = np.int64(0)
            for _ in range(per_key):
                packed <<= width
                if slot < length:
                    packed |= codes[words[begin + slot]]
                elif slot == length and slot < slots:
                    packed |= stop
                slot += 1
            keys[key, n] = packed


class SortedPairs(NamedTuple):
    """Rows of an extract file that contain all rows of S source phrases: N rows with P distinct pairs."""

    pairs: NDArray[np.int64]  # [P + 1], first row of each distinct pair; the last element is N
    sources: NDArray[np.int64]  # [S + 1], first row of each source phrase; the last element is N
    source_keys: NDArray[np.int64]  # [K, N or more], packed source phrases
    target_keys: NDArray[np.int64]  # [K, N or more], packed target phrases


@kernel()
def same_phrase(keys: Any, a: int, b: int) -> bool:
    """Return whether columns a and b of ``keys`` (int64 [K, N]) are the same phrase."""
    for key in range(keys.shape[0]):  # noqa: SIM110 (numba)
        if keys[key, a] != keys[key, b]:
            return False
    return True


@kernel()
def group_rows(source_keys: Any, target_keys: Any) -> Any:
    """Return the first row of each distinct pair and of each distinct source phrase among N sorted rows.

    Args:
        source_keys, target_keys: int64 [K, N], packed phrases.

    Returns:
        ``pairs`` and ``sources`` of ``SortedPairs``.
    """
    n = source_keys.shape[1]
    pairs, sources = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    n_pairs, n_sources = 0, 0
    for row in range(n):
        new_source = row == 0 or not same_phrase(source_keys, row, row - 1)
        if new_source:
            sources[n_sources] = row
            n_sources += 1
        if new_source or not same_phrase(target_keys, row, row - 1):
            pairs[n_pairs] = row
            n_pairs += 1
    pairs[n_pairs] = n
    sources[n_sources] = n
    return pairs[: n_pairs + 1].copy(), sources[: n_sources + 1].copy()


@kernel(**UNCOUNTED)
def unpack(keys: Any, row: int, side: Side, codes: Any) -> int:
    """Unpack column ``row`` of ``keys`` (int64 [K, N]) into word codes (``codes``, int64); return their number."""
    mask = (np.int64(1) << side.width) - 1
    length = 0
    for key in range(keys.shape[0]):
        packed = keys[key, row]
        for slot in range(side.per_key - 1, -1, -1):
            code = (packed >> (slot * side.width)) & mask
            if code in (side.stop, 0):
                return length
            codes[length] = code
            length += 1
    return length
