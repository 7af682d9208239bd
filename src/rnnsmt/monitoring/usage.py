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


def by_rule(folder: Path) -> dict[str, list[JobUsage]]:
    """Return the jobs of a run whose logs report their resources by rule, in the order in which they started.

    Raises:
        InputError: there is no Snakemake log.
    """
    if not (logs := sorted((folder / ".snakemake/log").glob("*.snakemake.log"))):
        raise InputError(
            f"{folder}: no run of the workflow in this directory; give the directory that contains results/"
        )
    jobs = {}
    for path in logs:
        for job in _JOB.finditer(path.read_text(encoding="utf-8", errors="replace")):
            log, asked, output = (pattern.search(job["about"]) for pattern in (_LOG, _MEMORY, _OUTPUT))
            if log is None or asked is None or not (folder / log[1]).is_file():
                continue
            if took := _TOOK.findall((folder / log[1]).read_text(encoding="utf-8", errors="replace")):
                seconds, cpu, peak = (float(value.replace(",", "")) for value in took[-1])
                files = [folder / name for name in (output[1].split(", ") if output else ())]
                written = sum(file.stat().st_size for file in files if file.is_file()) / 1e6
                jobs[log[1]] = JobUsage(job["rule"], seconds, cpu, int(asked[1]), int(peak), written)
    rules: dict[str, list[JobUsage]] = {}
    for usage_of_job in jobs.values():
        rules.setdefault(usage_of_job.rule, []).append(usage_of_job)
    return rules


def usage(folder: Path) -> Iterator[str]:
    """Yield a Markdown table of the jobs of a run by rule: sums of seconds and outputs, maximum memory.

    Raises:
        InputError: as ``by_rule``.
    """
    rules = by_rule(folder)
    yield "| rule | jobs | seconds | CPU seconds | MB requested | MB used | MB written |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for rule, jobs in rules.items():
        yield _row(rule, jobs, f"{max(job.asked_mb for job in jobs):,} | {max(job.peak_mb for job in jobs):,}")
    yield _row("all", [job for jobs in rules.values() for job in jobs], "|")


def _row(name: str, jobs: list[JobUsage], memory: str) -> str:
    seconds, cpu = sum(job.seconds for job in jobs), sum(job.cpu for job in jobs)
    written = sum(job.output_mb for job in jobs)
    return f"| {name} | {len(jobs)} | {seconds:,.0f} | {cpu:,.0f} | {memory} | {written:,.1f} |"
