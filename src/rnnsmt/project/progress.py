"""Status of a run: the running jobs, from Snakemake's log, and the progress of each, from the log of the job."""

import re
from collections.abc import Iterator
from pathlib import Path

from rnnsmt.base.errors import InputError
from rnnsmt.project.running import made_with
from rnnsmt.project.setup import CONFIG

EVENT = re.compile(
    r"^(?:local)?rule (?P<rule>\w+):\n(?P<about>(?:    .*\n)*)"  # a job starts, for the first time or again
    r"|^Finished jobid: (?P<finished>\d+)"
    r"|^Error in rule (?P<failed>\w+):\n(?:.*\n)*?    jobid: (?P<number>\d+)",
    re.M,
)
"""Events of jobs in Snakemake's log; the lines below the start of a job contain its log, number and wildcards."""

TAIL = 1 << 14
"""Number of bytes read at the end of a job's log."""


def progress_of(directory: Path) -> Iterator[str]:
    """Yield lines about the last run in a directory: progress, and running jobs with the last lines of their logs."""
    logs = sorted((directory / ".snakemake/log").glob("*.snakemake.log"), reverse=True)
    texts = (path.read_text(encoding="utf-8", errors="replace") for path in logs)
    text = next(
        (text for text in texts if "Job stats:" in text), None
    )  # other calls, e.g. --unlock, have a log as well
    if text is None:
        raise InputError(f"{directory}: no run of the workflow; use the directory that contains results/")
    total = re.findall(r"^total +(\d+)", text, re.M)
    done, total = (re.findall(r"^(\d+) of (\d+) steps", text, re.M) or [("0", *total)])[-1]
    running: dict[str, tuple[str, str]] = {}  # name and log by number; a resubmitted job starts again
    failed: dict[str, str] = {}
    for event in EVENT.finditer(text):
        number = event["finished"] or event["number"]
        if event["rule"]:
            about = dict(line.strip().split(": ", 1) for line in event["about"].splitlines() if ": " in line)
            number = about.get("jobid", "")
            running[number] = f"{event['rule']} {about.get('wildcards', '')}".rstrip(), about.get("log", "")
        else:
            running.pop(number, None)
        failed.pop(number, None)
        if event["failed"]:
            failed[number] = event["failed"]
    if any((directory / ".snakemake/locks").glob("*.lock")):
        state = (
            "running (or killed: if no snakemake runs here, unlock it with snakemake --unlock or rnnsmt run --unlock)"
        )
    else:
        state = "failed" if failed else "finished" if done == total else "ended early"
    yield f"{state}: {done} of {total} jobs done"
    if warning := made_with(directory, directory / CONFIG):
        yield f"  {warning}"
    for name, log in running.values():
        yield f"  {name}"
        if log and (last := _last_line(directory / log.split(", ")[0])):
            yield f"    {last}"
    yield from (f"  failed: {rule}" for rule in failed.values())
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
