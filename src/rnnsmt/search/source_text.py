"""Source sentences: reading them, their words as strings and as bytes, and whether they look like raw text."""

import re
from collections.abc import Collection
from pathlib import Path

import numpy as np

from rnnsmt.io import InputError, read_lines_or_stdin, words_of

MAX_WORDS = 4000
"""A longer line is refused: nobody means it, and its search would need gigabytes."""


UNKNOWN_SHARE = 0.1
"""From this share of unknown words on ``raw_text_warning`` looks at them."""

_RAW = re.compile(r"\w[.,;:!?\"»”)\]]+$|^[\"«“(\[]+\w")


def read_sentences(path: str | Path) -> list[str]:
    """The lines of a tokenised text; ``-`` is standard input.

    Raises:
        InputError: a line is not UTF-8, has a control character, or has ``|||``, which separates Moses' fields.
    """
    sentences = []
    for number, line in enumerate(read_lines_or_stdin(path), 1):
        if "|||" in line:
            raise InputError(f"{path}, line {number}: ||| separates fields in Moses' files; escape it first")
        for character in line:
            if character < " " or "\x7f" <= character <= "\x9f":
                raise InputError(
                    f"{path}, line {number}: control character U+{ord(character):04X}; "
                    "clean the text with 'rnnsmt corpus prepare --keep-all' first"
                )
        sentences.append(line)
    check_lengths(sentences, path)
    return sentences


def check_lengths(sentences: list[str], path: str | Path = "the input") -> None:
    """Refuse a sentence of more than ``MAX_WORDS`` words; path: for the error's sentence.

    Raises:
        InputError: there is one.
    """
    for number, sentence in enumerate(sentences, 1):
        if len(sentence) > 2 * MAX_WORDS and len(words_of(sentence)) > MAX_WORDS:
            raise InputError(f"{path}, line {number}: more than {MAX_WORDS} words in one sentence; split it")


def raw_text_warning(sentences: list[str], unknown: Collection[str]) -> str | None:
    """A sentence for the user of a text of which much is unknown and looks like raw text; None for another text.

    unknown: words that the model has no translation of. Those look raw that begin with a capital letter or have
    punctuation in front of or behind letters.
    """
    unknown = set(unknown)
    words = [word for sentence in sentences for word in words_of(sentence)]
    missing = [word for word in words if word in unknown]
    raw = [word for word in missing if _RAW.search(word) or word[0].isupper()]
    if len(missing) < UNKNOWN_SHARE * len(words) or 2 * len(raw) < len(missing) or not raw:
        return None
    return (
        f"warning: {100 * len(missing) / len(words):.0f} % of the words are unknown, {raw[0]} for example; "
        "is the input tokenised and truecased as the training text was?"
    )


def sentence_bytes(sentence: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A sentence as bytes with single spaces, and the first byte and the end of every word (``int64``)."""
    words = [word.encode("utf-8") for word in words_of(sentence)]
    lengths = np.array([len(word) for word in words], np.int64)
    ends = np.cumsum(lengths + 1) - 1
    return np.frombuffer(b" ".join(words) or b" ", np.uint8), ends - lengths, ends
