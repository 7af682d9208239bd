"""The decorator of compiled kernels that call kernels of other files.

numba keeps compiled code on disk and compiles again when the file of the function has changed. It does not notice that
a function of another file, which it has compiled into this one, has changed: after such an edit or a ``git pull`` it
would go on with the old code. ``kernel`` makes everything that a function calls part of what numba compares.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import njit

INNER: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Options of kernels that are only called by kernels: nothing to call them from Python is compiled."""


def kernel(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """``njit(cache=True, nogil=True)`` with a cache that also depends on the kernels and constants used.

    They must be defined before the function: above it or in a module it imports.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = njit(cache=True, nogil=True, **options)(function)
        stamp = _stamp(function)
        file = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
        if hasattr(file, "_source_stamp"):
            file._source_stamp = (file._source_stamp, stamp)  # type: ignore[union-attr]
        dispatcher.code_stamp = stamp
        return dispatcher

    return decorate


def _stamp(function: Callable[..., Any]) -> str:
    """What the compiled code of a function depends on: its file, the kernels it calls, the constants it reads."""
    parts = [_file_stamp(function)]
    for name in sorted(function.__code__.co_names):
        value = function.__globals__.get(name)
        called = getattr(value, "py_func", None)
        if called is not None:
            parts.append(f"{name}:{getattr(value, 'code_stamp', None) or _file_stamp(called)}")
        elif isinstance(value, (int, float)) or (type(value).__module__ == "numpy" and not hasattr(value, "shape")):
            parts.append(f"{name}={value!r}")
    return _digest(parts)


def _file_stamp(function: Callable[..., Any]) -> str:
    state = Path(function.__code__.co_filename).stat()
    return f"{state.st_mtime_ns} {state.st_size}"


def _digest(parts: list[str]) -> str:
    from hashlib import sha256

    return sha256("\n".join(parts).encode()).hexdigest()[:16]
