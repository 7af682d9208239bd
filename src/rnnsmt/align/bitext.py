"""A parallel corpus as word ids in flat arrays, the form in which the aligners read it."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rnnsmt.align.pharaoh import MAX_POSITION
from rnnsmt.io import InputError, read_parallel

Ids = npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int64]


class BitextSide(NamedTuple):
    """One language: the words of sentence ``s`` are ``ids[offsets[s]:offsets[s + 1]]``."""

    ids: Ids  # [words], from 0 in order of first appearance
    offsets: Offsets  # [sentences + 1]
    vocabulary: list[str]

    @property
    def lengths(self) -> Offsets:
        """Number of words of every sentence."""
        return np.diff(self.offsets)


class Bitext(NamedTuple):
    """Both sides of a parallel corpus; sentences may be empty."""

    source: BitextSide
    target: BitextSide

    @property
    def sentences(self) -> int:
        """Number of sentence pairs, empty ones included."""
        return len(self.source.offsets) - 1


def read_bitext(source: str | Path, target: str | Path) -> Bitext:
    """Read a tokenised parallel corpus: words are separated by blanks.

    Raises:
        InputError: as ``rnnsmt.io.read_parallel``; no line at all; a sentence of more than ``MAX_POSITION`` words.
    """
    sides: tuple[dict[str, int], dict[str, int]] = ({}, {})
    ids: tuple[list[int], list[int]] = ([], [])
    ends: tuple[list[int], list[int]] = ([0], [0])
    for number, row in enumerate(read_parallel(source, target), 1):
        for path, line, vocabulary, words, end in zip((source, target), row, sides, ids, ends, strict=True):
            words.extend([vocabulary.setdefault(word, len(vocabulary)) for word in line.split(" ") if word])
            if len(words) - end[-1] > MAX_POSITION:
                raise InputError(
                    f"{path}, line {number}: {len(words) - end[-1]:,} words in one sentence; clean the corpus first "
                    "(rnnsmt corpus prepare)"
                )
            end.append(len(words))
    if len(ends[0]) == 1:
        raise InputError(f"{source} is empty; alignment needs at least one sentence pair")
    if not any(np.diff(ends[0]) * np.diff(ends[1])):
        raise InputError(f"no line of {source} and {target} has words on both sides; alignment needs sentence pairs")
    first, second = (
        BitextSide(np.array(words, np.int32), np.array(end, np.int64), list(vocabulary))
        for vocabulary, words, end in zip(sides, ids, ends, strict=True)
    )
    return Bitext(first, second)
