"""Runs of the workflow: detection of dead runs, and status.

After ``kill -9`` or a power failure, the same command resumes the run. A killed Snakemake does not remove its lock, and
the next run would refuse to start. Every run of this workflow therefore holds a system lock on a file in
``.snakemake/rnnsmt-runs``. The system releases the lock when the process ends for any reason; a normal end also removes
the file. A run is dead if its file is not locked. If there are dead runs and no run is alive, Snakemake's lock is stale
and is removed.

Cluster jobs of a dead run may still be running. Slurm is queried for them; while there are any, a new run is refused,
since it would submit the same jobs again. If Slurm is not available, or if a run started on another host (some file
systems keep locks local to a host), nothing is removed and the user has to decide (``snakemake --unlock``).

The status of a run consists of the progress recorded by its logger, whether it is alive, and the last messages of its
jobs. ``snakemake_logger_plugin_rnnsmt`` updates ``.snakemake/rnnsmt-status.json`` during a run; the stages write rate
and expected end to their logs. The status can therefore be queried from another terminal, or from another machine with
access to the directory.
"""

import atexit
import fcntl
import json
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from rnnsmt.base.io import InputError, read_json

RUNS = "rnnsmt-runs"
"""Directory of the run files below ``.snakemake``."""

NO_RUNS = (
    "dry-run", "dryrun", "touch", "lint", "summary", "detailed-summary", "list-rules", "dag", "rulegraph", "mode",
)  # fmt: skip
"""Options with which Snakemake executes nothing, or a single job of another run (mode).

The list is not complete; if a dry run is treated as a run, this does no harm.
"""

HARMFUL = ("--unlock", "--delete-all-output", "--delete-temp-output")
"""Options with which Snakemake removes the lock or the output of an active run."""

IN_QUEUE = "PENDING,CONFIGURING,RUNNING,SUSPENDED,STOPPED,COMPLETING"
"""Slurm states of jobs that have not ended."""

_kept: dict[Path, IO[str]] = {}
"""Locked files of this process by directory, kept open until it ends."""


def enter(directory: Path, cluster: bool, arguments: Sequence[str] = ()) -> bool:
    """Register a run in a directory, after removing the stale lock of a dead run; return whether a lock was removed.

    Args:
        directory: Snakemake's directory ``.snakemake``.
        cluster: whether this run submits jobs to other machines.
        arguments: Snakemake's command line. A dry run or a job of another run is not registered and removes nothing.

    Raises:
        InputError: Slurm jobs of a dead run are still in the queue, or the lock or the output of an active run is to be
            removed.
    """
    runs = (directory / RUNS).resolve()
    if runs in _kept or not executes(arguments):
        return False
    harmful = next((option for option in HARMFUL if option in arguments), None)
    if harmful and (active := others_active(directory)):
        raise InputError(f"{active[0]}; wait until it has ended, or stop it, before using {harmful}")
    try:
        runs.mkdir(parents=True, exist_ok=True)
        with (runs / "lock").open("w") as guard:
            fcntl.flock(guard, fcntl.LOCK_EX)  # runs that start at the same time register one after the other
            removed = _clear(directory, runs, "--unlock" in arguments)
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


def runs_alive(directory: Path) -> bool:
    """Return whether a run is alive, as far as this machine can detect; ``directory`` is ``.snakemake``."""
    return any(not _is_dead(path) for path in (directory / RUNS).glob("*.json"))


def others_active(directory: Path) -> list[str]:
    """Return a line for every active run in a directory except this one; ``directory`` is Snakemake's ``.snakemake``.

    Runs of other hosts are not found if the file system keeps locks local to a host.
    """
    own = _kept.get((directory / RUNS).resolve())
    lines = []
    for path in sorted((directory / RUNS).glob("*.json")):
        if not (own and Path(own.name).name == path.name) and not _is_dead(path):
            host, process = path.stem.rsplit(".", 1)
            lines.append(
                f"another run is active in {directory.resolve().parent} (process {process} on {host}); `rnnsmt status` "
                "shows its progress"
            )
    return lines


def executes(arguments: Sequence[str]) -> bool:
    """Return whether a command line of Snakemake executes jobs as a separate run."""
    return not any(_is_no_run(argument) for argument in arguments)


