"""Phrase pairs as ids on disk, a directory of ``rnnsmt.networks.id_directory``; pair i is line i (from 0) of the table.

The JSON file is ``pairs.json``, the vocabularies ``vocab.source.txt`` and ``vocab.target.txt``. If the origins of the
pairs are known, there are also:

* ``held_out.npy``: int64, ascending, the indices of the pairs that only occur in sentences of the first fold.
* ``first_fold.npy``, ``last_fold.npy``: uint8 [pairs], first and last fold of the sentences that contain a pair.
* ``counts.npy``: int32 [pairs], how often a pair was extracted.
"""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.arrays import read_array
from rnnsmt.base.io import InputError
from rnnsmt.base.options import bounds_of_part
from rnnsmt.networks.batches import Index
from rnnsmt.networks.id_directory import IdDirectory, IdFormat, Sequences, check_vocabulary, open_id_directory
from rnnsmt.networks.vocabulary import UNK, Vocabulary
from rnnsmt.phrases.aligned_text import FOLDS

SIDES = ("source", "target")

FORMAT = IdFormat("pairs.json", "rnnsmt-pairs-1", "pairs", SIDES, "run rnn prepare again")

HELD_OUT = "held_out.npy"

FIRST_FOLD, LAST_FOLD, COUNTS = "first_fold.npy", "last_fold.npy", "counts.npy"

BLOCK = 1 << 20
"""Number of pairs that are read at a time."""


class Pairs:
    """The pairs of a phrase table."""

    def __init__(self, directory: IdDirectory) -> None:
        """Read the vocabularies."""
        self.directory, self.sides, self.stats = directory.path, directory.sides, directory.stats
        self.fingerprint = directory.fingerprint
        """SHA-256 of the vocabularies and all pairs."""
        self.vocabularies = tuple(Vocabulary.read(self.directory / f"vocab.{side}.txt") for side in SIDES)
        self.held_out: Index = np.zeros(0, np.int64)
        """Indices of the pairs that only occur in held-out sentences; empty if the origins are not known."""
        self.direction = "direct"
        """Direction, one of ``rnnsmt.rnn.settings.DIRECTIONS``: which side is read and which is predicted."""

    @classmethod
    def open(cls, path: str | Path) -> "Pairs":
        """Open a directory that ``rnn prepare`` wrote; only the vocabularies are read into memory.

        Raises:
            InputError: a file is missing, damaged, or inconsistent with the others.
        """
        directory = open_id_directory(path, FORMAT)
        pairs = cls(directory)
        for side, vocabulary in zip(SIDES, pairs.vocabularies, strict=True):
            check_vocabulary(directory, FORMAT, side, vocabulary.hash())
        if "held-out pairs" in pairs.stats:
            pairs.held_out = read_array(pairs.directory / HELD_OUT, np.int64, 1, FORMAT.remedy)
            if len(pairs.held_out) != pairs.stats["held-out pairs"]:
                raise InputError(f"{pairs.directory}: {HELD_OUT} is inconsistent with pairs.json; {FORMAT.remedy}")
        return pairs

    def __len__(self) -> int:
        return len(self.sides[0].offsets) - 1

    def source(self, i: int) -> NDArray[np.int32]:
        """Return the source phrase of pair i as ids, with EOS."""
        return self.sides[0].phrase(i)

    def target(self, i: int) -> NDArray[np.int32]:
        """Return the target phrase of pair i as ids, with EOS."""
        return self.sides[1].phrase(i)

    def longest(self) -> int:
        """Return the number of words of the longest phrase of either side."""
        parts = (side.offsets[i : i + BLOCK + 1] for side in self.sides for i in range(0, len(self), BLOCK))
        return max(int(np.diff(part).max()) for part in parts) - 1

    def in_direction(self, direction: str) -> "Pairs":
        """Return the pairs as a network of this direction reads and predicts them.

        ``inverse``: source and target are exchanged. ``target``: every source phrase is empty, EOS alone.
        """
        found = copy.copy(self)
        found.direction = direction
        if direction == "inverse":
            found.sides, found.vocabularies = self.sides[::-1], self.vocabularies[::-1]
        elif direction == "target":
            # a view of a single element, whatever the number of pairs
            eos = np.broadcast_to(np.int32(self.vocabularies[0].eos), len(self))
            found.sides = Sequences(eos, np.arange(len(self) + 1)), self.sides[1]
        return found

    def counts(self) -> NDArray[np.int32]:
        """Return how often each pair was extracted, int32 [pairs].

        Raises:
            InputError: the origins of the pairs are not known.
        """
        return self._of_origins(COUNTS, np.int32)

    def left_out(self, part: int, parts: int, begin: int = 0, end: int | None = None) -> NDArray[np.bool_]:
        """Return which of the pairs ``begin`` to ``end - 1`` only occur in sentences of part ``part`` (from 1).

        The folds of the sentences (``rnnsmt.phrases.aligned_text``) are divided into ``parts`` nearly equal parts.

        Raises:
            InputError: the origins of the pairs are not known, or ``parts`` is below 2 or above the number of folds.
        """
        if not 2 <= parts <= FOLDS:
            raise InputError(f"--leave-out {part}/{parts}: give 2 to {FOLDS} parts, the sentences are in {FOLDS} folds")
        first, last = (self._of_origins(name, np.uint8)[begin:end] for name in (FIRST_FOLD, LAST_FOLD))
        least, above = bounds_of_part((part, parts), FOLDS)
        return np.asarray((first >= least) & (last < above))

    def _of_origins(self, name: str, dtype: type[np.generic]) -> NDArray[Any]:
        """Memory-map one of the arrays [pairs] that ``rnn.pair_preparation`` writes.

        Raises:
            InputError: the origins of the pairs are not known, or the array has another length.
        """
        if "held-out pairs" not in self.stats:
            raise InputError(f"{self.directory}: the origins of the pairs are missing; run rnn prepare with --origins")
        found = read_array(self.directory / name, dtype, 1, FORMAT.remedy, mapped=True)
        if len(found) != len(self):
            raise InputError(f"{self.directory}: {name} is inconsistent with pairs.json; {FORMAT.remedy}")
        return found


def word_frequencies(pairs: Pairs, counts: NDArray[np.int32], block: int = BLOCK) -> NDArray[np.int64]:
    """Count the target words and EOS of an epoch, int64 [classes]. counts: [pairs], occurrences of each pair."""
    side, classes = pairs.sides[1], len(pairs.vocabularies[1])
    found = np.zeros(classes, np.int64)
    for begin in range(0, len(pairs), block):
        offsets = np.asarray(side.offsets[begin : begin + block + 1])
        times = np.repeat(counts[begin : begin + block], np.diff(offsets))
        weighted = np.bincount(side.words[offsets[0] : offsets[-1]], weights=times, minlength=classes)
        found += np.rint(weighted).astype(np.int64)
    return found


def words_outside(side: Sequences, block: int = BLOCK) -> Iterator[NDArray[np.int64]]:
    """Yield the number of UNK in every phrase, for ``block`` phrases at a time."""
    for begin in range(0, len(side.offsets) - 1, block):
        offsets = np.asarray(side.offsets[begin : begin + block + 1])
        unknown = side.words[offsets[0] : offsets[-1]] == UNK
        # no phrase is empty: each ends in EOS
        yield np.add.reduceat(unknown, offsets[:-1] - offsets[0], dtype=np.int64)
