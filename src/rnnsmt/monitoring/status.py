"""Status of a workflow run: progress noted by its logger, whether it is alive, and the last messages of its jobs.

``snakemake_logger_plugin_rnnsmt`` updates ``.snakemake/rnnsmt-status.json`` during a run; the stages write rate and
expected end to their logs. The status can therefore be queried from another terminal, or from another machine with
access to the directory.
"""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rnnsmt.base.io import InputError, read_json
from rnnsmt.monitoring.run_lock import runs_alive

FILE = Path(".snakemake/rnnsmt-status.json")
"""Status file, relative to the directory of the run."""

TAIL = 1 << 14
"""Number of bytes read at the end of a log."""


def status(folder: Path) -> Iterator[str]:
    """Yield lines about the last run in a directory and its results.

    Raises:
        InputError: no run is known.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such directory")
    if not (folder / FILE).is_file():
        raise InputError(
            f"{folder}: no run of the workflow in this directory; give the directory that contains results/"
        )
    run = read_json(folder / FILE)
    alive = runs_alive(folder / ".snakemake")
    state = _state(run, alive)
    started = time.strftime("%Y-%m-%d %H:%M", time.localtime(run["started"]))
    until = time.time() if state == "running" else run["seen"]
    left = f", about {clock(run['left'])} left" if state == "running" and run["left"] is not None else ""
    yield f"{state}: {run['done']} of {run['total']} jobs done, {clock(until - run['started'])} since {started}{left}"
    for job in run["running"]:
        spent = f" for {clock(until - job['started'])}" if state == "running" else ""
        yield f"  {'running' if state == 'running' else 'was running'}: {job['name']}{spent}"
        if said := _last_line(folder, job["logs"]):
            yield f"    {said}"
    for lines in run["failed"]:
        yield from (f"  {line}" for line in lines)
    table = folder / "results/table1.md"
    if table.is_file():
        made = time.strftime("%Y-%m-%d %H:%M", time.localtime(table.stat().st_mtime))
        yield f"  the table of {made}: {table}"
    if state in ("ended early", "failed"):
        yield "  to resume, run the same command again"


def _state(run: dict[str, Any], alive: bool) -> str:
    """Return running, finished, failed, or ended early (killed or interrupted)."""
    if alive and not run["ended"]:
        return "running"
    if run["failed"]:
        return "failed"
    return "finished" if run["done"] == run["total"] else "ended early"


def _last_line(folder: Path, logs: list[str]) -> str:
    """Return the last line of a job's log: rate and expected end, losses, or an error message."""
    for path in logs:
        try:
            with (folder / path).open("rb") as file:
                file.seek(max(0, file.seek(0, 2) - TAIL))
                lines = re.split(r"[\r\n]+", file.read().decode("utf-8", "replace"))
        except OSError:
            continue
        if said := [line for line in lines if line.strip()]:
            return said[-1].strip()[:300]
    return ""


def clock(seconds: float) -> str:
    """Format a duration, e.g. 1 h 05 min."""
    minutes, rest = divmod(max(int(seconds), 0), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
