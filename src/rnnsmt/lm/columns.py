"""Long columns of numbers, in memory while they fit and in temporary files when they do not.

The estimator walks over its columns from front to back in slices, so that the same code serves a text that fits in
memory (one slice) and one that does not (many slices, every column a plain binary file).
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt

ALL = 1 << 62
"""A slice length no column reaches."""

LEAST = 1 << 16
"""Slices are not made shorter than that, however little memory is allowed."""


class Column:
    """A sequence of numbers of one dtype that grows at its end and is read in slices."""

    def __init__(self, dtype: npt.DTypeLike, file: IO[bytes] | None = None) -> None:
        self.dtype = np.dtype(dtype)
        self._parts: list[npt.NDArray] = []
        self._length = 0
        self._file = file

    def __len__(self) -> int:
        return self._length

    def append(self, values: npt.NDArray) -> None:
        """Add values at the end."""
        values = np.ascontiguousarray(values, self.dtype)
        if self._file is not None:
            self._file.seek(self._length * self.dtype.itemsize)
            self._file.write(values.data)
        elif len(values):
            self._parts.append(values)
        self._length += len(values)

    def read(self, start: int, stop: int) -> npt.NDArray:
        """The values ``start <= i < stop``, cut at the column's end; read-only in meaning, a view where possible."""
        start, stop = max(start, 0), min(stop, self._length)
        if stop <= start:
            return np.empty(0, self.dtype)
        if self._file is not None:
            self._file.flush()
            self._file.seek(start * self.dtype.itemsize)
            return np.fromfile(self._file, self.dtype, stop - start)
        if len(self._parts) > 1:
            self._parts = [np.concatenate(self._parts)]
        return self._parts[0][start:stop]

    def spill(self, file: IO[bytes]) -> None:
        """Move the column from memory to a file."""
        parts, self._parts, self._length = self._parts, [], 0
        self._file = file
        for part in parts:
            self.append(part)

    def close(self) -> None:
        """Give the memory or the file back."""
        self._parts = []
        self._length = 0
        if self._file is not None:
            self._file.close()
            self._file = None


class Workspace:
    """Makes columns: in memory at first, in temporary files once ``use_disk`` was called.

    The files have no name, so that nothing stays even of a killed process.

    Args:
        memory: bytes that the whole estimation may use.
        folder: where the temporary files are made when they are needed.
    """

    def __init__(self, memory: int, folder: Path) -> None:
        self.memory = memory
        self.on_disk = False
        self._folder = folder

    def use_disk(self) -> None:
        """From now on columns are files."""
        self.on_disk = True

    def file(self) -> IO[bytes]:
        """A new temporary file."""
        self._folder.mkdir(parents=True, exist_ok=True)
        return tempfile.TemporaryFile(dir=self._folder, prefix=".tmp-lm-")

    def column(self, dtype: npt.DTypeLike) -> Column:
        """A new empty column."""
        return Column(dtype, self.file() if self.on_disk else None)

    def slice_length(self, bytes_per_item: int) -> int:
        """How many items of that size may be held at once: all, or a share of the memory."""
        return max(self.memory // (4 * bytes_per_item), LEAST) if self.on_disk else ALL


def slices(length: int, step: int) -> Iterator[tuple[int, int]]:
    """``(start, stop)`` of consecutive slices that cover ``length`` items."""
    for start in range(0, length, min(step, max(length, 1))):
        yield start, min(start + step, length)
