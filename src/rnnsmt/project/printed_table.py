"""The end of a run on the terminal: the rows of a test set, warnings, and the paths of the table and the report."""

import csv
from collections.abc import Iterator
from pathlib import Path

from rnnsmt.config.features import label

MOST_ROWS = 12
"""Maximum number of rows, so that all lines fit on a terminal."""

MOST_WARNINGS = 3
"""Maximum number of warnings of the jobs."""


def printed_table(table: Path, report: Path, logs: Path, since: float = 0.0) -> Iterator[str]:
    """Yield the BLEU of the systems on the first test set (dev if there is no other), and warnings of the jobs.

    Args:
        table: TSV file of ``evaluation table``.
        report: page of ``analysis report``.
        logs: directory of the logs of the jobs.
        since: start of the run, in seconds since 1970; logs of earlier runs are not read.
    """
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    sets = list(dict.fromkeys(row["test_set"] for row in rows))
    shown = next((name for name in sets if name != "dev"), "dev")
    rows = [row for row in rows if row["test_set"] == shown]
    width = max(len(label(row["system"])) for row in rows)
    yield f"BLEU on {shown} ({int(rows[0]['segments']):,} segments, tuning runs: {rows[0]['runs']})"
    for row in rows[:MOST_ROWS]:
        bleu = f"{float(row['bleu']):.2f}" + (f" ± {float(row['bleu_sd']):.2f}" if row["bleu_sd"] else "")
        difference = ""
        if row["diff_baseline"]:
            difference = f"   {float(row['diff_baseline']):+.2f}"
        if row["low_baseline"]:
            difference += f" ({float(row['low_baseline']):+.2f} to {float(row['high_baseline']):+.2f})"
        yield f"  {label(row['system']):{width}}  {bleu}{difference}"
    if len(rows) > MOST_ROWS or len(sets) > 2:
        yield f"  further rows: {table.with_suffix('.md')}"
    if any(row["diff_baseline"] for row in rows):
        yield "Differences to the baseline with 95 % intervals."
    written = [path for path in sorted(logs.glob("**/*.log")) if path.stat().st_mtime > since]
    warned = [(path, line) for path in written for line in _warnings(path)]
    yield from (f"{path}: {line}"[:200] for path, line in warned[:MOST_WARNINGS])
    if len(warned) > MOST_WARNINGS:
        yield f"{len(warned) - MOST_WARNINGS} further warnings: grep -r warning: {logs}"
    yield f"table: {table.with_suffix('.md')}, report: {report}"


def _warnings(log: Path) -> list[str]:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return [line for line in lines if line.startswith("warning: ")]
