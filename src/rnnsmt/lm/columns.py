"""Columns of numbers in memory or in temporary files, which grow at the end and are read in slices; a radix sort.

The estimator of n-gram models reads columns sequentially in slices. The same code processes a text that fits in memory
(as a single slice) and a text that does not (in many slices; each column is a plain binary file).
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt

from rnnsmt.base.kernels.decorator import kernel

ALL = 1 << 62
"""Slice length that exceeds the length of any column."""

LEAST = 1 << 16
"""Minimum slice length, regardless of the memory limit."""


class Column:
    """Sequence of numbers of the same dtype, which are appended at the end and read in slices."""

    def __init__(self, dtype: npt.DTypeLike, file: IO[bytes] | None = None) -> None:
        """Initialise an empty column, in memory or in an open file."""
        self.dtype = np.dtype(dtype)
        self._parts: list[npt.NDArray] = []
        self._length = 0
        self._file = file

    def __len__(self) -> int:
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
        for block in parts:
            self.append(block)

    def close(self) -> None:
        """Release the memory or the file."""
        self._parts = []
        self._length = 0
        if self._file is not None:
            self._file.close()
            self._file = None


class Workspace:
    """Factory of columns: in memory, or in temporary files once ``on_disk`` is set.

    The files have no names, so that nothing remains on disk, even if the process is killed.

    Args:
        memory: memory limit of the whole estimation in bytes.
        directory: directory of the temporary files; created when needed.
    """

    def __init__(self, memory: int, directory: Path) -> None:
        self.memory = memory
        self.on_disk = False
        self._directory = directory

    def file(self) -> IO[bytes]:
        """Create a temporary file."""
        self._directory.mkdir(parents=True, exist_ok=True)
        return tempfile.TemporaryFile(dir=self._directory, prefix=".tmp-lm-")

    def column(self, dtype: npt.DTypeLike) -> Column:
        """Create an empty column."""
        return Column(dtype, self.file() if self.on_disk else None)

    def slice_length(self, bytes_per_item: int) -> int:
        """Return the maximum slice length for items that need ``bytes_per_item`` bytes of memory."""
        return max(self.memory // (4 * bytes_per_item), LEAST) if self.on_disk else ALL


def slices(length: int, step: int) -> Iterator[tuple[int, int]]:
    """Yield ``(start, stop)`` of consecutive slices that cover ``length`` items."""
    for start in range(0, length, min(step, max(length, 1))):
        yield start, min(start + step, length)


DIGIT = 11
"""Maximum number of bits of a digit of the radix sort: 2^11 int64 bucket offsets (16 KiB) fit in the L1 cache."""


@kernel()
def sort_keys(keys, bits):
    """Sort uint64 keys of at most ``bits`` bits (LSD radix sort, stable).

    Returns:
        The sorted keys uint64 [n], and their positions before sorting, uint32 [n].
    """
    n = len(keys)
    source, target = keys.copy(), np.empty(n, np.uint64)
    origin, moved = np.empty(n, np.uint32), np.empty(n, np.uint32)
    for i in range(n):
        origin[i] = i
    # the smallest number of passes, with digits of equal width
    passes = max((bits + DIGIT - 1) // DIGIT, 1)
    width = (bits + passes - 1) // passes
    size = 1 << width
    mask = np.uint64(size - 1)
    ends = np.empty(size, np.int64)
    for turn in range(passes):
        shift = np.uint64(turn * width)
        ends[:] = 0
        for i in range(n):
            ends[(source[i] >> shift) & mask] += 1
        # bucket sizes to bucket offsets
        total = 0
        for digit in range(size):
            count = ends[digit]
            ends[digit] = total
            total += count
        for i in range(n):
            digit = (source[i] >> shift) & mask
            at = ends[digit]
            ends[digit] = at + 1
            target[at] = source[i]
            moved[at] = origin[i]
        source, target = target, source
        origin, moved = moved, origin
    return source, origin
