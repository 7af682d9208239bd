"""Status of a run, from another terminal: Snakemake's log tells which jobs run, and their logs how far they are."""

import re
from collections.abc import Iterator
from pathlib import Path

from rnnsmt.base.io import InputError

JOB = re.compile(r"^(?:local)?rule (?P<rule>\w+):\n(?P<about>(?:    .*\n)*)", re.M)
"""A job that starts, in Snakemake's log; the lines below it have its log, its number and its wildcards."""

TAIL = 1 << 14
"""Number of bytes read at the end of a job's log."""


def status(directory: Path) -> Iterator[str]:
    """Yield lines about the last run in a directory: progress, the running jobs with the last lines of their logs.

    Raises:
        InputError: no run was started in the directory.
    """
    logs = sorted((directory / ".snakemake/log").glob("*.snakemake.log"))
    if not logs:
        raise InputError(f"{directory}: no run of the workflow; use the directory that contains results/")
    text = logs[-1].read_text(encoding="utf-8", errors="replace")
    steps = re.findall(r"^(\d+) of (\d+) steps", text, re.M) or [
        ("0", *re.findall(r"^total +(\d+)", text, re.M), "0")[:2]
    ]
    failed = re.findall(r"^Error in rule (\w+):\n(?:    message:.*\n)?    jobid: (\d+)", text, re.M)
    is_locked = any((directory / ".snakemake/locks").glob("*.lock"))
    if is_locked:
        state = "running (or killed: if no snakemake runs here, unlock it with snakemake --unlock)"
    else:
        state = "failed" if failed else "finished" if steps[-1][0] == steps[-1][1] else "ended early"
    yield f"{state}: {steps[-1][0]} of {steps[-1][1]} jobs done"
    ended = {*re.findall(r"^Finished jobid: (\d+)", text, re.M), *(number for _, number in failed)}
    for job in JOB.finditer(text):
        about = dict(line.strip().split(": ", 1) for line in job["about"].splitlines() if ": " in line)
        if about.get("jobid") not in ended and "log" in about:
            yield f"  {job['rule']} {about.get('wildcards', '')}".rstrip()
            yield f"    {_last_line(directory / about['log'].split(', ')[0])}"
    yield from (f"  failed: {rule}" for rule, _ in failed)
    if (directory / "results/table1.md").is_file():
        yield f"  table: {directory / 'results/table1.md'}"


def _last_line(path: Path) -> str:
    """Return the last line of a log that is not empty; progress bars end their lines with a carriage return."""
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, 2) - TAIL))
        lines = re.split(r"[\r\n]+", file.read().decode("utf-8", "replace"))
    return next((line.strip()[:300] for line in reversed(lines) if line.strip()), "")
