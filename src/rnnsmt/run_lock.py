"""Which runs of Snakemake are alive in a folder: after ``kill -9`` or a power cut the same command goes on.

A killed Snakemake leaves its lock behind, and the next one refuses to start. So every run of these rules keeps a file
in ``.snakemake/rnnsmt-runs`` under a lock of the system, which goes with its process however that ends; an orderly end
removes the file. Snakemake's lock is stale, and removed, where files of dead runs are there and no run is alive.

The jobs that a dead run gave to a cluster may still be at work. Slurm is asked for them: while there are some, a new
run would give it the same jobs once more, and is refused. Where there is no Slurm to ask, or a run started on another
host, because some file systems keep locks to one host, everything stays for the user to decide (``snakemake
--unlock``).
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

from rnnsmt.io import InputError

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

IN_QUEUE = "PENDING,CONFIGURING,RUNNING,SUSPENDED,STOPPED,COMPLETING"
"""States of a job of Slurm that has not ended."""

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

    Raises:
        InputError: jobs that a dead run gave to Slurm are still at work.
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
    paths = list(runs.glob("*.json"))
    if not all(_is_dead(path) for path in paths):
        return False
    over = [path for path in paths if unlock or _is_over(path, folder)]
    locks = folder / "locks"
    locked = locks.is_dir() and any(locks.iterdir())
    if len(over) < len(paths):  # of the others nobody here knows
        return False
    for path in over:
        path.unlink(missing_ok=True)
    if unlock or not over or not locked:
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


def _is_over(path: Path, folder: Path) -> bool:
    """Whether a dead run and its jobs are over: it started on this machine, and so did its jobs, or Slurm has none."""
    with suppress(FileNotFoundError):  # it has just ended by itself
        about = _about(path)
        if about is None or about["host"] != socket.gethostname():
            return False
        return not about["cluster"] or _no_jobs_left(folder)
    return True


def _about(path: Path) -> dict[str, object] | None:
    """What a run said of itself; None if it did not come to say so."""
    with suppress(ValueError, TypeError, KeyError):
        about = json.loads(path.read_text(encoding="utf-8"))
        return {"host": about["host"], "cluster": about["cluster"]}
    return None


def _no_jobs_left(folder: Path) -> bool:
    """Whether Slurm has no job of this folder any more; not where it cannot be asked.

    Raises:
        InputError: it has some.
    """
    jobs = slurm_jobs(folder)
    if jobs:
        raise InputError(
            f"a run in {folder.resolve().parent} was killed, and of its jobs Slurm still has {', '.join(jobs)}: wait "
            f"until they have ended, or end them (scancel {' '.join(jobs)}), and start again; finished work is kept"
        )
    return jobs is not None


def slurm_jobs(folder: Path) -> list[str] | None:
    """The numbers of the jobs in Slurm's queue that Snakemake's executor gave it for a folder.

    They are known by their logs, which that executor writes to ``.snakemake/slurm_logs``.

    Args:
        folder: Snakemake's own, ``.snakemake``.

    Returns:
        None where that executor was not at work in the folder, or Slurm does not answer.
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
