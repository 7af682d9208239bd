"""Decorator of kernels, which numba compiles, and kernels that several packages use.

Importing this package selects the directory of numba's cache of compiled kernels. Numba recompiles a kernel if its own
file has changed, but not if a kernel, constant or named tuple from another file has changed that was compiled into it.
Nodes of a cluster with different processors may share the directory. Therefore, its name contains a hash of the
sources, the versions and the processor. Directories with other hashes are not removed, because other processes may use
them.
"""

import os
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

if "scipy" not in sys.modules:
    # Numba imports scipy, which takes 0.2 s, to check its version and for BLAS, which no kernel uses.
    sys.modules["scipy"] = None  # type: ignore[assignment]  # None: the import raises ImportError
    import numba.np.arraymath

    del sys.modules["scipy"]

import llvmlite.binding  # type: ignore[import-untyped]
import numba
from numba.core.caching import IndexDataCacheFile

PACKAGE = Path(__file__).parents[2]


def kernel_sources() -> list[Path]:
    """Return the files with kernels, and with constants and named tuples used by kernels: they contain this word."""
    return sorted(path for path in PACKAGE.rglob("*.py") if b"kernel" in path.read_bytes())


def _cache_directory() -> Path:
    """Return a directory in NUMBA_CACHE_DIR if that is set, in the package if it is writable, or in ~/.cache/rnnsmt."""
    config: Any = numba.config
    if config.CACHE_DIR:
        parent = Path(config.CACHE_DIR)
    elif os.access(PACKAGE, os.W_OK):
        parent = PACKAGE / "__pycache__"
    else:
        parent = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "rnnsmt")
    versions = (sys.version, numba.__version__, llvmlite.__version__)
    processor = (llvmlite.binding.get_host_cpu_name(), llvmlite.binding.get_host_cpu_features().flatten())
    content = sha256(repr((versions, processor, config.CPU_NAME, config.CPU_FEATURES)).encode())
    for path in kernel_sources():
        content.update(path.read_bytes())
    return parent / f"kernels-{content.hexdigest()[:16]}"


numba.config.CACHE_DIR = str(_cache_directory())  # type: ignore[attr-defined]

# Numba numbers the files of a kernel, one for each signature. Two processes that compile it for different signatures at
# the same time would choose the same number, and the kernel of one would run with the arguments of the other.
IndexDataCacheFile._data_name = lambda self, _: self._data_name_pattern.format(  # type: ignore[method-assign]
    number=uuid4().int
)
