"""Phrases as integers that sort in the same order as the lines of a phrase table.

``LC_ALL=C sort`` compares the bytes of lines ``source ||| target ||| ...``. A space is smaller than every byte of a
word, and ``|||`` follows the last word. Therefore, if words are numbered in byte order, with ``|||`` in the vocabulary
as the end of a phrase, number sequences compare in the same way as lines. Words are packed big-endian, several per
int64 key.
"""

import json
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.kernels.decorator import kernel

END = b"|||"


@dataclass
class Packing:
    """Bit layout of one side's phrases.

    Attributes:
        words: vocabulary in byte order, including ``|||``; the code of a word is its index + 1, and 0 is no word.
        width: number of bits of a code.
        per_key: number of codes of a key.
        keys: number of keys of a phrase.
    """

    words: list[bytes]
    width: int
    per_key: int
    keys: int

    @classmethod
    def of(cls, words: list[bytes], max_length: int) -> Self:
        """Return the packing for phrases of up to ``max_length`` words.

        Args:
            words: vocabulary, in any order, without ``|||``.
        """
        width = (len(words) + 1).bit_length()
        per_key = min(63 // width, max_length)  # 63 bits, so no key is negative
        return cls(sorted([*words, END]), width, per_key, -(-max_length // per_key))

    @property
    def stop(self) -> int:
        """Return the code of ``|||``."""
        return self.words.index(END) + 1

    def codes_of(self, words: list[bytes]) -> NDArray[np.int64]:
        """Return the codes of words, int64 [V]."""
        code = {word: index for index, word in enumerate(self.words, 1)}
        return np.array([code[word] for word in words], np.int64)

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

    def to_json(self) -> str:
        """Return the packing, without its words, as JSON."""
        return json.dumps({"width": self.width, "per_key": self.per_key, "keys": self.keys})

    @classmethod
    def from_json(cls, text: str, words: list[bytes]) -> Self:
        """Return the packing from the output of ``to_json`` and its words."""
        return cls(words, **json.loads(text))


def packing_array(packings: tuple[Packing, Packing]) -> NDArray[np.int64]:
    """Return (width, per_key, stop) of both sides for the kernels, int64 [2, 3]."""
    return np.array([(packing.width, packing.per_key, packing.stop) for packing in packings], np.int64)


def word_texts(packings: tuple[Packing, Packing]) -> Any:
    """Return the words of both sides by code for the kernels: (text uint8, offsets int64 [V + 1]) per side.

    The word of code c is ``text[offsets[c - 1]:offsets[c]]``.
    """
    texts = []
    for packing in packings:
        offsets = np.zeros(len(packing.words) + 1, np.int64)
        np.cumsum([len(word) for word in packing.words], out=offsets[1:])
        texts.append((np.frombuffer(b"".join(packing.words), np.uint8), offsets))
    return tuple(texts)


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


@kernel()
def put_separator(buffer: Any, at: int) -> int:
    """Write `` ||| ``; return the index after it."""
    buffer[at] = 32
    buffer[at + 1] = 124
    buffer[at + 2] = 124
    buffer[at + 3] = 124
    buffer[at + 4] = 32
    return at + 5


@kernel()
def unpack(keys: Any, row: int, width: int, per_key: int, stop: int, codes: Any) -> int:
    """Unpack phrase ``row`` of ``keys`` into word codes; return the number of words.

    Args:
        keys: int64 [K, N], as filled by ``pack_phrases``.
        row: the phrase.
        width, per_key, stop: as in ``pack_phrases``.
        codes: int64, filled.
    """
    mask = (np.int64(1) << width) - 1
    length = 0
    for key in range(keys.shape[0]):
        packed = keys[key, row]
        for slot in range(per_key - 1, -1, -1):
            code = (packed >> (slot * width)) & mask
            if code in (stop, 0):
                return length
            codes[length] = code
            length += 1
    return length


@kernel()
def phrase_bytes(codes: Any, length: int, offsets: Any) -> int:
    """Return the number of bytes of a phrase with a space after each word."""
    size = length
    for n in range(length):
        size += offsets[codes[n]] - offsets[codes[n] - 1]
    return size


@kernel()
def put_phrase(buffer: Any, at: int, codes: Any, length: int, text: Any, offsets: Any) -> int:
    """Write the words of a phrase, separated by spaces; return the index after them.

    Args:
        buffer: uint8, output.
        at: index where the phrase begins.
        codes: word codes, 1-based.
        length: number of words.
        text: uint8, the words of the vocabulary in the order of their codes.
        offsets: int64 [V + 1], offset of each word; word c is ``text[offsets[c - 1]:offsets[c]]``.
    """
    for n in range(length):
        if n:
            buffer[at] = 32
            at += 1
        for index in range(offsets[codes[n] - 1], offsets[codes[n]]):
            buffer[at] = text[index]
            at += 1
    return at
