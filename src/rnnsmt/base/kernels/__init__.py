"""Decorator of kernels, which numba compiles, their cache, and kernels that several packages use."""

import sys
from importlib import import_module

from rnnsmt import base


def import_without_scipy(module: str) -> None:
    """Import a module of numba in a process that runs a command.

    Numba imports scipy, which takes 0.2 s, to check its version and for BLAS, which no kernel uses. A user's program
    may have kernels that use it.
    """
    if base.is_program and "scipy" not in sys.modules:
        sys.modules["scipy"] = None  # type: ignore[assignment]  # None: the import raises ImportError
        import_module(module)
        del sys.modules["scipy"]


import_without_scipy("numba")
