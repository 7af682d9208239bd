"""Decorator of kernels (functions compiled by numba), cache of compiled kernels, and kernels of several packages."""

import sys
from importlib import import_module

from rnnsmt import base


def import_without_scipy(module: str) -> None:
    """Import a module of numba in a process that runs a command.

    Numba imports scipy to check its version and to call BLAS, which takes 0.2 s; no kernel of this package calls BLAS.
    In a user's program, scipy is imported as usual, since kernels of that program may call BLAS.
    """
    if base.is_program and "scipy" not in sys.modules:
        sys.modules["scipy"] = None  # type: ignore[assignment]  # None: the import raises ImportError
        import_module(module)
        del sys.modules["scipy"]


import_without_scipy("numba")
