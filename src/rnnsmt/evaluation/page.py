"""Table 1 as a self-contained HTML page: overview, tables of every test set, and a dot plot of all runs."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rnnsmt import __version__
from rnnsmt.base.templates import write_page
from rnnsmt.evaluation import cells
from rnnsmt.evaluation.dots import dot_plot
from rnnsmt.evaluation.records import contrast_records
from rnnsmt.evaluation.table import Row
from rnnsmt.plan.systems import (
    PAPER,
    SEQ2SEQ_PAPER,
    label,
    last_feature,
    named_features,
    paper_gain,
    published,
    without,
)

TEMPLATE = "table.html.j2"

DIM = {
    "p",
    "p boot",
    "p strict",
    "95 %",
    "detectable",
    "paper",
    "paper dev",
    "paper test",
    "Length",
    "Unknown",
    "CPU s",
}
"""Columns shown in a weaker colour."""


class Cell(NamedTuple):
    """Text of a cell and its CSS class."""

    text: str
    kind: str = ""


class View(NamedTuple):
    """Table for the template: headings, and rows of cells with a flag for bold rows."""

    headings: list[str]
    rows: list[tuple[bool, list[Cell]]]


def write_html(path: str | Path, table: Sequence[Row], paper: bool, title: str, provenance: str | None = None) -> None:
    """Write the page.

    Args:
        path: output file.
        table: rows of all systems and test sets.
        paper: include the published results.
        title: title of the page.
        provenance: address of the file with the origin of every number.
    """
    write_page(
        path,
        "rnnsmt.evaluation",
        TEMPLATE,
        title=title,
        introduction=cells.introduction(table),
        overview=_view(cells.overview(table, paper), _bold(_systems(table), paper)),
        test_sets=[_test_set(name, rows, paper) for name, rows in cells.test_sets(table).items()],
        papers=_paper_tables(table) if paper else [],
        notes=cells.notes(table, paper),
        level=cells.LEVEL,
        signatures=cells.signatures(table),
        provenance=provenance,
        provenance_name=Path(provenance or "").name,
        version=__version__,
    )


def _systems(table: Sequence[Row]) -> list[Row]:
    """Return one row of every system."""
    return list({row.system: row for row in reversed(table)}.values())[::-1]


def _bold(rows: Sequence[Row], paper: bool) -> list[bool]:
    """Return which rows belong to systems of the papers."""
    return [paper and published(row.system) is not None for row in rows]


def _test_set(name: str, rows: Sequence[Row], paper: bool) -> dict[str, Any]:
    """Return the template variables of one test set."""
    bold = _bold(rows, paper)

    def of_row(number: int, heading: str) -> float | None:
        contrast = {"Δ baseline": rows[number].baseline, "Δ feature": cells.last(rows[number])}.get(heading)
        return contrast.p_strict if contrast else None

    added = cells.contrasts(rows)
    strict = [one["p_strict"] for one in contrast_records(rows)]
    return {
        "name": name,
        "size": cells.size(rows),
        "scores": _view(cells.scores(rows), bold, of_row),
        "plot": dot_plot(name, rows),
        "verdict": cells.verdict(rows),
        "contrasts": added
        and _view(added, [False] * len(strict), lambda number, heading: strict[number] if heading == "Δ" else None),
        "output": _view(cells.output(rows), bold),
    }


def _view(
    table: cells.Table, bold: Sequence[bool], p_of: Callable[[int, str], float | None] = lambda _number, _heading: None
) -> View:
    """Return a table with the CSS classes of its cells.

    Args:
        table: the table.
        bold: bold rows.
        p_of: returns the p-value of a cell, given row number and heading.
    """

    def kind(number: int, heading: str) -> str:
        p = p_of(number, heading)
        if p is not None and p < cells.LEVEL:
            return "sure"
        return "dim" if heading in DIM else "runs" if heading.startswith("BLEU of") else ""

    rows = [
        (is_bold, [Cell(text, kind(number, heading)) for heading, text in zip(table.headings, row, strict=True)])
        for number, (is_bold, row) in enumerate(zip(bold, table.rows, strict=True))
    ]
    return View(table.headings, rows)


def _paper_tables(table: Sequence[Row]) -> list[tuple[str, View]]:
    """Return the titles and tables of Cho et al. and, if there are LSTMs, of Sutskever et al."""
    tables = [("Table 1 of Cho et al. (2014)", _paper_table())]
    if any(row.system in SEQ2SEQ_PAPER for row in table):
        rows = [
            [label(system), cells.or_dash(figures.test, ".2f"), cells.or_dash(gain, "+.2f")]
            for system, figures in SEQ2SEQ_PAPER.items()
            for gain in [paper_gain(system, "baseline", False)]
        ]
        view = _view(cells.Table(["Models", "test", "Δ baseline"], rows), [False] * len(rows))
        tables.append(("Tables 1 and 2 of Sutskever et al. (2014)", view))
    return tables


def _paper_table() -> View:
    """Return the paper's table, with differences to its baseline and to the system with one feature less."""
    rows = []
    features = {system: named_features(system) for system in PAPER}
    for system, figures in PAPER.items():
        last = last_feature(features[system])
        references = ("baseline", without(system, last, features) if last else None)
        gains = [
            cells.or_dash(paper_gain(system, reference, is_dev) if reference not in (None, system) else None, "+.2f")
            for reference in references
            for is_dev in (True, False)
        ]
        rows.append([label(system), *(cells.or_dash(part, ".2f") for part in figures), *gains])
    headings = ["Models", "dev", "test", "Δ baseline, dev", "test", "Δ feature, dev", "test"]
    return _view(cells.Table(headings, rows), [False] * len(rows))
