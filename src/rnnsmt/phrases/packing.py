"""Phrases as integers that sort like the lines of a phrase table.

``LC_ALL=C sort`` of lines ``source ||| target ||| ...`` compares bytes; a blank is smaller than every byte of a word
and ``|||`` follows the last word. So words numbered in byte order, with ``|||`` among them as the end of a phrase,
compare as the lines do. Words are packed big-endian, several to an int64 key.
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
    """How one side's phrases are packed.

    words: the vocabulary in byte order, ``|||`` among it; a word's code is its place + 1, and 0 is no word.
    width: bits of a code. per_key: codes in a key. keys: keys of a phrase.
    """

    words: list[bytes]
    width: int
    per_key: int
    keys: int

    @classmethod
    def of(cls, words: list[bytes], max_length: int) -> Self:
        """The packing of phrases of up to ``max_length`` of the given words (in any order, without ``|||``)."""
        width = (len(words) + 1).bit_length()
        per_key = min(63 // width, max_length)
        return cls(sorted([*words, END]), width, per_key, -(-max_length // per_key))

    @property
    def stop(self) -> int:
        """The code of ``|||``."""
        return self.words.index(END) + 1

    def codes_of(self, words: list[bytes]) -> NDArray[np.int64]:
        """The codes of words, int64 [V]."""
        code = {word: place for place, word in enumerate(self.words, 1)}
        return np.array([code[word] for word in words], np.int64)

    def pack(
        self, words: NDArray[np.int32], codes: NDArray[np.int64], spans: NDArray[np.int32], side: int
    ) -> NDArray[np.int64]:
        """Keys int64 [keys, N] of the phrases that ``spans`` [N, 4] cuts out of the flat ``words``."""
        keys = np.empty((self.keys, len(spans)), np.int64)
        pack_phrases(words, codes, spans, side, self.stop, self.width, self.per_key, keys)
        return keys

    def to_json(self) -> str:
        """Everything but the words."""
        return json.dumps({"width": self.width, "per_key": self.per_key, "keys": self.keys})

    @classmethod
    def from_json(cls, text: str, words: list[bytes]) -> Self:
        """The packing that ``to_json`` described, with its words."""
        return cls(words, **json.loads(text))


def packing_array(packings: tuple[Packing, Packing]) -> NDArray[np.int64]:
    """(width, per_key, stop) of both sides for the kernels, int64 [2, 3]."""
    return np.array([(packing.width, packing.per_key, packing.stop) for packing in packings], np.int64)


def word_texts(packings: tuple[Packing, Packing]) -> Any:
    """(text uint8, offsets int64 [V + 1]) of both sides' words by code, for the kernels."""
    texts = []
    for packing in packings:
        offsets = np.zeros(len(packing.words) + 1, np.int64)
        np.cumsum([len(word) for word in packing.words], out=offsets[1:])
        texts.append((np.frombuffer(b"".join(packing.words), np.uint8), offsets))
    return tuple(texts)