def _is_no_run(argument: str) -> bool:
    """Return whether an argument is one of ``NO_RUNS`` or its short form."""
    # Short options without a value may precede it (-pn) and anything may follow it (-nR rule), but -Rnames is a run.
    return argument in [f"--{name}" for name in NO_RUNS] or re.match("-[fFkpa]*[ntlSD]", argument) is not None


def _clear(directory: Path, runs: Path, unlock: bool) -> bool:
    """Remove the files of runs that are over, and Snakemake's lock if it is stale; return whether it was removed."""
    paths = list(runs.glob("*.json"))
    if not all(_is_dead(path) for path in paths):
        return False
    over = [
        unlock or _is_over(path, directory) for path in paths
    ]  # a list, so that every run is checked: jobs of any run in Slurm's queue are an error
    if not all(over):
        return False
    for path in paths:
        path.unlink(missing_ok=True)
    locks = directory / "locks"
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


def _is_over(path: Path, directory: Path) -> bool:
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
    except (ValueError, TypeError, KeyError):  # the run was killed before it had written its file
        return False
    if host != socket.gethostname():
        return False
    if not cluster:
        return True
    if jobs := slurm_jobs(directory):
        raise InputError(
            f"a run in {directory.resolve().parent} was killed; its jobs {', '.join(jobs)} are still in Slurm's queue: "
            f"wait until they have ended, or cancel them (scancel {' '.join(jobs)}), and run the same command again"
        )
    return jobs is not None


def slurm_jobs(directory: Path) -> list[str] | None:
    """Return the numbers of the jobs in Slurm's queue that Snakemake's executor submitted for a directory.

    They are recognised by their logs, which this executor writes to ``.snakemake/slurm_logs``. Return None if the
    executor was not used in the directory or Slurm does not answer.
    """
    logs = (directory / "slurm_logs").resolve()
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


FILE = Path(".snakemake/rnnsmt-status.json")
"""Status file, relative to the directory of the run."""

TAIL = 1 << 14
"""Number of bytes read at the end of a log."""


def status(directory: Path) -> Iterator[str]:
    """Yield lines about the last run in a directory and its results.

    Raises:
        InputError: there is no run in the directory.
    """
    if not directory.is_dir():
        raise InputError(f"{directory}: no such directory")
    if not (directory / FILE).is_file():
        raise InputError(
            f"{directory}: no workflow run found in this directory; use the directory that contains results/"
        )
    run = read_json(directory / FILE)
    alive = runs_alive(directory / ".snakemake")
    state = _state(run, alive)
    started = time.strftime("%Y-%m-%d %H:%M", time.localtime(run["started"]))
    until = time.time() if state == "running" else run["seen"]
    left = f", about {clock(run['left'])} left" if state == "running" and run["left"] is not None else ""
    yield f"{state}: {run['done']} of {run['total']} jobs done, {clock(until - run['started'])} since {started}{left}"
    for job in run["running"]:
        spent = f" for {clock(until - job['started'])}" if state == "running" else ""
        yield f"  {'running' if state == 'running' else 'was running'}: {job['name']}{spent}"
        if last_line := _last_line(directory, job["logs"]):
            yield f"    {last_line}"
    for lines in run["failed"]:
        yield from (f"  {line}" for line in lines)
    table = directory / "results/table1.md"
    if table.is_file():
        created = time.strftime("%Y-%m-%d %H:%M", time.localtime(table.stat().st_mtime))
        yield f"  Table 1, written {created}: {table}"
    if state in ("ended early", "failed"):
        yield "  to resume, run the same command again"


def _state(run: dict[str, Any], alive: bool) -> str:
    """Return running, finished, failed, or ended early (killed or interrupted)."""
    if alive and not run["ended"]:
        return "running"
    if run["failed"]:
        return "failed"
    return "finished" if run["done"] == run["total"] else "ended early"


def _last_line(directory: Path, logs: list[str]) -> str:
    """Return the last line of a job's log: rate and expected end, losses, or an error message.

    The first log is that of the stage; others contain the output of external programs.
    """
    try:
        with (directory / logs[0]).open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - TAIL))
            lines = re.split(r"[\r\n]+", file.read().decode("utf-8", "replace"))
    except (OSError, IndexError):
        return ""
    content = [line for line in lines if line.strip()]
    return content[-1].strip()[:300] if content else ""


def clock(seconds: float) -> str:
    """Format a duration, e.g. 1 h 05 min."""
    minutes, rest = divmod(max(int(seconds), 0), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
