"""The decorator of compiled kernels.

numba keeps compiled code on disk and compiles again when the file of the function has changed. It does not notice that
something else has changed that it has compiled into the function: a function of another file, a constant of another
file, the order of the fields of a named tuple that is an argument. After such an edit or a ``git pull`` it would go on
with the old code. ``kernel`` makes everything that a function depends on part of what numba compares: all files in the
folder of the function, the kernels that it calls, the constants that it reads. Named tuples that kernels take must
therefore be defined in a ``kernels`` folder, in that of the function or of a kernel that it calls.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

import numba


def _import_without_scipy() -> None:
    """Import the module of numba that imports scipy for the question whether it has a BLAS; the answer is no.

    Scipy is a third of what numba takes until its first kernel runs. The module asks for no more than np.convolve and
    np.correlate, which then do without a BLAS; products of matrices ask on their own. A numba that is made otherwise
    imports what it wants, and starts as slowly as it does.
    """

    def no_blas() -> None:
        raise ImportError("no kernel needs it")

    with suppress(ImportError, AttributeError):
        linalg: Any = import_module("numba.np.linalg")
        asked = linalg.ensure_blas
        linalg.ensure_blas = no_blas
        try:
            import_module("numba.np.arraymath")
        finally:
            linalg.ensure_blas = asked


_import_without_scipy()

INNER: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Options of kernels that are only called by kernels: nothing to call them from Python is compiled."""


def kernel(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """``njit(cache=True, nogil=True)`` with a cache that also depends on the folder, kernels and constants used.

    They must be defined before the function: above it or in a module it imports.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = numba.njit(cache=True, nogil=True, **options)(function)
        if dispatcher is function:  # NUMBA_DISABLE_JIT
            return function
        dispatcher.code_stamp = _stamp(function)
        _mark_cache(dispatcher)
        return dispatcher

    return decorate


def _mark_cache(dispatcher: Any) -> None:
    """Make numba take what it has on disk for that of another version, unless it was compiled from the same code.

    numba has no documented way to say what a cached function depends on besides its own file. Its version is what it
    compares before it unpickles anything: what was pickled may name classes that are gone.

    Raises:
        RuntimeError: this numba keeps its cache in another way; going on would risk old code.
    """
    file: Any = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if not isinstance(getattr(file, "_version", None), str):
        raise RuntimeError(
            f"numba {numba.__version__} keeps compiled code in a way that rnnsmt.kernels.decorator does not know, and "
            "could run code of an earlier version of the kernels; install the numba of requirements.lock"
        )
    file._version = f"{file._version} {dispatcher.code_stamp}"


def _stamp(function: Callable[..., Any]) -> str:
    """What the compiled code of a function depends on: its folder, the kernels it calls, the constants it reads."""
    parts = [_folder_stamp(Path(function.__code__.co_filename).parent)]
    for name in sorted(function.__code__.co_names):
        value = function.__globals__.get(name)
        called = getattr(value, "py_func", None)
        if called is not None:
            stamp = getattr(value, "code_stamp", None) or _folder_stamp(Path(called.__code__.co_filename).parent)
            parts.append(f"{name}:{stamp}")
        elif isinstance(value, (int, float)) or (type(value).__module__ == "numpy" and not hasattr(value, "shape")):
            parts.append(f"{name}={value!r}")
    return _digest("\n".join(parts).encode())


@cache
def _folder_stamp(folder: Path) -> str:
    """Of the content of all Python files in a folder."""
    return _digest(b"".join(path.name.encode() + path.read_bytes() for path in sorted(folder.glob("*.py"))))


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()[:16]
