"""Detection of dead Snakemake runs, so that after ``kill -9`` or a power failure the same command resumes.

A killed Snakemake leaves its lock behind, and the next run refuses to start. Every run of this workflow therefore holds
a system lock on a file in ``.snakemake/rnnsmt-runs``. The system releases the lock when the process ends in any way; a
normal end also removes the file. If there are files of dead runs and no run is alive, Snakemake's lock is stale and is
removed.

Cluster jobs of a dead run may still be running. Slurm is queried for them; while there are any, a new run is refused,
since it would submit the same jobs again. If Slurm is not available, or if a run started on another host (some file
systems keep locks local to a host), nothing is removed and the user has to decide (``snakemake --unlock``).
"""

import atexit
import fcntl
import json
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from rnnsmt.base.io import InputError

RUNS = "rnnsmt-runs"
"""Directory of the run files below ``.snakemake``."""

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
"""Options with which Snakemake executes nothing, or a single job of another run (mode).

The list is not complete; taking a plan for a run does no harm.
"""

IN_QUEUE = "PENDING,CONFIGURING,RUNNING,SUSPENDED,STOPPED,COMPLETING"
"""Slurm states of jobs that have not ended."""

_kept: dict[Path, IO[str]] = {}
"""Locked files of this process by directory, kept open until it ends."""


def enter(folder: Path, cluster: bool, arguments: Sequence[str] = ()) -> bool:
    """Register a run in a directory, after removing the stale lock of a dead run.

    Args:
        folder: Snakemake's directory ``.snakemake``.
        cluster: whether this run submits jobs to other machines.
        arguments: Snakemake's command line. A dry run or a job of another run is not registered and removes nothing.

    Returns:
        Whether a stale lock was removed.

    Raises:
        InputError: Slurm jobs of a dead run are still in the queue.
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
    except OSError:  # the directory is not writable, or the file system has no locks: runs cannot be detected
        return False
    _kept[runs] = file
    atexit.register(own.unlink, missing_ok=True)
    return removed


def runs_alive(folder: Path) -> bool:
    """Return whether a run is alive, as far as this machine can tell; ``folder`` is Snakemake's ``.snakemake``."""
    return any(not _is_dead(path) for path in (folder / RUNS).glob("*.json"))


def _is_no_run(argument: str) -> bool:
    """Return whether an argument is one of ``NO_RUNS`` or its short form."""
    # Short options without a value may precede it (-pn) and anything may follow it (-nR rule), but -Rnames is a run.
    return argument in [f"--{name}" for name in NO_RUNS] or re.match("-[fFkpa]*[ntlSD]", argument) is not None


@contextmanager
def _one_at_a_time(runs: Path) -> Iterator[None]:
    """Make processes that start at the same time enter one after the other."""
    with (runs / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _clear(folder: Path, runs: Path, unlock: bool) -> bool:
    """Remove Snakemake's lock if it is stale, and the files of dead runs that are no longer needed.

    Returns:
        Whether the lock was removed.
    """
    paths = list(runs.glob("*.json"))
    if not all(_is_dead(path) for path in paths):
        return False
    over = [path for path in paths if unlock or _is_over(path, folder)]
    locks = folder / "locks"
    locked = locks.is_dir() and any(locks.iterdir())
    if len(over) < len(paths):  # the state of the jobs of the other runs is unknown
        return False
    for path in over:
        path.unlink(missing_ok=True)
    if unlock or not over or not locked:
        return False
    shutil.rmtree(locks)
    return True


def _is_dead(path: Path) -> bool:
    """Return whether no process holds the lock of a run's file, or the file has just been removed by its run."""
    try:
        with path.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _is_over(path: Path, folder: Path) -> bool:
    """Return whether a dead run and its jobs have ended.

    This is known if the run started on this machine and its jobs ran there too or are no longer in Slurm's queue.
    """
    with suppress(FileNotFoundError):  # the run has just ended normally
        about = _about(path)
        if about is None or about["host"] != socket.gethostname():
            return False
        return not about["cluster"] or _no_jobs_left(folder)
    return True


def _about(path: Path) -> dict[str, object] | None:
    """Return the information that a run wrote about itself, or None if it ended before that."""
    with suppress(ValueError, TypeError, KeyError):
        about = json.loads(path.read_text(encoding="utf-8"))
        return {"host": about["host"], "cluster": about["cluster"]}
    return None


def _no_jobs_left(folder: Path) -> bool:
    """Return whether Slurm has no more jobs of this directory; False if it cannot be queried.

    Raises:
        InputError: there are such jobs.
    """
    jobs = slurm_jobs(folder)
    if jobs:
        raise InputError(
            f"a run in {folder.resolve().parent} was killed; its jobs {', '.join(jobs)} are still in Slurm's queue: "
            f"wait until they have ended, or cancel them (scancel {' '.join(jobs)}), and run the same command again"
        )
    return jobs is not None


def slurm_jobs(folder: Path) -> list[str] | None:
    """Return the numbers of the jobs in Slurm's queue that Snakemake's executor submitted for a directory.

    They are recognised by their logs, which this executor writes to ``.snakemake/slurm_logs``.

    Args:
        folder: Snakemake's directory ``.snakemake``.

    Returns:
        Job numbers; None if the executor was not used in the directory or Slurm does not answer.
    """
    logs = (folder / "slurm_logs").resolve()
    if not logs.is_dir():
        return None
    question = [
        "squeue",
        "--noheader",
        f"--user={os.getuid()}",
        f"--states={IN_QUEUE}",
        "--Format=JobArrayID:40,STDOUT:4096",
    ]
    try:
        answer = subprocess.run(question, capture_output=True, text=True, check=True, timeout=60).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    jobs = [line.split(None, 1) for line in answer.splitlines() if line.strip()]
    return [number for number, log in jobs if Path(log.rstrip()).is_relative_to(logs)]
