"""Reading and writing of arrays in ``.npy`` files, which stages exchange.

The data are followed by their SHA-256, which numpy ignores and ``read_array`` checks. Files without it, of earlier
versions or of other programs, are accepted.
"""

import hashlib
import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import DTypeLike, NDArray

from rnnsmt.base.io import InputError, atomic_path

TRAILER = b"\nSHA256 "
"""Marker between the data and their SHA-256 of 32 bytes."""

_BLOCK = 1 << 22
"""Number of bytes that are hashed at a time."""


def read_array(
    path: str | Path, kind: type[np.generic], dimensions: int, remedy: str, mapped: bool = False
) -> NDArray[Any]:
    """Read or memory-map a ``.npy`` file.

    Args:
        kind: required type of the elements, e.g. ``np.int64``, or ``np.floating`` for any floating-point type.
        dimensions: required number of dimensions.
        remedy: advice at the end of the error message.
        mapped: memory-map the file; after the check, elements are read on access.
    """
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; {remedy}") from None
    except (EOFError, ValueError):
        raise InputError(f"{path}: not a complete .npy file; {remedy}") from None
    if not np.issubdtype(array.dtype, kind) or not array.dtype.isnative or array.ndim != dimensions:
        actual, needed = f"{array.dtype} in {array.ndim}", f"{kind.__name__} in {dimensions}"
        raise InputError(f"{path}: has {actual} dimension(s), expected: {needed}; {remedy}")
    _check_data(Path(path), array, remedy)
    return array if mapped else np.array(array)


def _check_data(path: Path, array: NDArray[Any], remedy: str) -> None:
    """Compare the SHA-256 of the elements of a mapped file with the one that follows them, if there is one."""
    with path.open("rb") as stream:
        stream.seek(getattr(array, "offset", 0))
        digest = hashlib.sha256()
        for index in range(0, array.nbytes, _BLOCK):
            digest.update(stream.read(min(_BLOCK, array.nbytes - index)))
        after = stream.read(len(TRAILER) + digest.digest_size + 1)
    if after and after != TRAILER + digest.digest():
        raise InputError(f"{path}: is damaged (checksum mismatch); {remedy}")


def release_pages(mapping: object) -> None:
    """Unmap the pages of a file that have been read; the next access maps them again.

    The pages count as memory of this process only while they are mapped. They remain in the system's page cache.

    Args:
        mapping: a mapped file that this process never changes, e.g. the ``base`` of an array that ``read_array`` mapped
            (not of a slice); anything else is ignored.
    """
    if isinstance(mapping, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        mapping.madvise(mmap.MADV_DONTNEED)


def write_array(path: str | Path, array: NDArray[Any]) -> None:
    """Write an array atomically."""
    array = np.ascontiguousarray(array)
    with atomic_path(path) as temporary, temporary.open("wb") as out:
        npy.write_array(out, array, (1, 0), allow_pickle=False)
        out.write(TRAILER + hashlib.sha256(array.data).digest())


class GrowingArray:
    """One-dimensional ``.npy`` file that is written in pieces."""

    def __init__(self, out: BinaryIO, dtype: DTypeLike) -> None:
        self.dtype, self.length = np.dtype(dtype), 0
        self.digest = hashlib.sha256()
        self._out = out
        self._write_header()

    def append(self, values: NDArray[np.generic]) -> None:
        """Append values, converted to the dtype of the file."""
        data = np.ascontiguousarray(values, self.dtype).tobytes()
        self._out.write(data)
        self.digest.update(data)
        self.length += len(values)

    def finish(self) -> None:
        """Write the SHA-256 of the values, and the header again with the final length."""
        self._out.write(TRAILER + self.digest.digest())
        self._out.seek(0)
        self._write_header()
        self._out.flush()

    def _write_header(self) -> None:
        """Write the header; numpy pads the shape, so that the header with the final length has the same size."""
        shape = {"descr": npy.dtype_to_descr(self.dtype), "fortran_order": False, "shape": (self.length,)}
        npy.write_array_header_1_0(self._out, shape)


@contextmanager
def growing_array(path: str | Path, dtype: DTypeLike) -> Iterator[GrowingArray]:
    """Write a ``GrowingArray`` atomically."""
    with atomic_path(path) as temporary, temporary.open("wb+") as out:
        array = GrowingArray(out, dtype)
        yield array
        array.finish()
