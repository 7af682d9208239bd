"""Decorator for numba kernels, and the options of kernels that are called by other kernels."""

from collections.abc import Callable
from typing import Any

import numba

from rnnsmt.base.kernels.cache import KernelCache

INNER: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Options of kernels that are called by other kernels only: no wrappers for calls from Python or C are compiled."""

UNCOUNTED: dict[str, Any] = {"_nrt": False}
"""Options of kernels that neither allocate arrays nor assign an array to a slice of another: numba does not count the
references to their array arguments. Otherwise, each call of another kernel with a named tuple, even if it is inlined in
a loop, executes two atomic operations per array of the tuple. Kernels that such a kernel calls may allocate arrays."""


def kernel(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile with ``njit``: cached on disk (see ``base.kernels.cache``), and without the global interpreter lock."""
    # _nrt is explicit, since numba otherwise compiles a kernel with the option of its first caller
    compiler = numba.njit(nogil=True, **{"_nrt": True, **options})

    def compiled(function: Callable[..., Any]) -> Any:
        dispatcher = compiler(function)
        dispatcher._cache = KernelCache(function)  # what ``cache=True`` sets to numba's
        return dispatcher

    return compiled
