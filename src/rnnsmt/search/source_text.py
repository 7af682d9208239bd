"""Source sentences: reading and checking them, words as strings and bytes, and detection of raw text."""

import re
from collections.abc import Collection

import numpy as np

from rnnsmt.base.errors import InputError
from rnnsmt.base.paths import StrPath
from rnnsmt.base.reading import check_tokenised, read_lines_or_stdin, words_of

MAX_WORDS = 4000
"""Maximum number of words in a line. Longer lines are not sentences; their search would need gigabytes of memory."""


UNKNOWN_SHARE = 0.1
"""Minimum share of unknown words for ``raw_text_warning``."""

_RAW = re.compile(r"\w[.,;:!?\"»”)\]]+$|^[\"«“(\[]+\w")


def read_sentences(path: StrPath) -> list[str]:
    """Read the lines of a tokenised text; ``-`` is standard input."""
    sentences = list(read_lines_or_stdin(path))
    check_sentences(sentences, path)
    return sentences


def check_sentences(sentences: list[str], path: StrPath = "the input") -> None:
    """Check that sentences are tokenised text (``check_tokenised``) of at most ``MAX_WORDS`` words each.

    Args:
        path: name of the text in the error message.

    Raises:
        InputError: a sentence is not tokenised text, or has more words.
    """
    check_tokenised("\n".join(sentences).encode(), path)
    for number, sentence in enumerate(sentences, 1):
        # n words with spaces between them have at least 2 n - 1 characters, so most lines need not be split
        if len(sentence) > 2 * MAX_WORDS and len(words_of(sentence)) > MAX_WORDS:
            raise InputError(f"{path}, line {number}: more than {MAX_WORDS} words in one sentence; split it")


def raw_text_warning(sentences: list[str], unknown: Collection[str]) -> str | None:
    """Return a warning if many words of a text are unknown and look like words of raw text; otherwise None.

    A word looks raw if it begins with a capital letter, or if punctuation precedes or follows its letters.

    Args:
        unknown: words without a translation in the model.
    """
    unknown = set(unknown)
    words = [word for sentence in sentences for word in words_of(sentence)]
    missing = [word for word in words if word in unknown]
    raw = [word for word in missing if _RAW.search(word) or word[0].isupper()]
    if len(missing) < UNKNOWN_SHARE * len(words) or 2 * len(raw) < len(missing) or not raw:
        return None
    return (
        f"{100 * len(missing) / len(words):.0f} % of the words are unknown, {raw[0]} for example; "
        "is the input tokenised and truecased as the training text was?"
    )


def sentence_bytes(words: list[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return words as UTF-8 with single spaces between them, and the begin and end of each word (``int64``)."""
    encoded = [word.encode("utf-8") for word in words]
    lengths = np.array([len(word) for word in encoded], np.int64)
    ends = np.cumsum(lengths + 1) - 1
    return np.frombuffer(b" ".join(encoded) or b" ", np.uint8), ends - lengths, ends
