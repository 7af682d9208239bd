"""Cache of compiled kernels on disk: the cache of numba, in a directory that depends on the sources of all kernels.

Numba recompiles a kernel if its source file has changed, but not if the change concerns a kernel, constant or named
tuple of another file that was compiled into the kernel. Nodes of a cluster with different processors may share a cache.
Therefore, the name of the directory contains a hash of the sources, of the versions of Python, numba and llvmlite, and
of the processor. Directories with other hashes are not removed, because other processes may use them.

Compiled code is loaded without the compiler. With numba's own cache, loading imports all functions that numba can
compile, and compiles numba's runtime, which takes 0.13 CPU seconds and 35 MB.

Kernels of other packages use numba's own cache: neither classes nor the configuration of numba are changed.
"""

import inspect
import os
import pickle
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

import llvmlite.binding  # type: ignore[import-untyped]
import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, _CacheLocator
from numba.core.environment import Environment, _rebuild_env, lookup_environment
from numba.core.runtime import _nrt_python  # type: ignore[attr-defined]

from rnnsmt.base.errors import InputError
from rnnsmt.base.kernels import import_without_scipy

PACKAGE = Path(__file__).parents[2]


def kernel_sources() -> list[Path]:
    """Return the source files that contain kernels, or constants and named tuples that are compiled into kernels.

    These are all files that contain the word "kernel".
    """
    return sorted(path for path in PACKAGE.rglob("*.py") if b"kernel" in path.read_bytes())


def _parents() -> Iterator[Path]:
    """Yield NUMBA_CACHE_DIR if set, ``__pycache__`` of the package, and ``rnnsmt`` in the user's cache directory."""
    config: Any = numba.config
    if config.CACHE_DIR:
        yield Path(config.CACHE_DIR)
    yield PACKAGE / "__pycache__"
    with suppress(RuntimeError):  # the home directory is unknown
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "rnnsmt")


@cache
def cache_directory() -> Path:
    """Create and return the cache directory for this process, in the first writable directory of ``_parents``.

    An existing cache directory in NUMBA_CACHE_DIR is used even if it is not writable, as in a read-only container.

    Raises:
        InputError: no directory of ``_parents`` is writable.
    """
    config: Any = numba.config
    versions = (sys.version, numba.__version__, llvmlite.__version__)
    processor = (llvmlite.binding.get_host_cpu_name(), llvmlite.binding.get_host_cpu_features().flatten())
    content = sha256(repr((versions, processor, config.CPU_NAME, config.CPU_FEATURES)).encode())
    for path in kernel_sources():
        content.update(path.read_bytes())
    for parent in _parents():
        directory = parent / f"kernels-{content.hexdigest()[:16]}"
        if config.CACHE_DIR and parent == Path(config.CACHE_DIR) and directory.is_dir():
            return directory
        with suppress(OSError):
            directory.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=directory).close()
            return directory
    raise InputError("no writable cache directory for compiled code; set NUMBA_CACHE_DIR to a writable directory")


@cache
def _digest(path: str) -> bytes:
    return sha256(Path(path).read_bytes()).digest()


class _Locator(_CacheLocator):
    """Locator of the files of a kernel in ``cache_directory``, instead of the directories that numba would try."""

    def __init__(self, path: str, line: int) -> None:
        self._py_file, self._line = path, line

    def get_cache_path(self) -> str:
        """Return the cache directory that all kernels of a package share."""
        return str(cache_directory() / self.get_suitable_cache_subpath(self._py_file))

    def get_source_stamp(self) -> bytes:
        """Return the SHA-256 of the source file."""
        return _digest(self._py_file)

    def get_disambiguator(self) -> str:
        """Return the line of the kernel, which is part of the name of its files."""
        return str(self._line)


class _CompiledCode(CompileResultCacheImpl):
    """Compiled code of a kernel, in files located by ``_Locator``."""

    def __init__(self, function: Callable[..., Any]) -> None:
        path, self._lineno = inspect.getfile(function), function.__code__.co_firstlineno
        self._locator = _Locator(path, self._lineno)
        self._filename_base = self.get_filename_base(f"{Path(path).stem}.{function.__qualname__}", sys.abiflags)


class KernelFiles(IndexDataCacheFile):
    """Files of a kernel: an index, and one file for each signature, with a random name.

    Numba numbers the files of the signatures. Two processes that compile a kernel for different signatures at the same
    time would choose the same number, and code for one signature would run with arguments of the other.
    """

    def _data_name(self, number: int) -> str:
        name: str = self._data_name_pattern.format(number=uuid4().int)
        return name

    def _load_data(self, name: str) -> Any:
        with Path(self._data_path(name)).open("rb") as file:
            return _Unpickler(file).load()


class _Unpickler(pickle.Unpickler):
    """Unpickler of compiled code that does not import the modules of numba functions which the code contains."""

    def find_class(self, module: str, name: str) -> Any:
        """Return the object with a name in a module."""
        return _environment if (module, name) == _ENVIRONMENT else super().find_class(module, name)


_ENVIRONMENT = ("numba.core.environment", "_rebuild_env")


def _environment(module: str, constants: list[Any], name: str) -> Environment:
    """Return the environment of a compiled function; its globals, which compiled code does not use, may be empty."""
    if lookup_environment(name) is None and module not in sys.modules:
        environment = Environment({"__name__": module})
        environment.env_name = name
        environment.consts[:] = constants
        Environment._memo[name] = environment
        return environment
    return _rebuild_env(module, constants, name)


@cache
def _add_runtime_symbols() -> None:
    """Tell the linker the addresses of the functions of numba's runtime, which compiled code calls."""
    for name, address in _nrt_python.c_helpers.items():
        llvmlite.binding.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


class KernelCache(FunctionCache):
    """Cache of one kernel."""

    _impl_class = _CompiledCode

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = KernelFiles(self._cache_path, self._impl.filename_base, stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the code for a signature, or None if there is none."""
        _add_runtime_symbols()
        with self._guard_against_spurious_io_errors():
            loaded = self._load_overload(sig, target_context)
        if loaded is None:  # the compiler will import this module
            import_without_scipy("numba.np.arraymath")
        return loaded

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save the code for a signature; if the directory is not writable, every process compiles the kernel again."""
        with suppress(OSError):
            super().save_overload(sig, data)
