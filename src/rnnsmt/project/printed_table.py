"""The end of a run on the terminal: the rows of a test set, warnings, and the paths of the table and the report."""

from collections.abc import Iterator
from pathlib import Path

from rnnsmt.base.io import read_json
from rnnsmt.evaluation.render import padded, shown_sets, size, table_for_readers

MOST_ROWS = 12
"""Maximum number of rows, so that all lines fit on a terminal."""

MOST_WARNINGS = 3
"""Maximum number of warnings of the jobs."""


def printed_table(table: Path, report: Path, logs: Path, since: float = 0.0) -> Iterator[str]:
    """Yield the table of the first test set (dev if there is no other), and warnings of the jobs.

    Args:
        table: JSON file of ``evaluation table``.
        report: page of ``analysis report``.
        logs: directory of the logs of the jobs.
        since: start of the run, in seconds since 1970; logs of earlier runs are not read.
    """
    sets = shown_sets(read_json(table)["rows"], {"dev"})
    name, rows = next(iter(sets.items()))
    yield f"{name}: {size(rows)}"
    for cells in padded(table_for_readers(rows[:MOST_ROWS])):
        yield f"  {'  '.join(cells)}"
    if len(rows) > MOST_ROWS or len(sets) > 1:
        yield f"  further rows: {table.with_suffix('.md')}"
    written = [path for path in sorted(logs.glob("**/*.log")) if path.stat().st_mtime > since]
    warned = [(path, line) for path in written for line in _warnings(path)]
    yield from (f"{path}: {line}"[:200] for path, line in warned[:MOST_WARNINGS])
    if len(warned) > MOST_WARNINGS:
        yield f"{len(warned) - MOST_WARNINGS} further warnings: grep -r warning: {logs}"
    yield f"table: {table.with_suffix('.md')}, report: {report}"


def _warnings(log: Path) -> list[str]:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return [line for line in lines if line.startswith("warning: ")]
