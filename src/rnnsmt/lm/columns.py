"""Long columns of numbers, in memory as long as they fit, otherwise in temporary files.

The estimator reads its columns sequentially in slices, so that the same code processes a text that fits in memory (one
slice) and one that does not (many slices; each column is a plain binary file).
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt

ALL = 1 << 62
"""Slice length that exceeds the length of any column."""

LEAST = 1 << 16
"""Minimum slice length, regardless of the memory limit."""


class Column:
    """A sequence of numbers of one dtype; values are appended at the end and read in slices."""

    def __init__(self, dtype: npt.DTypeLike, file: IO[bytes] | None = None) -> None:
        """Initialise an empty column, in memory or in an open file."""
        self.dtype = np.dtype(dtype)
        self._parts: list[npt.NDArray] = []
        self._length = 0
        self._file = file

    def __len__(self) -> int:
        """Return the number of values."""
        return self._length

    def append(self, values: npt.NDArray) -> None:
        """Append values."""
        values = np.ascontiguousarray(values, self.dtype)
        if self._file is not None:
            self._file.seek(self._length * self.dtype.itemsize)
            self._file.write(values.data)
        elif len(values):
            self._parts.append(values)
        self._length += len(values)

    def read(self, start: int, stop: int) -> npt.NDArray:
        """Return the values ``start <= i < stop``, limited to the column's length.

        The result is a view where possible, and must not be modified.
        """
        start, stop = max(start, 0), min(stop, self._length)
        if stop <= start:
            return np.empty(0, self.dtype)
        if self._file is not None:
            self._file.flush()
            self._file.seek(start * self.dtype.itemsize)
            return np.fromfile(self._file, self.dtype, stop - start)
        if len(self._parts) > 1:  # merge once; later reads return views
            self._parts = [np.concatenate(self._parts)]
        return self._parts[0][start:stop]

    def spill(self, file: IO[bytes]) -> None:
        """Move the column from memory to a file."""
        parts, self._parts, self._length = self._parts, [], 0
        self._file = file
        for part in parts:
            self.append(part)

    def close(self) -> None:
        """Release the memory or the file."""
        self._parts = []
        self._length = 0
        if self._file is not None:
            self._file.close()
            self._file = None


class Workspace:
    """Factory of columns: in memory at first, in temporary files after ``use_disk``.

    The files are unnamed, so that nothing remains on disk, even if the process is killed.

    Args:
        memory: memory of the whole estimation, in bytes.
        folder: directory of the temporary files, created when needed.
    """

    def __init__(self, memory: int, folder: Path) -> None:
        self.memory = memory
        self.on_disk = False
        self._folder = folder

    def use_disk(self) -> None:
        """Create all further columns as files."""
        self.on_disk = True

    def file(self) -> IO[bytes]:
        """Create a temporary file."""
        self._folder.mkdir(parents=True, exist_ok=True)
        return tempfile.TemporaryFile(dir=self._folder, prefix=".tmp-lm-")

    def column(self, dtype: npt.DTypeLike) -> Column:
        """Create an empty column."""
        return Column(dtype, self.file() if self.on_disk else None)

    def slice_length(self, bytes_per_item: int) -> int:
        """Return the number of items of the given size that may be in memory at a time."""
        return max(self.memory // (4 * bytes_per_item), LEAST) if self.on_disk else ALL


def slices(length: int, step: int) -> Iterator[tuple[int, int]]:
    """Yield ``(start, stop)`` of consecutive slices that cover ``length`` items."""
    for start in range(0, length, min(step, max(length, 1))):
        yield start, min(start + step, length)
