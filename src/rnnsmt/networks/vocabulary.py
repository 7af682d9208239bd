"""Shortlist vocabularies: word <-> id.

A file of N + 1 lines, line number from 0 = id: ``<null>`` (0, "no word", never a target), ``<unk>`` (1), the N - 2 most
frequent words, ``</s>`` (the last id, N). A word of the corpus that looks like one of these three is still a word of
its own: position decides, not spelling.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rnnsmt.io import InputError, check_utf8, read_line_blocks, read_lines, write_lines
from rnnsmt.progress import Meter

NULL, UNK = 0, 1
FIRST, SECOND, LAST = "<null>", "<unk>", "</s>"


def split(line: str) -> list[str]:
    """The words of a line: only ASCII white space lies between words, so a no-break space belongs to its word."""
    return [word.decode() for word in line.encode().split()]


def check_size(size: int) -> None:
    """What a vocabulary is made of at least.

    Raises:
        InputError: below 3.
    """
    if size < 3:
        raise InputError(f"--vocab-size {size}: must be at least 3: id 0, UNK and a word")


def count_words(paths: list[str], what: str) -> Counter[str]:
    """How often every word occurs in the texts.

    Raises:
        InputError: a text is missing, damaged or not UTF-8; there are no words at all.
    """
    counts: Counter[bytes] = Counter()
    for path in paths:
        meter = Meter(f"counting the words of {Path(path).name}")
        for block in read_line_blocks(path):
            check_utf8(block, path, meter.done)
            counts.update(block.split())
            meter.add(block.count(b"\n"))
    if not counts:
        raise InputError(f"{paths[0]}: no words {what}; make it again")
    return Counter({word.decode(): number for word, number in counts.items()})


class Vocabulary:
    """The words of one side; ``len`` is the number of softmax classes, with ids 0, UNK and EOS."""

    def __init__(self, words: Iterable[str]) -> None:
        """Words in the order of their ids, the first gets id 2; each once."""
        self.words = [FIRST, SECOND, *words, LAST]
        self.index = {word: i for i, word in enumerate(self.words[2:-1], 2)}
        if len(self.index) != len(self.words) - 3:
            raise ValueError("a word occurs twice in the vocabulary")

    def __len__(self) -> int:
        return len(self.words)

    @property
    def eos(self) -> int:
        """The id of the end of a phrase: the last one."""
        return len(self.words) - 1

    @classmethod
    def from_counts(cls, counts: Mapping[str, int], size: int) -> "Vocabulary":
        """The most frequent words, with ids below ``size``; words of equal count in the order of their spelling.

        As in the paper EOS is not counted: size 15,000 makes 14,998 words and 15,001 classes.
        """
        ranked = sorted(counts, key=lambda word: (-counts[word], word))
        return cls(ranked[: max(size - 2, 0)])

    @classmethod
    def read(cls, path: str | Path) -> "Vocabulary":
        """Read a file that ``write`` wrote.

        Raises:
            InputError: missing, the reserved lines are not where they belong, an empty line, a word that occurs twice.
        """
        lines = list(read_lines(path))
        if len(lines) < 3 or (lines[0], lines[1], lines[-1]) != (FIRST, SECOND, LAST):
            raise InputError(
                f"{path}: does not begin with {FIRST}, {SECOND} and end with {LAST}; prepare the data again"
            )
        seen: set[str] = set()
        for number, word in enumerate(lines[2:-1], 3):
            if not word or word in seen:
                raise InputError(f"{path}, line {number}: no word, or one that occurs twice; prepare the data again")
            seen.add(word)
        return cls(lines[2:-1])

    def write(self, path: str | Path) -> None:
        """Write one word a line, whole or not at all."""
        write_lines(path, self.words)

    def ids(self, words: Iterable[str], eos: bool = False) -> NDArray[np.int32]:
        """Words -> ids, UNK where unknown; with EOS behind them if asked for."""
        found = [self.index.get(word, UNK) for word in words]
        return np.array([*found, self.eos] if eos else found, np.int32)

    def text(self, ids: Iterable[int]) -> str:
        """Ids -> words with blanks between them, up to EOS."""
        found = []
        for i in ids:
            if i == self.eos:
                break
            found.append(self.words[i])
        return " ".join(found)

    def hash(self) -> str:
        """SHA-256 of the file's content: models and pairs remember with which vocabulary they were made."""
        return hashlib.sha256("".join(f"{word}\n" for word in self.words).encode()).hexdigest()
