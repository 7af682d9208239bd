"""Reading and writing of ``.npy`` files, by which the stages of the pipeline exchange arrays."""

import hashlib
import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from tokenize import TokenError
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.lib import format as npy
from numpy.typing import DTypeLike, NDArray

from rnnsmt.base.errors import InputError
from rnnsmt.base.paths import StrPath
from rnnsmt.base.writing import atomic_path

_DAMAGED = (EOFError, ValueError, TypeError, OverflowError, MemoryError, RecursionError, SyntaxError, TokenError)
"""Exceptions that numpy raises for a damaged header, which it parses as Python code."""


def concatenated_ranges(begins: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the concatenation of the ranges ``begins[i]``, ..., ``begins[i] + lengths[i] - 1`` for all i."""
    return np.repeat(begins - (np.cumsum(lengths) - lengths), lengths) + np.arange(lengths.sum())


def read_array(path: StrPath, kind: type[np.generic], remedy: str) -> NDArray[Any]:
    """Map a ``.npy`` file of one dimension into memory; elements are read on access.

    Args:
        kind: required type of the elements, e.g. ``np.int64``, or ``np.floating`` for any floating-point type.
        remedy: advice at the end of the error message.
    """
    try:
        array = npy.open_memmap(path, "r")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; {remedy}") from None
    except _DAMAGED:
        raise InputError(f"{path}: not a complete .npy file; {remedy}") from None
    if not np.issubdtype(array.dtype, kind) or not array.dtype.isnative or array.ndim != 1:
        raise InputError(
            f"{path}: has {array.dtype} in {array.ndim} dimension(s), expected: {kind.__name__} in 1; {remedy}"
        )
    return cast(NDArray[Any], array)


def release_pages(mapping: object) -> None:
    """Unmap the pages of a file that have been read; the next access maps them again.

    The pages count as memory of this process only while they are mapped. They remain in the system's page cache.

    Args:
        mapping: a mapped file that this process never changes, e.g. the ``base`` of an array that ``read_array`` or
            ``ArrayFile`` mapped (not of a slice); anything else is ignored.
    """
    mapping = mapping.obj if isinstance(mapping, memoryview) else mapping
    if isinstance(mapping, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        mapping.madvise(mmap.MADV_DONTNEED)


def expect_random_access(mapping: object) -> None:
    """Tell the operating system that a file will be read in random order, so that it does not read ahead.

    Args:
        mapping: as for ``release_pages``.
    """
    mapping = mapping.obj if isinstance(mapping, memoryview) else mapping
    if isinstance(mapping, mmap.mmap) and hasattr(mmap, "MADV_RANDOM"):
        mapping.madvise(mmap.MADV_RANDOM)


class GrowingArray:
    """One-dimensional ``.npy`` file that is written in pieces; ``digest`` is the SHA-256 of its values."""

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
        """Write the header again with the final length."""
        self._out.seek(0)
        self._write_header()
        self._out.flush()

    def _write_header(self) -> None:
        """Write the header; numpy pads the shape, so that the header with the final length has the same size."""
        shape = {"descr": npy.dtype_to_descr(self.dtype), "fortran_order": False, "shape": (self.length,)}
        npy.write_array_header_1_0(self._out, shape)


@contextmanager
def growing_array(path: StrPath, dtype: DTypeLike) -> Iterator[GrowingArray]:
    """Write a ``GrowingArray`` atomically."""
    with atomic_path(path) as temporary, temporary.open("wb+") as out:
        array = GrowingArray(out, dtype)
        yield array
        array.finish()
