"""Decorator for numba kernels, and the options of kernels that are called by other kernels."""

from collections.abc import Callable
from typing import Any

import numba

from rnnsmt.base.kernels.cache import KernelCache

INNER: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Options of kernels that only other kernels call: wrappers for calls from Python and C are not compiled."""

UNCOUNTED: dict[str, Any] = {"_nrt": False}
"""Options that switch off the counting of references to array arguments, for kernels that neither allocate arrays nor
assign an array to a slice of another array. With reference counting, each call of another kernel with a named tuple,
even if the call is inlined in a loop, executes two atomic operations per array of the tuple. Kernels that such a kernel
calls may allocate arrays."""


def kernel(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator like ``numba.njit``; kernels are cached by ``base.kernels.cache`` and release the GIL."""
    # _nrt is explicit, since numba otherwise compiles a kernel with the option of its first caller
    compiler = numba.njit(nogil=True, **{"_nrt": True, **options})

    def compiled(function: Callable[..., Any]) -> Any:
        dispatcher = compiler(function)
        dispatcher._cache = KernelCache(function)  # ``cache=True`` would assign numba's own cache
        return dispatcher

    return compiled
