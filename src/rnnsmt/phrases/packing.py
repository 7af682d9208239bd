"""Phrases as integers that sort in the same order as the lines of a phrase table.

``LC_ALL=C sort`` compares the bytes of lines ``source ||| target ||| ...``. A space is smaller than every byte of a
word, and ``|||`` follows the last word. Therefore, if words are numbered in byte order, with ``|||`` in the vocabulary
as the end of a phrase, number sequences compare in the same way as lines. Words are packed big-endian, several per
int64 key.
"""

import json
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rnnsmt.phrases.kernels.extraction import pack_phrases

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
            max_length: maximum number of words of a phrase.
        """
        width = (len(words) + 1).bit_length()
        per_key = min(63 // width, max_length)  # 63 bits, so that no key is negative
        return cls(sorted([*words, END]), width, per_key, -(-max_length // per_key))

    @property
    def stop(self) -> int:
        """Code of ``|||``."""
        return self.words.index(END) + 1

    def codes_of(self, words: list[bytes]) -> NDArray[np.int64]:
        """Return the codes of words, int64 [V]."""
        code = {word: place for place, word in enumerate(self.words, 1)}
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
