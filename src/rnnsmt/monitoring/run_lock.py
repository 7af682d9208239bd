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
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from rnnsmt.base.io import InputError

RUNS = "rnnsmt-runs"
"""Directory of the run files below ``.snakemake``."""

NO_RUNS = (
    "dry-run", "dryrun", "touch", "lint", "summary", "detailed-summary", "list-rules", "dag", "rulegraph", "mode",
)  # fmt: skip
"""Options with which Snakemake executes nothing, or a single job of another run (mode).

The list is not complete; taking a plan for a run does no harm.
"""

IN_QUEUE = "PENDING,CONFIGURING,RUNNING,SUSPENDED,STOPPED,COMPLETING"
"""Slurm states of jobs that have not ended."""

_kept: dict[Path, IO[str]] = {}
"""Locked files of this process by directory, kept open until it ends."""


def enter(folder: Path, cluster: bool, arguments: Sequence[str] = ()) -> bool:
    """Register a run in a directory, after removing the stale lock of a dead run; return whether there was one.

    Args:
        folder: Snakemake's directory ``.snakemake``.
        cluster: whether this run submits jobs to other machines.
        arguments: Snakemake's command line. A dry run or a job of another run is not registered and removes nothing.

    Raises:
        InputError: Slurm jobs of a dead run are still in the queue.
    """
    runs = (folder / RUNS).resolve()
    if runs in _kept or not executes(arguments):
        return False
    try:
        runs.mkdir(parents=True, exist_ok=True)
        with (runs / "lock").open("w") as guard:
            fcntl.flock(guard, fcntl.LOCK_EX)  # runs that start at the same time enter one after the other
            removed = _clear(folder, runs, "--unlock" in arguments)
            path = runs / f"{socket.gethostname()}.{os.getpid()}.json"
            file = path.open("w", encoding="utf-8")
            json.dump({"host": socket.gethostname(), "cluster": cluster}, file)
            file.flush()
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # the directory is not writable, or the file system has no locks: runs cannot be detected
        return False
    _kept[runs] = file
    atexit.register(path.unlink, missing_ok=True)
    return removed


def runs_alive(folder: Path) -> bool:
    """Return whether a run is alive, as far as this machine can tell; ``folder`` is Snakemake's ``.snakemake``."""
    return any(not _is_dead(path) for path in (folder / RUNS).glob("*.json"))


def executes(arguments: Sequence[str]) -> bool:
    """Return whether a call of Snakemake executes jobs as a run of its own, by its command line."""
    return not any(_is_no_run(argument) for argument in arguments)


def _is_no_run(argument: str) -> bool:
    """Return whether an argument is one of ``NO_RUNS`` or its short form."""
    # Short options without a value may precede it (-pn) and anything may follow it (-nR rule), but -Rnames is a run.
    return argument in [f"--{name}" for name in NO_RUNS] or re.match("-[fFkpa]*[ntlSD]", argument) is not None


def _clear(folder: Path, runs: Path, unlock: bool) -> bool:
    """Remove the files of runs that are over and Snakemake's lock if it is stale; return whether that was there."""
    paths = list(runs.glob("*.json"))
    if not all(_is_dead(path) for path in paths):
        return False
    over = [unlock or _is_over(path, folder) for path in paths]  # a list: jobs of any run in Slurm's queue are an error
    if not all(over):
        return False
    for path in paths:
        path.unlink(missing_ok=True)
    locks = folder / "locks"
    if unlock or not paths or not locks.is_dir() or not any(locks.iterdir()):
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
    """Return whether a dead run and its jobs have ended, as far as that is known.

    The run must have started on this machine, and its jobs must have run there or have left Slurm's queue.

    Raises:
        InputError: Slurm has jobs of the directory.
    """
    try:
        note = json.loads(path.read_text(encoding="utf-8"))
        host, cluster = note["host"], note["cluster"]
    except FileNotFoundError:  # the run has just ended normally
        return True
    except (ValueError, TypeError, KeyError):  # the run died before it had written this
        return False
    if host != socket.gethostname():
        return False
    if not cluster:
        return True
    if jobs := slurm_jobs(folder):
        raise InputError(
            f"a run in {folder.resolve().parent} was killed; its jobs {', '.join(jobs)} are still in Slurm's queue: "
            f"wait until they have ended, or cancel them (scancel {' '.join(jobs)}), and run the same command again"
        )
    return jobs is not None


def slurm_jobs(folder: Path) -> list[str] | None:
    """Return the numbers of the jobs in Slurm's queue that Snakemake's executor submitted for a directory.

    They are recognised by their logs, which this executor writes to ``.snakemake/slurm_logs``. Return None if the
    executor was not used in the directory or Slurm does not answer.
    """
    logs = (folder / "slurm_logs").resolve()
    if not logs.is_dir():
        return None
    user, columns = f"--user={os.getuid()}", "--Format=JobArrayID:40,STDOUT:4096"
    command = ["squeue", "--noheader", user, f"--states={IN_QUEUE}", columns]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    jobs = [line.split(None, 1) for line in answer.splitlines() if line.strip()]
    return [number for number, log in jobs if Path(log.rstrip()).is_relative_to(logs)]
