"""Reading and writing of arrays in ``.npy`` files, which one stage writes for another."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import BadZipFile

import numpy as np
from numpy.lib import format as npy
from numpy.typing import DTypeLike, NDArray

from rnnsmt.base.io import InputError, atomic_path


def read_array(
    path: str | Path, kind: type[np.generic], dimensions: int, remedy: str, mapped: bool = False
) -> NDArray[Any]:
    """Read or memory-map a ``.npy`` file.

    Args:
        path: the file.
        kind: required type of the elements, e.g. ``np.int64``, or ``np.floating`` for any floating-point type.
        dimensions: required number of dimensions.
        remedy: advice at the end of the error message.
        mapped: memory-map the file, so that elements are read on access.

    Raises:
        InputError: the file is missing or damaged, or has another type or number of dimensions; the message ends with
            ``remedy``.
    """
    try:
        array = np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; {remedy}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error}); {remedy}") from None
    except (ValueError, EOFError, BadZipFile):
        raise InputError(f"{path}: not a complete .npy file; {remedy}") from None
    if not isinstance(array, np.ndarray):
        raise InputError(f"{path}: contains several arrays, not one; {remedy}")
    if not np.issubdtype(array.dtype, kind) or not array.dtype.isnative or array.ndim != dimensions:
        found, needed = f"{array.dtype} in {array.ndim}", f"{kind.__name__} in {dimensions}"
        raise InputError(f"{path}: has {found} dimension(s), expected: {needed}; {remedy}")
    return array


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
        """Write the header again with the final length."""
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
