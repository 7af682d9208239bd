"""What the jobs of a run took: time by the last line of their logs, memory beside what their rules asked for.

Snakemake writes rule, log and resources of every job into ``.snakemake/log``, a stage its seconds and its peak into its
own log. What was run more than once counts as it was run last.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rnnsmt.io import InputError

# Jobs of a group are indented.
_JOB = re.compile(r"^(?P<margin> *)(?:local)?rule (?P<rule>\w+):\n(?P<about>(?:(?P=margin)    .*\n)*)", re.M)

_LOG = re.compile(r"^ +log: ([^,\n]+)", re.M)

_MEMORY = re.compile(r"\bmem_mb=(\d+)")

_TOOK = re.compile(r"([\d,.]+) s, ([\d,.]+) CPU s, peak ([\d,]+) MB\s*$", re.M)


class JobUsage(NamedTuple):
    """One job: wall and CPU seconds, megabytes that its rule asked for and that it took at most."""

    rule: str
    seconds: float
    cpu: float
    asked_mb: int
    peak_mb: int


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
                    found[log[1]] = JobUsage(job["rule"], seconds, cpu, int(asked[1]), int(peak))
    return list(found.values())


def usage(folder: Path) -> Iterator[str]:
    """The jobs of a run by rule, as a Markdown table: sums of seconds, the largest memory.

    Raises:
        InputError: as ``jobs``.
    """
    by_rule: dict[str, list[JobUsage]] = {}
    for job in jobs(folder):
        by_rule.setdefault(job.rule, []).append(job)
    yield "| rule | jobs | seconds | CPU seconds | MB asked for | MB taken |"
    yield "|---|---:|---:|---:|---:|---:|"
    for rule, own in by_rule.items():
        sums = f"{sum(job.seconds for job in own):,.0f} | {sum(job.cpu for job in own):,.0f}"
        yield f"| {rule} | {len(own)} | {sums} | {max(j.asked_mb for j in own):,} | {max(j.peak_mb for j in own):,} |"
    everything = [job for own in by_rule.values() for job in own]
    sums = f"{sum(job.seconds for job in everything):,.0f} | {sum(job.cpu for job in everything):,.0f}"
    yield f"| all | {len(everything)} | {sums} | | |"
