"""The cells of Table 1 as people read them, shared by Markdown and HTML: an overview, and two tables a test set."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from rnnsmt.evaluation.collect import Contrast, Row, deviation, mean
from rnnsmt.evaluation.figures import clark, strict
from rnnsmt.systems import BASELINE, PAPER, label

DASH = "–"

NOTES = (
    "BLEU: tokenised and cased as multi-bleu.perl computes it, the metric of the paper, mean ± standard deviation over "
    "independent tuning runs; sacreBLEU: of the detokenised text.",
    "Δ: difference to the baseline, and to the same system without the feature that was added last. "
    "p: stratified approximate randomisation over all runs, two-sided (Clark et al. 2011); p strict: the same with a "
    "sentence swapped in all runs at once and the noise of the tuning runs added, the one to go by; it takes two runs. "
    "The weights were tuned on dev: its differences say little. Nothing is corrected for the number of comparisons.",
    "paper: the figure to the left of it in Cho et al. (2014), WMT 2014 English–French (dev: newstest2012+2013, test: "
    "newstest2014). BLEU compares only where the data are the same; the gains tell what to expect.",
    "Unknown: input words passed through untranslated. Length: words of the output per word of the reference. "
    "CPU s: the search, without loading.",
)


class Table(NamedTuple):
    """Headings, and cells by row; the first column names the system."""

    headings: list[str]
    rows: list[list[str]]


Column = tuple[str, Callable[[Row], str]]


def test_sets(table: Sequence[Row]) -> dict[str, list[Row]]:
    """The rows of every test set, in the order of the table."""
    return {name: [row for row in table if row.test_set == name] for name in dict.fromkeys(r.test_set for r in table)}


def overview(table: Sequence[Row]) -> Table:
    """As the paper's table: a line a system, a column a test set, the paper's figures at the end."""
    systems = dict.fromkeys(row.system for row in table)
    cells = {(row.system, row.test_set): spread(row.bleu) for row in table}
    sets = list(test_sets(table))
    rows = [
        [label(system), *(cells.get((system, name), DASH) for name in sets), *_paper_cells(system)]
        for system in systems
    ]
    return _without_empty(Table(["System", *sets, "paper dev", "paper test"], rows))


def _paper_cells(system: str) -> list[str]:
    figures = PAPER.get(system)
    return [DASH, DASH] if figures is None else [f"{figures.dev:.2f}", f"{figures.test:.2f}"]


SCORES: list[Column] = [
    ("System", lambda row: label(row.system)),
    ("BLEU", lambda row: spread(row.bleu)),
    ("paper", lambda row: or_dash(row.paper, ".2f")),
    ("Δ baseline", lambda row: gain(row.baseline)),
    ("paper", lambda row: paper_gain(row.baseline)),
    ("p", lambda row: or_dash(clark(row.baseline), ".4f")),
    ("p strict", lambda row: or_dash(strict(row.baseline), ".4f")),
    ("Δ feature", lambda row: gain(added(row))),
    ("paper", lambda row: paper_gain(added(row))),
    ("p strict", lambda row: or_dash(strict(added(row)), ".4f")),
]

OUTPUT: list[Column] = [
    ("System", lambda row: label(row.system)),
    ("sacreBLEU", lambda row: spread(row.sacrebleu)),
    ("Length", lambda row: f"{row.length_ratio:.3f}"),
    ("Unknown", lambda row: or_dash(row.unknown_words, ",.0f")),
    ("CPU s", lambda row: or_dash(row.decode_seconds, ",.1f")),
    ("BLEU of every run", lambda row: " ".join(f"{bleu:.2f}" for bleu in row.bleu)),
]


def scores(rows: Sequence[Row]) -> Table:
    """BLEU on one test set, differences and p-values; columns that say nothing are left out."""
    return _table(SCORES, rows)


def output(rows: Sequence[Row]) -> Table:
    """What the output on one test set is like, what it cost, and every run."""
    return _table(OUTPUT, rows)


def _table(columns: Sequence[Column], rows: Sequence[Row]) -> Table:
    return _without_empty(
        Table([heading for heading, _ in columns], [[cell(row) for _, cell in columns] for row in rows])
    )


def _without_empty(table: Table) -> Table:
    """Without the columns that hold dashes only."""
    keep = [k for k in range(len(table.headings)) if any(row[k] != DASH for row in table.rows)]
    return Table([table.headings[k] for k in keep], [[row[k] for k in keep] for row in table.rows])


def added(row: Row) -> Contrast | None:
    """The contrast to the system without the last feature, where that is not the baseline."""
    return row.feature if row.feature and row.feature.reference != BASELINE else None


def gain(contrast: Contrast | None) -> str:
    """``+0.57``, or a dash."""
    return or_dash(contrast.difference if contrast else None, "+z.2f")


def paper_gain(contrast: Contrast | None) -> str:
    """The paper's difference, or a dash."""
    return or_dash(contrast.paper if contrast else None, "+z.2f")


def spread(values: Sequence[float]) -> str:
    """``58.93 ± 0.05``, or a dash of nothing."""
    average, width = mean(values), deviation(values)
    if average is None:
        return DASH
    return f"{average:.2f}" if width is None else f"{average:.2f} ± {width:.2f}"


def or_dash(value: float | None, form: str) -> str:
    """A number in a format, or a dash."""
    return DASH if value is None else format(value, form)


def signatures(table: Sequence[Row]) -> list[str]:
    """The signatures of sacreBLEU, each once."""
    return sorted({row.signature for row in table if row.signature})
