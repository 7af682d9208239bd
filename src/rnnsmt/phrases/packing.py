"""Phrases as integers that sort in the same order as the lines of a phrase table.

``LC_ALL=C sort`` compares the bytes of lines ``source ||| target ||| ...``. A space is smaller than every byte of a
word, and ``|||`` follows the last word. Therefore, if words are numbered in byte order, with ``|||`` in the vocabulary
as the end of a phrase, number sequences compare in the same way as lines. Words are packed big-endian, several per
int64 key.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.kernels.decorator import UNCOUNTED, kernel

END = b"|||"


class Side(NamedTuple):
    """A ``Packing`` for kernels: ``width``, ``per_key``, ``stop``, and the words.

    The word of code c is ``text[offsets[c - 1]:offsets[c]]``.
    """

    width: int
    per_key: int
    stop: int
    text: Any  # uint8
    offsets: Any  # int64 [V + 1]


class Packing:
    """Bit layout of one side's phrases of up to ``max_length`` words.

    Attributes:
        words: vocabulary in byte order, including ``|||``; the code of a word is its index + 1, and 0 is no word.
        width: number of bits of a code.
        per_key: number of codes of a key.
        keys: number of keys of a phrase.
        stop: code of ``|||``.
    """

    def __init__(self, words: Iterable[bytes], max_length: int) -> None:
        """Lay out a vocabulary, in any order, with or without ``|||``."""
        self.words = sorted({*words, END})
        self.width = len(self.words).bit_length()
        self.per_key = min(63 // self.width, max_length)  # 63 bits, so no key is negative
        self.keys = -(-max_length // self.per_key)
        self.stop = self.words.index(END) + 1

    def codes(self) -> dict[bytes, int]:
        """Return the code of every word."""
        return {word: code for code, word in enumerate(self.words, 1)}

    def pack(
        self, words: NDArray[np.int32], codes: NDArray[np.int64], spans: NDArray[np.int32], side: int
    ) -> NDArray[np.int64]:
        """Return the keys of phrases, int64 [keys, N].

        Args:
            words: flat side of a block.
            codes: code of every word number.
            spans: int32 [N, 4], as filled by ``extract_block``.
            side: 0 for source, 1 for target.
        """
        keys = np.empty((self.keys, len(spans)), np.int64)
        pack_phrases(words, codes, spans, side, self.stop, self.width, self.per_key, keys)
        return keys

    def side(self) -> Side:
        """Return the packing for kernels."""
        offsets = np.zeros(len(self.words) + 1, np.int64)
        np.cumsum([len(word) for word in self.words], out=offsets[1:])
        return Side(self.width, self.per_key, self.stop, np.frombuffer(b"".join(self.words), np.uint8), offsets)


@kernel()
def pack_phrases(words: Any, codes: Any, spans: Any, side: int, stop: int, width: int, per_key: int, keys: Any) -> None:
    """Pack the words of each phrase into integers that sort as the lines of a phrase table.

    Args:
        words: int32, flat side of the block.
        codes: int64 [V], code of each word number, ≥ 1, in byte order of the words.
        spans: int32 [N, 4], as filled by ``extract_block``.
        side: 0 for source, 1 for target.
        stop: code of ``|||``, the end of a phrase that does not fill the keys; the slots after it are 0.
        width: number of bits of a code.
        per_key: number of codes of a key.
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
    """Rows of an extract file with complete source groups: N rows, P distinct pairs, S source phrases."""

    pairs: NDArray[np.int64]  # [P + 1], first row of each distinct pair, N at the end
    sources: NDArray[np.int64]  # [S + 1], first row of each source phrase, N at the end
    source_keys: NDArray[np.int64]  # [K, N or more], packed phrases
    target_keys: NDArray[np.int64]


@kernel()
def same_phrase(keys: Any, a: int, b: int) -> bool:
    """Return whether rows a and b of ``keys`` (int64 [K, N]) are the same phrase."""
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
        Pairs and sources, int64, both with N at the end.
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
    """Unpack phrase ``row`` of ``keys`` (int64 [K, N]) into word codes, int64; return the number of words."""
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
