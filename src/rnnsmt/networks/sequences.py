"""Sequences of ids on disk, one after the other in a memory-mapped array, and where each begins."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rnnsmt.arrays import read_array
from rnnsmt.io import InputError

BLOCK = 1 << 22
"""Numbers that are read at a time."""


class Sequences(NamedTuple):
    """words: int32, each sequence ends in EOS; offsets: int64 [sequences + 1]; both may be memory-mapped."""

    words: NDArray[np.int32]
    offsets: NDArray[np.int64]

    def phrase(self, i: int) -> NDArray[np.int32]:
        """The ids of sequence i, with EOS."""
        return self.words[self.offsets[i] : self.offsets[i + 1]]

    def lengths(self, index: NDArray[np.int64]) -> NDArray[np.int64]:
        """Words of the sequences ``index`` [K], with EOS."""
        return self.offsets[index + 1] - self.offsets[index]

    def joined(self, index: NDArray[np.int64]) -> NDArray[np.int32]:
        """The ids of the sequences ``index`` one after the other, with EOS."""
        lengths = self.lengths(index)
        places = np.repeat(self.offsets[index] - (np.cumsum(lengths) - lengths), lengths)
        return self.words[places + np.arange(len(places))]


def open_sequences(folder: Path, prefix: str, number: object, classes: object, remedy: str) -> Sequences:
    """Map ``<prefix>words.npy`` and ``<prefix>offsets.npy`` of a folder; every id is looked at once.

    number, classes: how many sequences there must be, and what all ids must be below.

    Raises:
        InputError: missing, damaged, or not what it must be; the sentence ends in ``remedy``.
    """
    words = read_array(folder / f"{prefix}words.npy", np.int32, 1, remedy, mapped=True)
    offsets = read_array(folder / f"{prefix}offsets.npy", np.int64, 1, remedy, mapped=True)
    if len(offsets) - 1 != number or offsets[-1] != len(words) or not _sound(words, offsets, classes):
        raise InputError(
            f"{folder}: {prefix}words.npy and {prefix}offsets.npy are inconsistent with the folder's .json; {remedy}"
        )
    return Sequences(words, offsets)


def _sound(words: NDArray[np.int32], offsets: NDArray[np.int64], classes: object) -> bool:
    """Whether all ids are below ``classes`` and every sequence ends in the last one; reads the files once."""
    if not isinstance(classes, int) or offsets[0] != 0:
        return False
    for begin in range(0, len(words), BLOCK):
        block = words[begin : begin + BLOCK]
        if block.min() < 0 or block.max() >= classes:
            return False
    for begin in range(0, len(offsets) - 1, BLOCK):
        bounds = offsets[begin : begin + BLOCK + 1]
        if np.diff(bounds).min() <= 0 or bounds[-1] > len(words) or (words[bounds[1:] - 1] != classes - 1).any():
            return False
    return True


def count_ids(words: NDArray[np.int32], classes: int) -> NDArray[np.int64]:
    """How often every id occurs, int64 [classes]; reads a memory-mapped array once, piece by piece."""
    counts = np.zeros(classes, np.int64)
    for begin in range(0, len(words), BLOCK):
        counts += np.bincount(words[begin : begin + BLOCK], minlength=classes)
    return counts
