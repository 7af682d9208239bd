"""Decorator of kernels, which numba compiles, their cache, and kernels that several packages use."""

import sys
from importlib import import_module

from rnnsmt import base

if base.is_program and "scipy" not in sys.modules:
    # Numba imports scipy, which takes 0.2 s, to check its version and for BLAS, which no kernel uses. A user's program
    # may have kernels that use it.
    sys.modules["scipy"] = None  # type: ignore[assignment]  # None: the import raises ImportError
    import_module("numba.np.arraymath")
    del sys.modules["scipy"]
