"""Resource usage of the jobs of a run: time from the last line of their logs, memory compared to the request, disk.

Snakemake writes rule, outputs, log and resources of every job to ``.snakemake/log``; a stage writes its seconds and its
peak memory to its own log. If a job was run several times, the last run counts. Outputs count with their current size;
scratch files and checkpoints are not outputs.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rnnsmt.base.io import InputError

# Jobs of a group are indented.
_JOB = re.compile(r"^(?P<margin> *)(?:local)?rule (?P<rule>\w+):\n(?P<about>(?:(?P=margin)    .*\n)*)", re.M)

_OUTPUT = re.compile(r"^ +output: (.+)$", re.M)

_LOG = re.compile(r"^ +log: ([^,\n]+)", re.M)

_MEMORY = re.compile(r"\bmem_mb=(\d+)")

_TOOK = re.compile(r"([\d,.]+) s, ([\d,.]+) CPU s, peak ([\d,]+) MB\s*$", re.M)


class JobUsage(NamedTuple):
    """Resources of one job: wall-clock and CPU seconds, requested and peak memory in MB, size of its outputs in MB."""

    rule: str
    seconds: float
    cpu: float
    asked_mb: int
    peak_mb: int
    output_mb: float


def _outputs(about: str) -> list[str]:
    """Return the output paths of a job."""
    output = _OUTPUT.search(about)
    return output[1].split(", ") if output else []


def _size(path: Path) -> int:
    """Return the size of a file in bytes, 0 if it no longer exists."""
    return path.stat().st_size if path.is_file() else 0


def jobs(folder: Path) -> list[JobUsage]:
    """Return all jobs of a run's directory whose logs report their resources, in the order in which they started.

    Raises:
        InputError: there is no Snakemake log.
    """
    if not (logs := sorted((folder / ".snakemake/log").glob("*.snakemake.log"))):
        raise InputError(
            f"{folder}: no run of the workflow in this directory; give the directory that contains results/"
        )
    found = {}
    for path in logs:
        for job in _JOB.finditer(path.read_text(encoding="utf-8", errors="replace")):
            log, asked = _LOG.search(job["about"]), _MEMORY.search(job["about"])
            if log and asked and (folder / log[1]).is_file():
                text = (folder / log[1]).read_text(encoding="utf-8", errors="replace")
                if took := _TOOK.findall(text):
                    seconds, cpu, peak = (float(value.replace(",", "")) for value in took[-1])
                    written = sum(_size(folder / path) for path in _outputs(job["about"])) / 1e6
                    found[log[1]] = JobUsage(job["rule"], seconds, cpu, int(asked[1]), int(peak), written)
    return list(found.values())


def by_rule(folder: Path) -> dict[str, list[JobUsage]]:
    """Return the jobs of a run by rule.

    Raises:
        InputError: as ``jobs``.
    """
    found: dict[str, list[JobUsage]] = {}
    for job in jobs(folder):
        found.setdefault(job.rule, []).append(job)
    return found


def usage(folder: Path) -> Iterator[str]:
    """Yield a Markdown table of the jobs of a run by rule: sums of seconds and outputs, maximum memory.

    Raises:
        InputError: as ``jobs``.
    """
    rules = by_rule(folder)
    yield "| rule | jobs | seconds | CPU seconds | MB requested | MB used | MB written |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for rule, own in rules.items():
        memory = f"{max(job.asked_mb for job in own):,} | {max(job.peak_mb for job in own):,}"
        yield f"| {rule} | {_sums(own)} | {memory} | {_written(own)} |"
    everything = [job for own in rules.values() for job in own]
    yield f"| all | {_sums(everything)} | | | {_written(everything)} |"


def _sums(own: list[JobUsage]) -> str:
    """Return number, seconds and CPU seconds of jobs as table cells."""
    return f"{len(own)} | {sum(job.seconds for job in own):,.0f} | {sum(job.cpu for job in own):,.0f}"


def _written(own: list[JobUsage]) -> str:
    """Return the megabytes of the outputs of jobs as a table cell."""
    return f"{sum(job.output_mb for job in own):,.1f}"
