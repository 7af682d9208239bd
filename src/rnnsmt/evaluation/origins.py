"""Collection of the provenance of results: files with hashes, tuned runs, networks, software versions."""

import os
import platform
import subprocess
from collections.abc import Collection, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rnnsmt import __version__
from rnnsmt.base.errors import InputError
from rnnsmt.base.opening import sha256
from rnnsmt.base.paths import StrPath
from rnnsmt.base.reading import read_json
from rnnsmt.evaluation.scores import Scores
from rnnsmt.formats.ini import PHRASE_DICTIONARY, MosesIni
from rnnsmt.plan.pipeline import checkout
from rnnsmt.stages import PACKAGES, operations

FORMAT = "rnnsmt-provenance-1"

DEPENDENCIES = ("numpy", "numba", "torch", "ufal.kenlm", "sacremoses", "regex", "sacrebleu", "duckdb", "snakemake")
"""Packages that can affect a result, and the workflow engine."""

BESIDE = {"output": ".output", "tokens": ".tokens", "detokenized": ".detokenized"}
"""Suffixes of the files that the workflow writes next to a score file SET.bleu.json, by kind.

The report of the decoder is not among them, since the score file contains it.
"""


class Files:
    """Files on which results depend; each is hashed once."""

    def __init__(self) -> None:
        self._found: dict[str, dict[str, Any]] = {}

    def add(self, path: StrPath) -> str:
        """Add a file; return its normalised path."""
        name = os.path.normpath(path)
        if name not in self._found:
            if not Path(name).is_file():
                raise InputError(f"{name}: no such file; run the workflow again")
            self._found[name] = {"bytes": Path(name).stat().st_size, "sha256": sha256(name)}
        return name

    def add_as_read(self, report: StrPath) -> str:
        """Add a report of ``corpus prepare`` and its raw files, after checking that the raw files have not changed."""
        for entry in read_json(report)["inputs"]:
            name = self.add(entry["path"])
            if self._found[name]["sha256"] != entry["sha256"]:
                raise InputError(
                    f"{name}: was replaced after {report} was written, so the results do not correspond to this "
                    "file; restore the old file, or touch the new one and run the workflow again"
                )
        return self.add(report)

    def beside(self, score: str, test_set: str) -> dict[str, str]:
        """Add a score file and the files next to it; return their paths by kind."""
        directory = Path(score).parent
        paths = {name: directory / f"{test_set}{suffix}" for name, suffix in BESIDE.items()}
        return {"score": self.add(score)} | {name: self.add(path) for name, path in paths.items() if path.is_file()}

    def listing(self) -> dict[str, dict[str, Any]]:
        """Return size and hash by path, sorted by path."""
        return dict(sorted(self._found.items()))


def tuned_run(score: str, files: Files, inis: Collection[str] | None = None) -> dict[str, Any] | None:
    """Return seed, weights and files of the tuned model in a score file's directory, or None if it has none.

    A phrase table that was not exported (``phrases.export``) is not among the files.

    Args:
        files: files are added to this collection.
        inis: the moses.ini files of the current systems; other ones, from earlier systems with the same names, are
            ignored. None: no file is ignored.
    """
    directory = Path(score).parent
    path = directory / "moses.ini"
    is_current = inis is None or os.path.normpath(path) in map(os.path.normpath, inis)
    if not is_current or not path.is_file():
        return None
    ini = MosesIni.read(path)
    run: dict[str, Any] = {
        "ini": files.add(path),
        "weights": ini.weights,
        "model": {
            f.name: files.add(ini.file_of(f))
            for f in ini.features
            if "path" in f.options and (f.kind != PHRASE_DICTIONARY or ini.file_of(f).is_file())
        },
    }
    if (directory / "history.json").is_file():
        history = read_json(directory / "history.json")
        run["history"] = files.add(directory / "history.json")
        run |= {key: history.get(key) for key in ("seed", "averaged", "dev_bleu")}
    return run


def cells_and_runs(
    scores: Scores, joint: Mapping[str, Sequence[str]], files: Files, inis: Collection[str] | None = None
) -> dict[str, Any]:
    """Return ``cells`` (the runs of every system on every test set) and ``runs`` (the tuned model of every run).

    Args:
        scores: scores by system and test set, and by run.
        joint: test sets of each joint test set; joint test sets have no score files.
        files: files are added to this collection.
        inis: as for ``tuned_run``.
    """
    runs: dict[str, Any] = {}
    cells = []
    for (system, test_set), by_run in scores.items():
        members = []
        for number, score in sorted(by_run.items()):
            key = f"{system}/run{number}"
            sacre = None if score.sacrebleu is None else round(score.sacrebleu.score, 6)
            member = {"run": key, "bleu": round(score.bleu.bleu, 6), "sacrebleu": sacre}
            if test_set not in joint:
                runs.setdefault(key, tuned_run(score.path, files, inis))
                member |= files.beside(score.path, test_set)
            members.append(member)
        cells.append({"system": system, "test_set": test_set, "joins": joint.get(test_set), "runs": members})
    return {"cells": cells, "runs": runs}


def details_of_network(model: StrPath, history: StrPath, files: Files) -> dict[str, Any]:
    """Return the files of a network, which are added to ``files``, and seed and settings of its training run."""
    value = read_json(history)
    details = {key: value.get(key) for key in ("seed", "settings", "parameters", "computed on") if key in value}
    return {"model": files.add(model), "history": files.add(history), **details}


def software() -> dict[str, Any]:
    """Return versions of this package, its checkout, its stages, Python, and the packages it depends on."""
    packages: dict[str, str | None] = {}
    for name in DEPENDENCIES:
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = None
    return {
        "software": {"rnnsmt": __version__, **_checkout(), "python": platform.python_version(), "packages": packages},
        "stage_versions": {
            f"{package} {name}": stage.version for package in PACKAGES for name, stage in operations(package).items()
        },
    }


def strings(value: object) -> Iterator[str]:
    """Yield all strings of a configuration: keys of maps, and values."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from strings([name, item])
    elif isinstance(value, Sequence):
        for item in value:
            yield from strings(item)


def _checkout() -> dict[str, Any]:
    """Return the git commit of the checkout of this package, and whether tracked files were modified."""
    root = checkout()
    if root is None or not (root / ".git").exists():
        return {"commit": None, "modified": None}
    try:
        commit = _git(root, "rev-parse", "HEAD")
        return {"commit": commit, "modified": bool(_git(root, "status", "--porcelain", "--untracked-files=no"))}
    except (OSError, subprocess.SubprocessError):
        return {"commit": None, "modified": None}


def _git(root: Path, *words: str) -> str:
    command = ["git", "--no-optional-locks", "-C", str(root), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout.strip()
