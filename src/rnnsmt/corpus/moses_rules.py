"""The classes of sacremoses, imported in a third of the time.

sacremoses compiles eighty regular expressions when it is imported. A dozen of them list all letters of Unicode one by
one, which makes them slow to compile, and most are never used. Here, they are compiled at first use, and runs of
consecutive characters are replaced by equivalent ranges. Modules that sacremoses imports for functions that are not
used here are imported when these functions are called.
"""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import regex  # type: ignore[import-untyped]  # noqa: F401  # imported by sacremoses; it must get the real module re

UNUSED = ("joblib", "tqdm", "xml.sax.saxutils")
"""Modules that sacremoses imports for parallel processing and for XML, which are not used here."""

LONG_PATTERN = 1000
"""Maximum length of patterns that do not list all letters or digits of Unicode."""

SHORTEST_RANGE = 4
"""Minimum number of consecutive characters that are written as a range."""


def with_ranges(pattern: str) -> str:
    """Replace runs of consecutive non-ASCII characters, which occur only in sets of a long pattern, by ranges."""
    if len(pattern) <= LONG_PATTERN:
        return pattern
    codes = np.frombuffer(pattern.encode("utf-32-le"), np.uint32)
    starts = np.flatnonzero(np.diff(codes, prepend=0) != 1)
    parts = []
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(codes)], strict=True):
        run = pattern[start:end]
        parts.append(f"{run[0]}-{run[-1]}" if len(run) >= SHORTEST_RANGE and run[0] > "\x7f" else run)
    return "".join(parts)


class _LatePattern:
    """Regular expression that is compiled at first use."""

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self._source = pattern, flags

    def __getattr__(self, name: str) -> Any:
        if name == "_source":  # during unpickling
            raise AttributeError(name)
        pattern, flags = self._source
        compiled = re.compile(with_ranges(pattern), flags)
        self.__dict__.update(sub=compiled.sub, search=compiled.search, match=compiled.match)
        return getattr(compiled, name)


class _LateModule(ModuleType):
    """Placeholder of a module, whose functions import the module when they are called."""

    def __getattr__(self, name: str) -> Any:
        def late(*args: Any, **options: Any) -> Any:
            return getattr(import_module(self.__name__), name)(*args, **options)

        return late


class _LateRe(ModuleType):
    """Replacement of the module ``re`` that compiles patterns at first use."""

    compile = _LatePattern

    def __getattr__(self, name: str) -> Any:
        return getattr(re, name)


@contextmanager
def _late_modules() -> Iterator[None]:
    import_module("xml.sax")  # parent package of one of the modules; it must import the real re
    late: dict[str, ModuleType] = {"re": _LateRe("re")}
    late |= {name: _LateModule(name) for name in UNUSED if name not in sys.modules}
    hidden = {name: sys.modules[name] for name in late if name in sys.modules}
    sys.modules.update(late)
    try:
        yield
    finally:
        for name in late:
            del sys.modules[name]
        sys.modules.update(hidden)


if TYPE_CHECKING or "sacremoses" in sys.modules:
    from sacremoses import MosesDetokenizer, MosesDetruecaser, MosesPunctNormalizer, MosesTokenizer, MosesTruecaser
    from sacremoses.corpus import NonbreakingPrefixes
else:
    with _late_modules():
        from sacremoses import MosesDetokenizer, MosesDetruecaser, MosesPunctNormalizer, MosesTokenizer, MosesTruecaser
        from sacremoses.corpus import NonbreakingPrefixes

__all__ = [
    "MosesDetokenizer",
    "MosesDetruecaser",
    "MosesPunctNormalizer",
    "MosesTokenizer",
    "MosesTruecaser",
    "NonbreakingPrefixes",
]
