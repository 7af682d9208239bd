"""Registries of named objects, such as metrics, that this package or other installed packages provide."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from rnnsmt.base.errors import InputError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Item = TypeVar("Item")


class Registry(Generic[Item]):
    """Objects of one kind, such as metrics, by their names in configurations and options.

    An object is declared as ``module:object``; its module is imported when the object is first used. Help texts and
    tables of settings show its description, without an import. Another package declares its objects as entry points in
    the group of the registry:

        [project.entry-points."rnnsmt.metrics"]
        length = "their_package.length:Length"

    Attributes:
        kind: name of the kind in error messages, in the singular.
        group: group of the entry points of other packages.
    """

    def __init__(self, kind: str, group: str, own: Mapping[str, str | tuple[str, str]]) -> None:
        """Declare the objects of this package by name: ``module:object``, or a pair of this and a description."""
        lines = {name: (line, "") if isinstance(line, str) else line for name, line in own.items()}
        self.kind, self.group = kind, group
        self._own = {name: path for name, (path, _) in lines.items()}
        self._descriptions = {name: text for name, (_, text) in lines.items() if text}
        self._loaded: dict[str, Item] = {}

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the objects of this package."""
        return iter(self._own)

    def __len__(self) -> int:
        """Return the number of objects of this package."""
        return len(self._own)

    def __contains__(self, name: object) -> bool:
        """Return whether this package or another installed package declares an object with this name."""
        return name in self._own or any(entry.name == name for entry in self._entries())

    def described(self) -> str:
        """Return the names and descriptions of the objects of this package that have one: ``a: this; b: that``."""
        return "; ".join(f"{name}: {text}" for name, text in self._descriptions.items())

    def check(self, name: str) -> None:
        """Check that exactly one object has this name; nothing is imported.

        Raises:
            ValueError: no package or several packages declare such an object.
        """
        if name not in self._own and self._entry(name) is None:
            raise ValueError(_no_such(self.kind, [*self._own, *self.others()], name))

    def __getitem__(self, name: str) -> Item:
        """Return the object with a name; if it is a class, return an instance of it.

        Raises:
            InputError: no object has this name, or the module of another package cannot be imported.
        """
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def _load(self, name: str) -> Item:
        if name in self._own:
            module, _, attribute = self._own[name].partition(":")
            return _made(getattr(import_module(module), attribute))
        try:
            self.check(name)
        except ValueError as error:
            raise InputError(f"{name}: {error}") from None
        entry = self._entry(name)
        assert entry is not None
        try:
            return _made(entry.load())
        except Exception as error:  # code of others: whatever it raises
            raise InputError(
                f"{self.kind} {name}: {entry.value} of {self.package(name)} cannot be imported "
                f"({type(error).__name__}: {error}); correct or uninstall this package"
            ) from error

    def package(self, name: str) -> str:
        """Return the package that declares an object, with version: ``other-package 1.2``; empty for this package."""
        entry = None if name in self._own else self._entry(name)
        return f"{entry.dist.name} {entry.dist.version}" if entry is not None and entry.dist is not None else ""

    def versioned(self, name: str) -> str:
        """Return the name of an object, with its package if it is another one, for the fingerprint of a checkpoint."""
        package = self.package(name)
        return f"{name} of {package}" if package else name

    def packages(self, names: Iterable[str]) -> str:
        """Return the names of objects from other packages with these packages, for the params of a rule."""
        return ", ".join(f"{name}: {package}" for name in names if (package := self.package(name)))

    def others(self) -> list[str]:
        """Return the names of the objects of other installed packages."""
        return sorted({entry.name for entry in self._entries()} - self._own.keys())

    def _entry(self, name: str) -> "EntryPoint | None":
        """Return the entry point with this name.

        Raises:
            ValueError: several packages declare such an entry point.
        """
        found = [entry for entry in self._entries() if entry.name == name]
        if len(found) > 1:
            packages = " and ".join(sorted(entry.dist.name for entry in found if entry.dist is not None))
            raise ValueError(f"there are several: in {packages}; uninstall all packages but one")
        return found[0] if found else None

    def _entries(self) -> "Iterable[EntryPoint]":
        return _entry_points(self.group, tuple(sys.path))


@cache
def _entry_points(group: str, path: tuple[str, ...]) -> "tuple[EntryPoint, ...]":
    """Return the entry points of a group; ``path`` is ``sys.path``, which determines the installed packages."""
    from importlib.metadata import entry_points  # takes some milliseconds

    # entry points of a directory that occurs twice in the path are listed twice
    return tuple({(entry.name, entry.value): entry for entry in entry_points(group=group)}.values())


class Registries(Generic[Item]):
    """Several registries without common names, combined into one."""

    def __init__(self, kind: str, parts: Sequence[Registry[Any]]) -> None:
        """Combine registries; ``kind`` is the name of an object in error messages, in the singular."""
        self.kind, self._parts = kind, parts

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the objects of this package."""
        return (name for part in self._parts for name in part)

    def __len__(self) -> int:
        """Return the number of objects of this package."""
        return sum(map(len, self._parts))

    def described(self) -> str:
        """Return names and descriptions, see ``Registry``."""
        return "; ".join(part.described() for part in self._parts)

    def __contains__(self, name: object) -> bool:
        """Return whether a registry contains an object with this name."""
        return any(name in part for part in self._parts)

    def __getitem__(self, name: str) -> Item:
        """Return the object with a name, see ``Registry``."""
        found: Item = next((part for part in self._parts if name in part), self._parts[-1])[name]
        return found

    def check(self, name: str) -> None:
        """Check a name, see ``Registry``."""
        if name in self:
            next(part for part in self._parts if name in part).check(name)
        else:
            raise ValueError(
                _no_such(self.kind, [*self, *(name for part in self._parts for name in part.others())], name)
            )

    def package(self, name: str) -> str:
        """Return the package that declares an object, see ``Registry``."""
        return next((part.package(name) for part in self._parts if name in part), "")


def _no_such(kind: str, known: Sequence[str], name: str) -> str:
    """Return the message for an unknown name."""
    near = get_close_matches(name, known, 1)
    named = f"; did you mean {near[0]}?" if near else ""
    article = "an" if kind[0] in "aeiou" else "a"
    return f"must be {', '.join(known)}, or the name of {article} {kind} of another installed package{named}"


def _made(item: Any) -> Any:
    """Return a new instance of a class, or any other object itself."""
    return item() if isinstance(item, type) else item
