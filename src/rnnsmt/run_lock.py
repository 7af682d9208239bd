"""Which runs of Snakemake are alive in a folder: after ``kill -9`` or a power cut the same command goes on.

A killed Snakemake leaves its lock behind, and the next one refuses to start. So every run of these rules keeps a file
in ``.snakemake/rnnsmt-runs`` under a lock of the system, which goes with its process however that ends; an orderly end
removes the file. Snakemake's lock is stale, and removed, where files of dead runs are there and no run is alive.
Everything stays for the user to decide (``snakemake --unlock``) where a dead run gave its jobs to a cluster, as they
may still be at work, or where a run started on another host, because some file systems keep locks to one host.
"""

import atexit
import fcntl
import json
import os
import re
import shutil
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

RUNS = "rnnsmt-runs"

NO_RUNS = (
    "dry-run",
    "dryrun",
    "touch",
    "lint",
    "summary",
    "detailed-summary",
    "list-rules",
    "dag",
    "rulegraph",
    "mode",
)
"""Options of Snakemake with which it executes nothing, or one job for a run (mode). There are more: to take a plan for
a run does no harm."""

_kept: dict[Path, IO[str]] = {}
"""The locked files of this process, open until it ends."""


def enter(folder: Path, cluster: bool, arguments: Sequence[str] = ()) -> bool:
    """Take part in the runs of a folder, after removing the stale lock of a dead one.

    Args:
        folder: Snakemake's own, ``.snakemake``.
        cluster: whether this run gives its jobs to other machines.
        arguments: Snakemake's command line; a plan or a job of a run neither removes anything nor counts as a run.

    Returns:
        Whether a stale lock was removed.
    """
    runs = (folder / RUNS).resolve()
    if runs in _kept or any(_is_no_run(argument) for argument in arguments):
        return False
    try:
        runs.mkdir(parents=True, exist_ok=True)
        with _one_at_a_time(runs):
            removed = _clear(folder, runs, "--unlock" in arguments)
            own = runs / f"{socket.gethostname()}.{os.getpid()}.json"
            file = own.open("w", encoding="utf-8")
            json.dump({"host": socket.gethostname(), "cluster": cluster}, file)
            file.flush()
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # a folder that cannot be written, or no locks of the system: nothing to know by
        return False
    _kept[runs] = file
    atexit.register(own.unlink, missing_ok=True)
    return removed


def runs_alive(folder: Path) -> bool:
    """Whether a run is alive, as far as this machine can know. folder: Snakemake's own, ``.snakemake``."""
    return any(not _is_dead(path) for path in (folder / RUNS).glob("*.json"))


def _is_no_run(argument: str) -> bool:
    # Short options that take no value may stand before it (-pn), anything behind it (-nR rule): but -Rnames is a run.
    return argument in [f"--{name}" for name in NO_RUNS] or re.match("-[fFkpa]*[ntlSD]", argument) is not None


@contextmanager
def _one_at_a_time(runs: Path) -> Iterator[None]:
    """Two that start together look one after the other."""
    with (runs / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _clear(folder: Path, runs: Path, unlock: bool) -> bool:
    """Remove Snakemake's lock if it is stale, and the files of dead runs that nobody has to know of any more."""
    alive: list[Path] = []
    here: list[Path] = []
    elsewhere: list[Path] = []
    for path in runs.glob("*.json"):
        if not _is_dead(path):
            alive.append(path)
        else:
            (here if _was_here(path) else elsewhere).append(path)
    if alive:
        return False
    locks = folder / "locks"
    locked = locks.is_dir() and any(locks.iterdir())
    if unlock or not elsewhere:
        for path in here + elsewhere:
            path.unlink(missing_ok=True)
    if unlock or elsewhere or not here or not locked:
        return False
    shutil.rmtree(locks)
    return True


def _is_dead(path: Path) -> bool:
    """Whether nobody holds the lock of a run's file, or the run has just ended and taken its file along."""
    try:
        with path.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _was_here(path: Path) -> bool:
    """Whether a run executed its jobs on this machine; not if it did not come to say so."""
    with suppress(FileNotFoundError):  # it has just ended by itself
        return _says_here(path)
    return True


def _says_here(path: Path) -> bool:
    with suppress(ValueError, TypeError, KeyError):
        about = json.loads(path.read_text(encoding="utf-8"))
        return about["host"] == socket.gethostname() and not about["cluster"]
    return False
