"""Decorator for numba kernels with a dependable cache on disk.

Numba caches compiled code on disk and recompiles a function when its file changes. It does not notice changes of
anything else that was compiled into the function: functions and constants of other files, or the field order of a named
tuple argument. After such an edit or a ``git pull`` it would run stale code. ``kernel`` adds to what numba compares:
all files in the folder of the function, the kernels that it calls, and the constants that it reads. Named tuples used
as kernel arguments must therefore be defined in a ``kernels`` folder, either that of the function or that of a kernel
that it calls.
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
    """Import ``numba.np.arraymath`` without scipy, which it imports only to check for a BLAS.

    Importing scipy takes a third of the time until numba's first kernel runs. The module uses BLAS for np.convolve and
    np.correlate only, which then work without; matrix products check for BLAS on their own. A numba version with
    another structure imports scipy as usual and starts more slowly.
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
"""Options of kernels that are called by other kernels only: no wrappers for calls from Python or C are compiled."""


def kernel(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile with ``njit(cache=True, nogil=True)`` and a cache that depends on all sources and constants used.

    Called kernels and constants must be defined before the function: above it, or in a module that it imports.
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
    """Make numba reject cached code that was compiled from another version of the sources.

    Numba has no documented way to declare further dependencies of a cached function. This adds the stamp of the
    function to the numba version in the cache file, which is compared before anything is unpickled; the pickle itself
    could refer to classes that no longer exist.

    Raises:
        RuntimeError: this numba version has another cache format, so that stale code could not be detected.
    """
    file: Any = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if not isinstance(getattr(file, "_version", None), str):
        raise RuntimeError(
            f"numba {numba.__version__} keeps compiled code in a way that rnnsmt.base.kernels.decorator does not know, "
            "and could run code of an earlier version of the kernels; install the numba of requirements.lock"
        )
    file._version = f"{file._version} {dispatcher.code_stamp}"


def _stamp(function: Callable[..., Any]) -> str:
    """Return a hash of what a compiled function depends on: its folder, called kernels, and constants."""
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
    """Return a hash of the names and contents of all Python files in a folder."""
    return _digest(b"".join(path.name.encode() + path.read_bytes() for path in sorted(folder.glob("*.py"))))


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()[:16]
