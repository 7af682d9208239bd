"""Type of a path that a function accepts."""

from os import PathLike
from typing import TypeAlias

StrPath: TypeAlias = str | PathLike[str]
"""A string or an object with ``__fspath__``: a ``Path``, or the return value of an operation that writes a file."""
