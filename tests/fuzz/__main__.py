"""Fuzz the readers: ``python -m tests.fuzz --minutes 5``, or ``make fuzz MINUTES=5 ONLY=networks``.

Every harness damages the files of a family of readers and reads them in a worker process. The worker must not be ended
by a signal or take more than 10 seconds for a case. An error must be one line. If the checksums of a file do not match,
the output must be that of the undamaged file, or there must be none. The cases depend only on the random seed. Cases
with another outcome are written to --save; after a fix they are copied to tests/fuzz/findings.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from . import HARNESSES
from .harness import BAD, HEADER, quiet_stderr, run, saved


def main() -> int:
    """Run the harnesses; return 1 if there is a bad outcome."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, metavar="N", help="time limit of all harnesses together")
    parser.add_argument("--cases", type=int, metavar="N", help="number of cases of every harness")
    parser.add_argument("--only", nargs="+", choices=list(HARNESSES), default=list(HARNESSES), help="harnesses to run")
    parser.add_argument("--seed", type=int, default=1, help="seed of the cases (default: 1)")
    parser.add_argument("--save", type=Path, default=Path("build/fuzz"), help="directory of bad cases")
    args = parser.parse_args()
    if args.cases is None and args.minutes is None:
        parser.error("give --minutes or --cases")
    print(HEADER, flush=True)
    bad = False
    for name in args.only:
        with tempfile.TemporaryDirectory() as directory:
            harness = HARNESSES[name](Path(directory))
            with quiet_stderr():
                harness.prepare()
            seconds = None if args.minutes is None else 60 * args.minutes / len(args.only)
            report = run(harness, args.seed, args.cases, seconds)
        print(report.row(), flush=True)
        for result, case in report.bad:
            path = saved(result, case, args.save, f"{name}-{args.seed}-{result.number}")
            place = [line.strip() for line in result.detail.splitlines() if "/rnnsmt/" in line][-1:]
            print(f"  {result.outcome}: {path}: {result.target}", *place, *result.detail.split("\n")[-2:], sep="\n    ")
        bad = bad or any(report.outcomes[outcome] for outcome in BAD)
    return int(bad)


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)  # not sys.exit: DuckDB would print a page about memory that is not freed
