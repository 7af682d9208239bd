"""Files with named one-dimensional arrays in the safetensors format, written in pieces and mapped into memory to read.

A file begins with the length of its header (8 bytes, little-endian). The header is a JSON object with the type, length
and offsets of each array, and with further strings in ``__metadata__``. Any program that reads safetensors can read the
file: ``safetensors.numpy.load_file(path)`` returns the arrays by name.
"""

import hashlib
import json
import mmap
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rnnsmt.base.arrays import release_pages
from rnnsmt.base.errors import InputError
from rnnsmt.base.paths import StrPath
from rnnsmt.base.writing import atomic_path, scratch_directory

_TYPES = {
    "F64": np.float64, "F32": np.float32, "I64": np.int64, "U64": np.uint64, "I32": np.int32, "U32": np.uint32,
    "U16": np.uint16, "I8": np.int8, "U8": np.uint8,
}  # fmt: skip
"""Types of array elements by their names in the header."""

_NAMES = {np.dtype(kind): name for name, kind in _TYPES.items()}

MAX_HEADER = 1 << 24
"""Maximum length of a header in bytes."""

ALIGNMENT = 64
"""The first array begins at a multiple of this number of bytes, the size of a cache line."""


class ArrayFile(Mapping[str, NDArray[Any]]):
    """Mapping from names to the arrays of a file, which is mapped into memory; elements are read on access.

    Attributes:
        path: the file.
        entries: strings in ``__metadata__`` of the header, by name.
    """

    def __init__(self, path: StrPath, remedy: str, *, writeable: bool = False) -> None:
        """Map a file.

        Args:
            remedy: advice at the end of error messages.
            writeable: make the arrays writeable, for kernels that are compiled for writeable arrays. Changes are not
                written to the file: a page is copied when it is changed.

        Raises:
            InputError: the file is missing, incomplete or in another format.
        """
        self.path = Path(path)
        try:
            with self.path.open("rb") as file:
                if writeable:
                    # pages that are never written stay shared between processes, and need no swap reserve
                    flags = mmap.MAP_PRIVATE | getattr(mmap, "MAP_NORESERVE", 0)
                    self._map = mmap.mmap(file.fileno(), 0, flags, mmap.PROT_READ | mmap.PROT_WRITE)
                else:
                    self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except FileNotFoundError:
            raise InputError(f"{path}: no such file; {remedy}") from None
        except ValueError:
            raise InputError(f"{path}: is empty; {remedy}") from None
        try:
            length = int.from_bytes(self._map[:8], "little")
            if length > MAX_HEADER:
                raise ValueError
            header: dict[str, Any] = json.loads(self._map[8 : 8 + length])
            self.entries: dict[str, str] = header.pop("__metadata__", {})
            if not all(isinstance(value, str) for value in self.entries.values()):
                raise ValueError
            self._arrays = {name: self._array(8 + length, **described) for name, described in header.items()}
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            raise InputError(f"{path}: not a complete file of arrays; {remedy}") from None

    def _array(self, start: int, dtype: str, shape: list[int], data_offsets: list[int]) -> NDArray[Any]:
        kind, (length,) = np.dtype(_TYPES[dtype]), shape
        begin, end = data_offsets
        if not 0 <= begin <= end or end - begin != length * kind.itemsize:
            raise ValueError
        return np.frombuffer(self._map, kind, length, start + begin) if length else np.zeros(0, kind)

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def release(self) -> None:
        """Unmap the pages that have been read, e.g. in a pass over an array."""
        release_pages(self._map)


class ArrayWriter:
    """Writer of arrays that grow by appending.

    Attributes:
        entries: strings for ``__metadata__`` of the header, by name.
        lengths: number of elements of every array so far.
    """

    def __init__(self, types: Mapping[str, np.dtype[Any]], files: Mapping[str, BinaryIO]) -> None:
        self.entries: dict[str, str] = {}
        self.lengths = dict.fromkeys(types, 0)
        self._types, self._files = types, files
        self._digests = {name: hashlib.sha256() for name in types}

    def append(self, name: str, values: NDArray[Any]) -> None:
        """Append values to an array after conversion to the type of the array."""
        data = np.ascontiguousarray(values, self._types[name]).tobytes()
        self._files[name].write(data)
        self._digests[name].update(data)
        self.lengths[name] += len(values)

    def digest(self) -> str:
        """Return the SHA-256 of the names and values of all arrays."""
        digest = hashlib.sha256()
        for name in sorted(self._digests):
            digest.update(f"{name} {self._digests[name].hexdigest()}\n".encode())
        return digest.hexdigest()


@contextmanager
def write_arrays(path: StrPath, types: Mapping[str, DTypeLike]) -> Iterator[ArrayWriter]:
    """Write a file of arrays atomically; the ``with`` block appends values to the arrays.

    Inside the block, each array is a temporary file in a scratch directory.

    Args:
        types: type of each array by name.
    """
    kinds = {name: np.dtype(kind) for name, kind in types.items()}
    # arrays with larger elements first, so that every array is aligned to the size of its elements
    names = sorted(kinds, key=lambda name: -kinds[name].itemsize)
    with atomic_path(path) as temporary, scratch_directory(path) as scratch:
        parts = {name: scratch / str(number) for number, name in enumerate(names)}
        with ExitStack() as stack:
            files = {name: stack.enter_context(part.open("wb")) for name, part in parts.items()}
            writer = ArrayWriter(kinds, files)
            yield writer
        header: dict[str, Any] = {"__metadata__": writer.entries}
        end = 0
        for name in names:
            begin, end = end, end + writer.lengths[name] * kinds[name].itemsize
            place = {"shape": [writer.lengths[name]], "data_offsets": [begin, end]}
            header[name] = {"dtype": _NAMES[kinds[name]]} | place
        text = json.dumps(header).encode()
        text += b" " * (-(8 + len(text)) % ALIGNMENT)
        with temporary.open("wb") as out:
            out.write(len(text).to_bytes(8, "little") + text)
            for part in parts.values():
                with part.open("rb") as file:
                    shutil.copyfileobj(file, out, 1 << 20)
