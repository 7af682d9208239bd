"""Shortlist vocabularies: word <-> id.

File format: N + 1 lines, the line number from 0 is the id: ``<null>`` (id 0, "no word", never predicted), ``<unk>``
(id 1), the N - 2 most frequent words, ``</s>`` (the last id, N). The position defines the special entries, not the
spelling: a word of the corpus that is spelt like one of them is an ordinary word.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.io import InputError, check_utf8, read_line_blocks, read_lines, write_lines
from rnnsmt.base.progress import Meter

NULL, UNK = 0, 1
FIRST, SECOND, LAST = "<null>", "<unk>", "</s>"


def split(line: str) -> list[str]:
    """Split a line at ASCII white space only; a no-break space is part of a word."""
    return [word.decode() for word in line.encode().split()]


def check_size(size: int) -> None:
    """Check the size of a vocabulary, EOS not counted.

    Raises:
        InputError: the size is below 3.
    """
    if size < 3:
        raise InputError(f"--vocab-size {size}: must be at least 3: id 0, UNK and a word")


def count_words(paths: list[str], what: str) -> Counter[str]:
    """Count the words of texts. what: says in the message for empty texts where words are missing.

    Raises:
        InputError: a text is missing, damaged or not UTF-8, or there are no words at all.
    """
    counts: Counter[bytes] = Counter()
    for path in paths:
        meter = Meter(f"counting the words of {Path(path).name}")
        for block in read_line_blocks(path):
            check_utf8(block, path, meter.done)
            counts.update(block.split())
            meter.add(block.count(b"\n"))
    if not counts:
        raise InputError(f"{paths[0]}: no words {what}; create it again")
    return Counter({word.decode(): number for word, number in counts.items()})


class Vocabulary:
    """The words of one side; ``len`` is the number of softmax classes, including ids 0, UNK and EOS."""

    def __init__(self, words: Iterable[str]) -> None:
        """Build a vocabulary of distinct words; the first one gets id 2.

        Raises:
            ValueError: a word occurs twice.
        """
        self.words = [FIRST, SECOND, *words, LAST]
        self.index = {word: i for i, word in enumerate(self.words[2:-1], 2)}
        if len(self.index) != len(self.words) - 3:
            raise ValueError("a word occurs twice in the vocabulary")

    def __len__(self) -> int:
        return len(self.words)

    @property
    def eos(self) -> int:
        """Return the id of the end of a phrase or sentence, the last id."""
        return len(self.words) - 1

    @classmethod
    def from_counts(cls, counts: Mapping[str, int], size: int) -> "Vocabulary":
        """Build a vocabulary of the most frequent words, with ids below ``size``; ties are broken by spelling.

        As in the paper, EOS is not counted: size 15,000 gives 14,998 words and 15,001 classes.
        """
        ranked = sorted(counts, key=lambda word: (-counts[word], word))
        return cls(ranked[: max(size - 2, 0)])

    @classmethod
    def read(cls, path: str | Path) -> "Vocabulary":
        """Read a file that ``write`` wrote.

        Raises:
            InputError: the file is missing, a special entry is not at its position, a line is empty, a word occurs
                twice.
        """
        lines = list(read_lines(path))
        if len(lines) < 3 or (lines[0], lines[1], lines[-1]) != (FIRST, SECOND, LAST):
            raise InputError(
                f"{path}: does not begin with {FIRST}, {SECOND} and end with {LAST}; prepare the data again"
            )
        seen: set[str] = set()
        for number, word in enumerate(lines[2:-1], 3):
            if not word or word in seen:
                raise InputError(f"{path}, line {number}: an empty or duplicate word; prepare the data again")
            seen.add(word)
        return cls(lines[2:-1])

    def write(self, path: str | Path) -> None:
        """Write one word per line, atomically."""
        write_lines(path, self.words)

    def ids(self, words: Iterable[str], eos: bool = False) -> NDArray[np.int32]:
        """Return the ids of words, int32, UNK for unknown words; with EOS appended if ``eos``."""
        found = [self.index.get(word, UNK) for word in words]
        return np.array([*found, self.eos] if eos else found, np.int32)

    def text(self, ids: Iterable[int]) -> str:
        """Return the words of ids up to EOS, joined by spaces."""
        found = []
        for i in ids:
            if i == self.eos:
                break
            found.append(self.words[i])
        return " ".join(found)

    def hash(self) -> str:
        """Return the SHA-256 of the file's content, by which models and pairs identify their vocabulary."""
        return hashlib.sha256("".join(f"{word}\n" for word in self.words).encode()).hexdigest()
