"""Other installed packages with things for the registries: entry points, as pip writes them."""

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from rnnsmt.base.registry import Registry, _entry_points
from rnnsmt.registries import COLUMNS, METRICS, SEARCH_FEATURES

REGISTRIES: tuple[Registry, ...] = (COLUMNS, METRICS, SEARCH_FEATURES)


def install(
    directory: Path, patch: pytest.MonkeyPatch, name: str, groups: Mapping[str, Mapping[str, str]], code: str = ""
) -> None:
    """Install a package, version 1.2, for the duration of a test.

    Args:
        directory: what is added to the search path.
        name: name of the package, and of its only module with hyphens replaced by underscores.
        groups: entry points, ``module:object`` by name, of each group.
        code: source of the module.
    """
    (directory / f"{name.replace('-', '_')}.py").write_text(code)
    described = directory / f"{name.replace('-', '_')}-1.2.dist-info"
    described.mkdir()
    (described / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
    lines = [
        line
        for group, entries in groups.items()
        for line in (f"[{group}]", *(f"{key} = {value}" for key, value in entries.items()))
    ]
    (described / "entry_points.txt").write_text("\n".join(lines) + "\n")
    if str(directory) not in sys.path:
        patch.syspath_prepend(directory)
    patch.delitem(sys.modules, name.replace("-", "_"), raising=False)
    _entry_points.cache_clear()
    for registry in REGISTRIES:
        patch.setattr(registry, "_loaded", dict(registry._loaded))
