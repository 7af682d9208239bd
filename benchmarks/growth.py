"""Measure how CPU time, memory and disk of the jobs of the workflow grow with the text, from the logs of several runs.

python benchmarks/growth.py RUN RUN ...

A job's log ends with its CPU seconds and peak memory, the log of Snakemake has its memory request, and its outputs have
their sizes. Jobs of a rule are added up; the memory is that of the largest job. A column gives the exponent between the
two largest runs, i.e. k where the cost grows as N^k with the number N of target words.
"""

import argparse
import math
import re
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

JOB = re.compile(r"^(?:local)?rule (\w+):\n((?: +.*\n)+)", re.MULTILINE)

LAST = re.compile(r"([\d.]+) s, ([\d.]+) CPU s, peak ([\d,]+) MB$")


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
            jobs[rule][str(log)] = Cost(float(match[2]), float(match[3].replace(",", "")), requested, size)
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


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", nargs="+", type=Path, help="directory of a run")
    runs = sorted(parser.parse_args().run, key=words)
    sizes, found = [words(run) for run in runs], [costs(run) for run in runs]
    print("million words: " + ", ".join(f"{size / 1e6:.2f}" for size in sizes) + "\n")
    print("| rule | CPU s | exponent | MB of memory | requested | MB of disk | exponent |\n" + "|---" * 7 + "|")
    for rule in found[-1]:
        each = [one[rule] for one in found if rule in one]
        shown = [
            " / ".join(f"{value:,.{digits}f}" for value in column)
            for column, digits in zip(zip(*each, strict=True), (1, 0, 0, 1), strict=True)
        ]
        exponents = [""] * 2
        if len(each) > 1 and rule in found[-2]:
            rise = math.log(sizes[-1] / sizes[-2])
            for number, column in enumerate(([one.seconds for one in each], [one.disk for one in each])):
                if min(column[-2:]) > 0:
                    exponents[number] = f"{math.log(column[-1] / column[-2]) / rise:.2f}"
        print("|", " | ".join([rule, shown[0], exponents[0], shown[1], shown[2], shown[3], exponents[1]]), "|")


if __name__ == "__main__":
    main()
