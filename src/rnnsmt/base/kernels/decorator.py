"""Decorator for numba kernels with a reliable cache on disk.

Numba caches compiled code on disk and recompiles a function when its file changes. It does not notice changes of
anything else that was compiled into the function: functions and constants of other files, or the field order of a named
tuple argument. After such a change, it would run stale code. The cache of ``kernel`` also compares

* the files of the kernels that a kernel calls, directly or indirectly, and the values of the constants that they read;
* the fields of the named tuples that they construct;
* the fields of the named tuples that a kernel is called with, from the types of the arguments of each call.

A kernel can be in any file and accept any named tuple. A global of a kind whose changes cannot be detected raises an
error.
"""

import dis
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache, update_wrapper
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from types import CodeType, ModuleType, NoneType
from typing import Any

import llvmlite.binding  # type: ignore[import-untyped]
import numba
import numpy as np
from numba.core import config, entrypoints
from numba.core.caching import FunctionCache
from numba.core.runtime import _nrt_python  # type: ignore[attr-defined]
from numba.core.types import BaseNamedTuple, BaseTuple, Optional
from numba.extending import is_jitted

INNER: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Options of kernels that are called by other kernels only: no wrappers for calls from Python or C are compiled."""

UNCOUNTED: dict[str, Any] = {"_nrt": False}
"""Options of kernels that neither allocate arrays nor assign an array to a slice of another: numba does not count the
references to their array arguments. Otherwise, each call of another kernel with a named tuple, even if it is inlined in
a loop, executes two atomic operations per array of the tuple. Kernels that such a kernel calls may allocate arrays."""

LIBRARIES = ("numpy", "math", "numba", "builtins")
"""Packages whose functions and types kernels may use without a stamp: numba implements them."""


def kernel(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile with ``njit(cache=True, nogil=True)`` and a cache that depends on all sources and constants used.

    Raises:
        RuntimeError: this numba version has a different cache, so stale code could not be detected.
        TypeError: the function is a closure; its variables would not be compared.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        if config.DISABLE_JIT:  # type: ignore[attr-defined]
            return function
        if function.__closure__:
            raise TypeError(f"kernel {function.__qualname__} reads variables of an enclosing function")
        _file_stamp(function.__code__.co_filename)  # now, since the file may change after the import
        return _Kernel(function, options)

    return decorate


class _Kernel:
    """Kernel whose numba dispatcher is created on first use: most commands use few of the kernels that they import.

    Other attributes are those of the dispatcher, so numba can compile kernels that call this one.
    """

    _lock = threading.Lock()
    _dispatcher: Any

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        update_wrapper(self, function)
        self.py_func, self._options = function, options

    def __call__(self, *args: Any) -> Any:
        return self._dispatcher(*args)

    def __reduce__(self) -> str:
        return self.py_func.__qualname__

    def __getattr__(self, name: str) -> Any:
        if name != "_dispatcher":
            return getattr(self._dispatcher, name)
        with self._lock:
            if name not in vars(self):
                self._dispatcher = _dispatcher(self.py_func, self._options)
        return vars(self)[name]


def _dispatcher(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    # _nrt is explicit, since numba otherwise compiles a kernel with the option of its first caller
    dispatcher = numba.njit(nogil=True, **{"_nrt": True, **options})(function)
    _set_cache(dispatcher, _KernelCache(function))
    # loading compiled code requires no extensions of numba; _KernelCache initialises them before it compiles
    dispatcher._compilation_chain_init_hook = _nothing
    return dispatcher


def _nothing() -> None:
    """Do nothing."""


def _set_cache(dispatcher: Any, cache: Any) -> None:
    """Set the cache of a dispatcher; numba has no documented way to declare dependencies of a cached function.

    Raises:
        RuntimeError: this numba version does not use the cache in the way that ``_KernelCache`` assumes.
    """
    methods = all(
        callable(getattr(FunctionCache, name, None)) for name in ("load_overload", "_load_overload", "_index_key")
    )
    version = getattr(getattr(cache, "_cache_file", None), "_version", None)
    if not methods or not isinstance(version, str) or not hasattr(dispatcher, "_cache"):
        raise RuntimeError(
            f"numba {numba.__version__} stores compiled code in a way that rnnsmt.base.kernels.decorator does not "
            "support, and could run code of an earlier version of the kernels; install the numba of requirements.lock"
        )
    dispatcher._cache = cache


class _KernelCache(FunctionCache):
    """Cache on disk of one kernel, as of ``njit(cache=True)``, that rejects code compiled from other sources.

    An index file per kernel lists the compiled variants by the types of the arguments. It begins with the numba
    version, to which the stamp of the kernel is added here; an index that begins differently is discarded.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._function = function

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load the compiled code for argument types ``sig``, or None; numba calls this before it compiles and saves."""
        # at the first call, not at the definition, since a kernel may call kernels that are defined after it
        self._cache_file._version = f"{numba.__version__} {_stamp(self._function)}"
        # numba would first initialise the compiler (0.1 s); compiled code needs only the addresses of C functions
        _import_without_scipy()
        _add_c_functions()
        with self._guard_against_spurious_io_errors():
            overload = self._load_overload(sig, target_context)
        if overload is None:
            entrypoints.init_all()
            overload = super().load_overload(sig, target_context)
        return overload

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        """Return the key of a compiled variant: argument types, fields of named tuples, machine, bytecode.

        Argument types are text. Numba's key contains the classes of named tuples: it cannot be unpickled if one was
        renamed or moved, and does not contain the order of the fields.
        """
        _, *rest = super()._index_key(sig, codegen)
        return (str(sig), *_record_fields(getattr(sig, "args", sig)), *rest)


@cache
def _import_without_scipy() -> None:
    """Import ``numba.np.arraymath``, which compiled code requires, without scipy, which it imports to check for BLAS.

    Importing scipy takes 0.2 s. The module uses BLAS for np.convolve and np.correlate only, which also work without it;
    matrix products check for BLAS separately. A numba version with another structure imports scipy as usual.
    """

    def no_blas() -> None:
        raise ImportError("no kernel needs it")

    with suppress(ImportError, AttributeError):
        linalg: Any = import_module("numba.np.linalg")
        original = linalg.ensure_blas
        linalg.ensure_blas = no_blas
        try:
            import_module("numba.np.arraymath")
        finally:
            linalg.ensure_blas = original


@cache
def _add_c_functions() -> None:
    """Add the C functions by which compiled code allocates memory to the symbols of the linker, as numba does."""
    for name, address in _nrt_python.c_helpers.items():
        llvmlite.binding.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


def _record_fields(kinds: Iterable[Any]) -> Iterator[str]:
    """Yield name and fields of all named tuples in numba types, including those inside other tuples."""
    for kind in kinds:
        if isinstance(kind, BaseNamedTuple):
            yield _class_description(kind.instance_class)  # type: ignore[attr-defined]
        if isinstance(kind, BaseTuple):
            yield from _record_fields(kind.types)  # type: ignore[attr-defined]
        elif isinstance(kind, Optional):
            yield from _record_fields((kind.type,))


def _class_description(record: Any) -> str:
    return f"{record.__module__}.{record.__qualname__}{record._fields}{record._field_defaults}"


@cache
def _stamp(function: Callable[..., Any]) -> str:
    """Return a hash of everything that is compiled into a kernel, except the types of its arguments."""
    parts = {_file_stamp(__file__)}
    reached, waiting = {function}, [function]
    while waiting:
        described, called = _dependencies(waiting.pop())
        parts |= described
        waiting += called - reached
        reached |= called
    return _digest("\n".join(sorted(parts)).encode())


@cache
def _dependencies(function: Callable[..., Any]) -> tuple[set[str], set[Callable[..., Any]]]:
    """Return descriptions of the file of a kernel and of the globals that it reads, and the kernels that it calls."""
    described, called = {_file_stamp(function.__code__.co_filename)}, set()
    for name in _globals_read(function.__code__) & function.__globals__.keys():  # numba itself rejects undefined ones
        value = function.__globals__[name]
        if isinstance(value, _Kernel) or is_jitted(value):
            called.add(value.py_func)
        else:
            described.add(f"{function.__module__}.{name}={_description(name, value, function)}")
    return described, called


def _globals_read(code: CodeType) -> set[str]:
    """Return the names of the globals that a function and the comprehensions in it read, without attributes."""
    # replaces dis.get_instructions, which takes 50 ms for the kernels of a search; an instruction has two bytes
    operations, arguments = np.frombuffer(code.co_code, np.uint8).reshape(-1, 2).T
    names = set()
    for index in np.flatnonzero(operations == dis.opmap["LOAD_GLOBAL"]).tolist():
        argument, further = int(arguments[index]), 1
        while operations[index - further] == dis.EXTENDED_ARG:  # the first instruction is RESUME
            argument |= int(arguments[index - further]) << 8 * further
            further += 1
        names.add(code.co_names[argument >> 1])  # the lowest bit: whether the global is called
    return names.union(*(_globals_read(inner) for inner in code.co_consts if isinstance(inner, CodeType)))


def _description(name: str, value: Any, function: Callable[..., Any]) -> str:
    """Return a text that changes whenever the code compiled with a global changes.

    Raises:
        TypeError: the global is of a kind whose changes cannot be detected.
    """
    if isinstance(value, (int, float, complex, str, bytes, np.generic, np.dtype, NoneType)):
        return repr(value)
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}{_digest(value.tobytes())}"
    if isinstance(value, tuple):
        return f"{type(value).__qualname__}({', '.join(_description(name, item, function) for item in value)})"
    if isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields"):
        return _class_description(value)
    module = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    if (module or "").split(".")[0] in LIBRARIES:
        return str(module)
    if isinstance(code := getattr(getattr(value, "__wrapped__", None), "__code__", None), CodeType):  # an intrinsic
        return _file_stamp(code.co_filename)
    raise TypeError(
        f"kernel {function.__module__}.{function.__qualname__} reads {name}, a global of type {type(value).__name__}; "
        "changing it would not invalidate the cache of compiled code"
    )


@cache
def _file_stamp(path: str) -> str:
    """Return the name of a file and a hash of its contents."""
    return f"{Path(path).name}:{_digest(Path(path).read_bytes())}"


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()[:16]
