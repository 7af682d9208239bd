"""Sequences of ids on disk: one memory-mapped array of all ids, and the offset of each sequence."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.arrays import read_array
from rnnsmt.base.io import InputError

BLOCK = 1 << 22
"""Number of array elements that are read at a time."""


class Sequences(NamedTuple):
    """Sequences of ids; both arrays may be memory-mapped.

    Attributes:
        words: int32, the ids of all sequences one after the other, each ending in EOS.
        offsets: int64 [sequences + 1], where each sequence begins in ``words``.
    """

    words: NDArray[np.int32]
    offsets: NDArray[np.int64]

    def phrase(self, i: int) -> NDArray[np.int32]:
        """Return the ids of sequence i, with EOS."""
        return self.words[self.offsets[i] : self.offsets[i + 1]]

    def lengths(self, index: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the lengths of the sequences ``index`` [K], with EOS."""
        return self.offsets[index + 1] - self.offsets[index]

    def joined(self, index: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the ids of the sequences ``index`` [K] one after the other, with EOS."""
        lengths = self.lengths(index)
        # position in ``words`` minus position in the result, constant over a sequence
        places = np.repeat(self.offsets[index] - (np.cumsum(lengths) - lengths), lengths)
        return self.words[places + np.arange(len(places))]


def open_sequences(folder: Path, prefix: str, number: object, classes: object, remedy: str) -> Sequences:
    """Map ``<prefix>words.npy`` and ``<prefix>offsets.npy`` of a directory, and check every id once.

    Args:
        folder: the directory.
        prefix: of the file names.
        number: the number of sequences there must be.
        classes: all ids must be below it.
        remedy: the end of the error message.

    Raises:
        InputError: a file is missing, damaged, or inconsistent with ``number`` and ``classes``.
    """
    words = read_array(folder / f"{prefix}words.npy", np.int32, 1, remedy, mapped=True)
    offsets = read_array(folder / f"{prefix}offsets.npy", np.int64, 1, remedy, mapped=True)
    if len(offsets) - 1 != number or offsets[-1] != len(words) or not _sound(words, offsets, classes):
        raise InputError(
            f"{folder}: {prefix}words.npy and {prefix}offsets.npy are inconsistent with the folder's .json; {remedy}"
        )
    return Sequences(words, offsets)


def _sound(words: NDArray[np.int32], offsets: NDArray[np.int64], classes: object) -> bool:
    """Return whether all ids are below ``classes`` and every sequence ends in EOS, the last id; read the files once."""
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
    """Count every id, int64 [classes]; a memory-mapped array is read once, in blocks."""
    counts = np.zeros(classes, np.int64)
    for begin in range(0, len(words), BLOCK):
        counts += np.bincount(words[begin : begin + BLOCK], minlength=classes)
    return counts
