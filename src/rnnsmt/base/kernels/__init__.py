"""Decorator of kernels, which numba compiles, and kernels that several packages use."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

NOT_NEEDED = ("scipy", "yaml")
"""Modules that numba imports only to check the version (scipy) and to read ``.numba_config.yaml`` (yaml)."""


@contextmanager
def _quick_import() -> Iterator[None]:
    """Disable the import of ``NOT_NEEDED``, and garbage collection, since an import creates no garbage."""
    needed = {"yaml"} if Path(".numba_config.yaml").exists() else set()
    hidden = [name for name in NOT_NEEDED if name not in sys.modules and name not in needed]
    collecting = gc.isenabled()
    gc.disable()
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]  # None: the import raises ImportError
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]
        if collecting:
            gc.enable()


if "numba" not in sys.modules:
    with _quick_import():
        import_module("numba")
