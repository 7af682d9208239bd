"""What the jobs of a run took: time by the last line of their logs, memory beside what their rules asked for, disk.

Snakemake writes rule, outputs, log and resources of every job into ``.snakemake/log``, a stage its seconds and its peak
into its own log. What was run more than once counts as it was run last. Outputs count as large as they are now; scratch
files and checkpoints are not outputs.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rnnsmt.io import InputError

# Jobs of a group are indented.
_JOB = re.compile(r"^(?P<margin> *)(?:local)?rule (?P<rule>\w+):\n(?P<about>(?:(?P=margin)    .*\n)*)", re.M)

_OUTPUT = re.compile(r"^ +output: (.+)$", re.M)

_LOG = re.compile(r"^ +log: ([^,\n]+)", re.M)

_MEMORY = re.compile(r"\bmem_mb=(\d+)")

_TOOK = re.compile(r"([\d,.]+) s, ([\d,.]+) CPU s, peak ([\d,]+) MB\s*$", re.M)


class JobUsage(NamedTuple):
    """One job: wall and CPU seconds, megabytes that its rule asked for, that it took at most, and of its outputs."""

    rule: str
    seconds: float
    cpu: float
    asked_mb: int
    peak_mb: int
    output_mb: float


def _outputs(about: str) -> list[str]:
    """The paths of a job's outputs."""
    output = _OUTPUT.search(about)
    return output[1].split(", ") if output else []


def _size(path: Path) -> int:
    """Bytes of a file, 0 where there is none any more."""
    return path.stat().st_size if path.is_file() else 0


def jobs(folder: Path) -> list[JobUsage]:
    """All jobs of a run's folder whose logs say what they took, in the order in which they were begun.

    Raises:
        InputError: there is no log of Snakemake.
    """
    if not (logs := sorted((folder / ".snakemake/log").glob("*.snakemake.log"))):
        raise InputError(f"{folder}: no run of the workflow is known here; give the folder with its results/")
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
    """The jobs of a run by their rules.

    Raises:
        InputError: as ``jobs``.
    """
    found: dict[str, list[JobUsage]] = {}
    for job in jobs(folder):
        found.setdefault(job.rule, []).append(job)
    return found


def usage(folder: Path) -> Iterator[str]:
    """The jobs of a run by rule, as a Markdown table: sums of seconds and outputs, the largest memory.

    Raises:
        InputError: as ``jobs``.
    """
    rules = by_rule(folder)
    yield "| rule | jobs | seconds | CPU seconds | MB asked for | MB taken | MB written |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for rule, own in rules.items():
        memory = f"{max(job.asked_mb for job in own):,} | {max(job.peak_mb for job in own):,}"
        yield f"| {rule} | {_sums(own)} | {memory} | {_written(own)} |"
    everything = [job for own in rules.values() for job in own]
    yield f"| all | {_sums(everything)} | | | {_written(everything)} |"


def _sums(own: list[JobUsage]) -> str:
    """Number, seconds and CPU seconds of jobs."""
    return f"{len(own)} | {sum(job.seconds for job in own):,.0f} | {sum(job.cpu for job in own):,.0f}"


def _written(own: list[JobUsage]) -> str:
    """Megabytes of the outputs of jobs."""
    return f"{sum(job.output_mb for job in own):,.1f}"
