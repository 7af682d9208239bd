"""Table 1 as Markdown that reads well on a terminal too: columns are padded, lines stay within some hundred columns."""

from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap

from rnnsmt.evaluation.cells import (
    Table,
    contrasts,
    notes,
    output,
    overview,
    scores,
    signatures,
    size,
    test_sets,
    verdict,
)
from rnnsmt.evaluation.table import Row
from rnnsmt.io import atomic_text

WIDTH = 100
"""Of running text."""


def write_markdown(path: str | Path, table: Sequence[Row], paper: bool) -> None:
    """Write the overview and the tables of every test set; paper: with the paper's figures."""
    parts = ["# Table 1: BLEU", "", *_lines(overview(table, paper)), ""]
    for name, rows in test_sets(table).items():
        parts += [f"## {name}: {size(rows)}", "", *_lines(scores(rows)), ""]
        if (added := contrasts(rows)) is not None:
            parts += [f"### What each feature adds on {name}", "", *_lines(added), ""]
        if said := verdict(rows):
            parts += [*wrap(said, WIDTH, break_long_words=False, break_on_hyphens=False), ""]
        parts += [f"### Output on {name}", "", *_lines(output(rows)), ""]
    for note in [*notes(table, paper), *(f"sacreBLEU signature: `{signature}`" for signature in signatures(table))]:
        parts += [*wrap(note, WIDTH, break_long_words=False, break_on_hyphens=False), ""]
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
