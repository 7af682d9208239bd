"""Table 1 as Markdown that reads well on a terminal too: columns are padded, lines stay within some hundred columns."""

from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap

from rnnsmt.evaluation.cells import NOTES, Table, output, overview, scores, signatures, test_sets
from rnnsmt.evaluation.collect import Row
from rnnsmt.io import atomic_text

WIDTH = 100
"""Of running text."""


def write_markdown(path: str | Path, table: Sequence[Row]) -> None:
    """Write the overview and the tables of every test set."""
    parts = ["# Table 1: BLEU", *_lines(overview(table)), ""]
    for name, rows in test_sets(table).items():
        runs = sorted({row.runs for row in rows})
        parts += [f"## {name}: {rows[0].segments:,} segments, {' or '.join(map(str, runs))} run(s)", ""]
        parts += [*_lines(scores(rows)), "", *_lines(output(rows)), ""]
    for note in [*NOTES, *(f"sacreBLEU signature: `{signature}`" for signature in signatures(table))]:
        parts += [*wrap(note, WIDTH, break_long_words=False, break_on_hyphens=False), ""]
    parts.insert(1, "")
    with atomic_text(path) as out:
        out.write("\n".join(parts).rstrip("\n") + "\n")


def _lines(table: Table) -> list[str]:
    """A table of padded cells: the first column to the left, the others to the right."""
    widths = [max(map(len, (heading, *cells))) for heading, *cells in zip(table.headings, *table.rows, strict=True)]
    rule = [f":{'-' * (widths[0] + 1)}", *(f"{'-' * (width + 1)}:" for width in widths[1:])]
    return [
        _line(table.headings, widths),
        f"|{'|'.join(rule)}|",
        *(_line(row, widths) for row in table.rows),
    ]


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = zip(cells, widths, strict=True)
    return "| " + " | ".join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]) + " |"
