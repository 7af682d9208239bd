"""Directories of sequences of ids, which the ``prepare`` commands write and the trainings read.

A directory with these files, where SIDE is ``source.``, ``target.``, or empty for a text:

* ``SIDEwords.npy``: int32, the ids of all sequences one after the other, each ending in EOS.
* ``SIDEoffsets.npy``: int64 [sequences + 1], where each sequence begins.
* a JSON file: numbers, the fingerprint, and the SHA-256 of all this; written last, so that an interrupted directory
  has none.
* the vocabularies, and what else the chapter adds.

The arrays are written in pieces and memory-mapped for reading.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.arrays import GrowingArray, growing_array, read_array
from rnnsmt.base.io import InputError, checksum_of, read_json, write_json
from rnnsmt.networks.vocabulary import UNK

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


class IdFormat(NamedTuple):
    """A kind of directory.

    Attributes:
        json: name of the JSON file.
        version: entry ``format`` of the JSON file.
        sequences: name of the sequences, of which the JSON file has the number.
        sides: ``source`` and ``target``; one empty string for a text.
        remedy: advice at the end of error messages.
    """

    json: str
    version: str
    sequences: str
    sides: tuple[str, ...]
    remedy: str


class IdDirectory(NamedTuple):
    """An open directory: its path, the content of its JSON file, and the sequences of every side."""

    path: Path
    stats: dict[str, Any]
    sides: tuple[Sequences, ...]

    @property
    def fingerprint(self) -> str:
        """Return the SHA-256 of the vocabularies and all sequences."""
        return str(self.stats["fingerprint"])


def open_id_directory(path: str | Path, kind: IdFormat) -> IdDirectory:
    """Map the arrays of a directory that ``write_id_directory`` wrote, and check every id once.

    Raises:
        InputError: a file is missing, damaged, or inconsistent with the others.
    """
    path = Path(path)
    stats = read_json(path / kind.json)
    if not isinstance(stats, dict) or stats.get("format") != kind.version or "fingerprint" not in stats:
        raise InputError(f"{path / kind.json}: written by another version; {kind.remedy}")
    # directories of earlier versions have no checksum
    if "checksum" in stats and stats["checksum"] != checksum_of(stats):
        raise InputError(f"{path / kind.json}: is damaged: its values are not those that were written; {kind.remedy}")
    number = stats.get(kind.sequences)
    sides = [
        open_sequences(path, _file_prefix(side), number, stats.get(f"{side} classes".strip()), kind.remedy)
        for side in kind.sides
    ]
    return IdDirectory(path, stats, tuple(sides))


def write_about(path: Path, kind: IdFormat, about: Mapping[str, object]) -> None:
    """Write the JSON file of a directory, with its checksum."""
    write_json(path / kind.json, {**about, "checksum": checksum_of(about)})


def check_vocabulary(directory: IdDirectory, kind: IdFormat, side: str, vocabulary_hash: str) -> None:
    """Check that the vocabulary of a side is that of its ids.

    Raises:
        InputError: it was changed after the ids were written.
    """
    if vocabulary_hash != directory.stats.get(f"{side} vocabulary".strip()):
        file = f"vocab.{side}.txt" if side else "vocab.txt"
        raise InputError(f"{directory.path}: {file} is newer than {kind.json}; {kind.remedy}")


class IdWriter:
    """Writer of the arrays of a directory; all sides have the same number of sequences.

    Attributes:
        unknown: per side, the number of UNK so far.
    """

    def __init__(self, words: list[GrowingArray], offsets: list[GrowingArray]) -> None:
        """Begin with no sequences. words, offsets: the files of every side."""
        self._words, self._offsets = words, offsets
        self.unknown = [0] * len(words)
        for array in offsets:
            array.append(np.zeros(1, np.int64))

    def append(self, side: int, ids: NDArray[np.int32], lengths: NDArray[np.int64]) -> None:
        """Append sequences, one after the other in ``ids``, each ending in EOS, to a side. lengths: with EOS."""
        self._offsets[side].append(self._words[side].length + np.cumsum(lengths))
        self._words[side].append(ids)
        self.unknown[side] += int(np.count_nonzero(ids == UNK))

    @property
    def sequences(self) -> int:
        """Return the number of sequences of a side."""
        return self._offsets[0].length - 1

    def ids(self, side: int) -> int:
        """Return the number of ids of a side without EOS."""
        return self._words[side].length - self.sequences

    def fingerprint(self, vocabulary_hashes: Iterable[str]) -> str:
        """Return the SHA-256 of all arrays and vocabularies."""
        digest = hashlib.sha256()
        for array in (*self._words, *self._offsets):
            digest.update(array.digest.digest())
        for value in vocabulary_hashes:
            digest.update(value.encode())
        return digest.hexdigest()


@contextmanager
def write_id_directory(path: Path, kind: IdFormat) -> Iterator[IdWriter]:
    """Write the arrays of a directory; they are replaced at the end of the ``with`` block.

    The JSON file, without which an interrupted directory is invalid, is removed first; the caller writes it last.
    """
    with ExitStack() as stack:
        words, offsets = (
            [stack.enter_context(growing_array(path / f"{_file_prefix(side)}{part}.npy", dtype)) for side in kind.sides]
            for part, dtype in (("words", np.int32), ("offsets", np.int64))
        )
        yield IdWriter(words, offsets)
        (path / kind.json).unlink(missing_ok=True)


def _file_prefix(side: str) -> str:
    """Return the beginning of the names of the arrays of a side."""
    return f"{side}." if side else ""


def open_sequences(directory: Path, prefix: str, number: object, classes: object, remedy: str) -> Sequences:
    """Map ``<prefix>words.npy`` and ``<prefix>offsets.npy`` of a directory, and check every id once.

    Args:
        directory: the directory.
        prefix: of the file names.
        number: the number of sequences there must be.
        classes: all ids must be below it.
        remedy: the end of the error message.

    Raises:
        InputError: a file is missing, damaged, or inconsistent with ``number`` and ``classes``.
    """
    words = read_array(directory / f"{prefix}words.npy", np.int32, 1, remedy, mapped=True)
    offsets = read_array(directory / f"{prefix}offsets.npy", np.int64, 1, remedy, mapped=True)
    if len(offsets) - 1 != number or offsets[-1] != len(words) or not _sound(words, offsets, classes):
        files = f"{prefix}words.npy and {prefix}offsets.npy"
        raise InputError(f"{directory}: {files} are inconsistent with the directory's .json; {remedy}")
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
