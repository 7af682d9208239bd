"""Arrays in ``.npy`` files, as one stage writes them for another."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnnsmt.io import InputError

HEADER = 128
"""Bytes before the elements; a file of no more, an empty array, cannot be mapped."""


def read_array(
    path: str | Path, kind: type[np.generic], dimensions: int, remedy: str, mapped: bool = False
) -> NDArray[Any]:
    """Read a ``.npy`` file, or map it.

    Args:
        path: the file.
        kind: what its elements are: ``np.int64``, or ``np.floating`` for all of these.
        dimensions: how many it has.
        remedy: what to do about a file that is refused.
        mapped: elements are read when they are asked for.

    Raises:
        InputError: missing, damaged, of another kind or number of dimensions; the sentence ends in ``remedy``.
    """
    try:
        mapped = mapped and Path(path).stat().st_size > HEADER
        array = np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; {remedy}") from None
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"{path}: cannot be read ({error}); {remedy}") from None
    if not isinstance(array, np.ndarray):
        raise InputError(f"{path}: holds several arrays, not one; {remedy}")
    if not np.issubdtype(array.dtype, kind) or array.ndim != dimensions:
        found, needed = f"{array.dtype} in {array.ndim}", f"{kind.__name__} in {dimensions}"
        raise InputError(f"{path}: holds {found} dimension(s), needed: {needed}; {remedy}")
    return array
