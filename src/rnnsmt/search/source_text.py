"""Source sentences: reading them, and their words as strings and as bytes."""

from pathlib import Path

import numpy as np

from rnnsmt.io import InputError, read_lines

MAX_WORDS = 4000
"""A longer line is refused: nobody means it, and its search would need gigabytes."""


def read_sentences(path: str | Path) -> list[str]:
    """The lines of a tokenised text.

    Raises:
        InputError: a line is not UTF-8, has a control character, or has ``|||``, which separates Moses' fields.
    """
    sentences = []
    for number, line in enumerate(read_lines(path), 1):
        if "|||" in line:
            raise InputError(f"{path}, line {number}: ||| separates fields in Moses' files; escape it first")
        for character in line:
            if character < " " or "\x7f" <= character <= "\x9f":
                raise InputError(
                    f"{path}, line {number}: control character U+{ord(character):04X}; "
                    "clean the text with 'rnnsmt corpus prepare --keep-all' first"
                )
        sentences.append(line)
    return sentences


def check_lengths(sentences: list[str]) -> None:
    """Refuse a sentence of more than ``MAX_WORDS`` words.

    Raises:
        InputError: there is one.
    """
    for number, sentence in enumerate(sentences, 1):
        if len(sentence) > 2 * MAX_WORDS and len(words_of(sentence)) > MAX_WORDS:
            raise InputError(f"the input, line {number}: more than {MAX_WORDS} words in one sentence; split it")


def words_of(sentence: str) -> list[str]:
    """The words of a tokenised sentence: what stands between ASCII spaces, as in the tables."""
    return [word for word in sentence.split(" ") if word]


def sentence_bytes(sentence: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A sentence as bytes with single spaces, and the first byte and the end of every word (``int64``)."""
    words = [word.encode("utf-8") for word in words_of(sentence)]
    lengths = np.array([len(word) for word in words], np.int64)
    ends = np.cumsum(lengths + 1) - 1
    return np.frombuffer(b" ".join(words) or b" ", np.uint8), ends - lengths, ends
