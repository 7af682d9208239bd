"""Measure how CPU time, memory and disk of the jobs of the workflow grow with the text, from the logs of several runs.

    python benchmarks/growth.py RUN RUN ... --at 348

A job's log ends with its CPU seconds and peak memory, the log of Snakemake has its memory request, and its outputs have
their sizes. Jobs of a rule are added up, separately for every aligner, network, column and system; the memory is that
of the largest job. The exponent is k where a cost grows as N^k with the number N of target words: the slope of the
least-squares line through the logarithms of all runs of at least a fifth of the largest one, because the start of a
process dominates in smaller runs. ``--at`` extrapolates by this line and by a straight line through the same runs, of
which the memory of a process needs one, because it does not begin at 0.
"""

import argparse
import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

JOB = re.compile(r"^(?:local)?rule (\w+):\n((?: +.*\n)+)", re.MULTILINE)

LAST = re.compile(r"([\d.]+) s, ([\d.]+) CPU s, peak ([\d,]+) MB$")

KIND = re.compile(r"\b(?:aligner|name|column|system)=(\w+)")
"""Wildcards that choose what a rule does; the others choose texts, languages and runs."""


class Cost(NamedTuple):
    """Cost of a rule: CPU seconds, MB of the largest job, its request in MB, and MB of outputs on disk."""

    seconds: float
    peak: float
    requested: float
    disk: float


def field(block: str, name: str) -> str:
    """Return the value of a line ``NAME: VALUE`` of a job, or the empty string."""
    found = re.search(rf"^ +{name}: (.*)$", block, re.MULTILINE)
    return found[1] if found else ""


def costs(run: Path) -> dict[str, Cost]:
    """Return the costs of the finished rules of a run, in the order in which they started."""
    text = "".join(path.read_text() for path in sorted((run / ".snakemake/log").glob("*.log")))
    jobs: dict[str, dict[str, Cost]] = defaultdict(dict)
    for rule, block in JOB.findall(text):
        log = run / field(block, "log")
        match = LAST.search(log.read_text().strip()) if log.is_file() else None
        if match:
            outputs = [run / name for name in field(block, "output").split(", ")]
            size = sum(path.stat().st_size for path in outputs if path.is_file()) / 1e6
            requested = float(next(iter(re.findall(r"mem_mb=(\d+)", field(block, "resources"))), "nan"))
            kind = " ".join(KIND.findall(field(block, "wildcards")))
            jobs[f"{rule} {kind}".strip()][str(log)] = Cost(
                float(match[2]), float(match[3].replace(",", "")), requested, size
            )
    return {
        rule: Cost(
            sum(job.seconds for job in each.values()),
            max(job.peak for job in each.values()),
            max(each.values(), key=lambda job: job.peak).requested,
            sum(job.disk for job in each.values()),
        )
        for rule, each in jobs.items()
    }


def words(run: Path) -> int:
    """Return the number of target words of the aligned text, in tokens."""
    log = (run / "results/logs/phrases/lexical.log").read_text()
    return int(re.findall(r"target words ([\d,]+)", log)[-1].replace(",", ""))


def fits(sizes: Sequence[float], values: Sequence[float], at: float) -> tuple[float, list[float]]:
    """Fit a power and a straight line by least squares to the runs of at least a fifth of the largest one.

    Returns:
        The exponent, and the values of both fits at the size ``at``, the smaller one first; nan and none for one run.
    """
    used = np.array([pair for pair in zip(sizes, values, strict=True) if 5 * pair[0] >= max(sizes) and pair[1] > 0])
    if len(used) < 2:
        return float("nan"), []
    x, y = used.T
    exponent, logarithm = np.polyfit(np.log(x), np.log(y), 1)
    slope, base = np.polyfit(x, y, 1)
    return float(exponent), sorted([float(np.exp(logarithm) * at**exponent), float(base + slope * at)])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", nargs="+", type=Path, help="directory of a run")
    parser.add_argument("--at", type=float, metavar="X", help="extrapolate to X million target words")
    args = parser.parse_args()
    runs = sorted(args.run, key=words)
    sizes, found = [words(run) / 1e6 for run in runs], [costs(run) for run in runs]
    print("million words: " + ", ".join(f"{size:.2f}" for size in sizes) + "\n")
    head = ["rule", "CPU s", "exponent", "MB of memory", "exponent", "requested", "MB of disk", "exponent"]
    head += [f"at {args.at:g}: hours", "GB of memory", "GB of disk"] if args.at else []
    print("| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")
    for rule in found[-1]:
        measured = [(size, one[rule]) for size, one in zip(sizes, found, strict=True) if rule in one]
        columns = {key: [getattr(cost, key) for _, cost in measured] for key in Cost._fields}
        shown = {
            key: " / ".join(f"{value:,.{digits}f}" for value in columns[key])
            for key, digits in zip(Cost._fields, (1, 0, 0, 1), strict=True)
        }
        at = args.at or sizes[-1]
        fitted = {key: fits([size for size, _ in measured], values, at) for key, values in columns.items()}
        rises = {key: "" if np.isnan(power) else f"{power:.2f}" for key, (power, _) in fitted.items()}
        cells = [rule, shown["seconds"], rises["seconds"], shown["peak"], rises["peak"], shown["requested"]]
        cells += [shown["disk"], rises["disk"]]
        if args.at:
            cells += [
                " to ".join(f"{value / unit:.2g}" for value in fitted[key][1])
                for key, unit in (("seconds", 3600), ("peak", 1000), ("disk", 1000))
            ]
        print("|", " | ".join(cells), "|")


if __name__ == "__main__":
    main()
