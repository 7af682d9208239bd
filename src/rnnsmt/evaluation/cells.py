"""The cells of Table 1 as people read them, shared by Markdown and HTML: an overview, and three tables a test set."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from rnnsmt.evaluation.records import contrast_records
from rnnsmt.evaluation.table import Contrast, Row, deviation, mean
from rnnsmt.plan.systems import BASELINE, label, published

DASH = "–"

LEVEL = 0.05
"""Differences with a smaller p strict are called detected."""

INTRODUCTION = (
    "BLEU: tokenised and cased as multi-bleu.perl computes it, the metric of the paper; sacreBLEU and "
    "chrF: of the detokenised text. Mean ± standard deviation over independent tuning runs, which "
)

ONE_TRAINING = (
    "share one network of each kind.",
    "± and p contain the noise of tuning only. One network of each kind was trained and all runs share it: networks "
    "trained again with other seeds would give somewhat other figures, and nothing here says how much.",
)

SEVERAL_TRAININGS = (
    "take turns on {} trainings of each network.",
    "± and p contain the noise of tuning and, for systems with networks, that of training them with other seeds: with "
    "as many trainings as runs, ± is the spread of both together, and p strict takes the runs of one training as one.",
)

NOTES = (
    "Δ: difference to the baseline, and to the same system without one feature. "
    "95 %: confidence interval of the difference. Detectable: the smallest true difference that such an experiment "
    "finds (p strict at most 0.05) in 80 % of the cases. "
    "p: stratified approximate randomisation over all runs, two-sided (Clark et al. 2011); p boot: paired bootstrap "
    "over sentences (Koehn 2004), as in sacreBLEU; p strict: a sentence swapped in all runs at once and the noise of "
    "the tuning runs added, the one to go by; it takes two runs, and three to say much. "
    "The weights were tuned on dev: its differences say little.",
    "Unknown: input words passed through untranslated. Length: words of the output per word of the reference. "
    "CPU s: the search, without loading; runs share what a CSLM has answered.",
)

PAPER_NOTE = (
    "paper: the figure to the left of it in Cho et al. (2014), of LSTMs in Sutskever et al. (2014), WMT 2014 "
    "English–French (dev: newstest2012+2013, test: newstest2014). BLEU "
    "compares only where the data are the same; the gains tell what to expect."
)


def trainings(table: Sequence[Row]) -> int:
    """Return how often the networks were trained."""
    return max(row.trainings for row in table)


def introduction(table: Sequence[Row]) -> str:
    """Say what a figure is."""
    number = trainings(table)
    return INTRODUCTION + (ONE_TRAINING if number == 1 else SEVERAL_TRAININGS)[0].format(number)


def notes(table: Sequence[Row], paper: bool) -> list[str]:
    """Say how to read the table; paper: with the paper's figures in it."""
    noise = (ONE_TRAINING if trainings(table) == 1 else SEVERAL_TRAININGS)[1]
    return [introduction(table), noise, *NOTES, comparisons(table), *([PAPER_NOTE] if paper else [])]


def comparisons(table: Sequence[Row]) -> str:
    """Say how many contrasts of a test set were tested, and what that means for p and the intervals."""
    number = max(_tested(rows) for rows in test_sets(table).values())
    if number < 2:
        return "Nothing is corrected for the number of comparisons."
    return (
        f"{number} contrasts are tested on every test set; p and intervals are those of a single one, nothing is "
        f"corrected for their number. If nothing differed, {number * LEVEL:.2g} of them on average would be below "
        f"{LEVEL}."
    )


def _tested(rows: Sequence[Row]) -> int:
    """Count the pairs of systems of one test set whose difference has a p-value."""
    found = [(row.system, one) for row in rows for one in (row.baseline, *row.features.values()) if one is not None]
    return len({(system, one.reference) for system, one in found if one.p_strict is not None})


class Table(NamedTuple):
    """Headings, and cells by row; the first column names the system."""

    headings: list[str]
    rows: list[list[str]]


TableColumn = tuple[str, Callable[[Row], str]]


def test_sets(table: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the rows of every test set, in the order of the table."""
    return {name: [row for row in table if row.test_set == name] for name in dict.fromkeys(r.test_set for r in table)}


def size(rows: Sequence[Row]) -> str:
    """``1,000 segments, 3 runs``: of the rows of one test set."""
    runs = " or ".join(str(number) for number in sorted({row.runs for row in rows}))
    return f"{rows[0].segments:,} segment{'s' * (rows[0].segments != 1)}, {runs} run{'s' * (runs != '1')}"


def overview(table: Sequence[Row], paper: bool) -> Table:
    """Make the paper's table: a line a system, a column a test set; paper: with its figures at the end."""
    systems = dict.fromkeys(row.system for row in table)
    cells = {(row.system, row.test_set): spread(row.bleu) for row in table}
    sets = list(test_sets(table))
    rows = [
        [label(system), *(cells.get((system, name), DASH) for name in sets), *(_paper_cells(system) if paper else [])]
        for system in systems
    ]
    return _without_empty(Table(["System", *sets, *(["paper dev", "paper test"] if paper else [])], rows))


def _paper_cells(system: str) -> list[str]:
    return [or_dash(part, ".2f") for part in published(system) or (None, None)]


SCORES: list[TableColumn] = [
    ("System", lambda row: label(row.system)),
    ("BLEU", lambda row: spread(row.bleu)),
    ("paper", lambda row: or_dash(row.paper, ".2f")),
    ("Δ baseline", lambda row: gain(row.baseline)),
    ("95 %", lambda row: _interval(row.baseline)),
    ("paper", lambda row: paper_gain(row.baseline)),
    ("p strict", lambda row: or_dash(row.baseline.p_strict if row.baseline else None, ".4f")),
    ("Δ feature", lambda row: gain(last(row))),
    ("paper", lambda row: paper_gain(last(row))),
    ("p strict", lambda row: or_dash(contrast.p_strict if (contrast := last(row)) else None, ".4f")),
]

OUTPUT: list[TableColumn] = [
    ("System", lambda row: label(row.system)),
    ("sacreBLEU", lambda row: spread(row.sacrebleu)),
    ("chrF", lambda row: spread(row.chrf)),
    ("Length", lambda row: f"{row.length_ratio:.3f}"),
    ("Unknown", lambda row: or_dash(row.unknown_words, ",.0f")),
    ("CPU s", lambda row: or_dash(row.decode_seconds, ",.1f")),
    ("BLEU of every run", lambda row: " ".join(f"{bleu:.2f}" for bleu in row.bleu)),
]


def scores(rows: Sequence[Row]) -> Table:
    """BLEU on one test set, differences and p-values; columns that say nothing are left out."""
    return _table(SCORES, rows)


def contrasts(rows: Sequence[Row]) -> Table | None:
    """List what each feature adds to each system on one test set; none where no two systems differ by one feature."""
    found = contrast_records(rows)
    if not found:
        return None
    cells = [
        [
            label(one["feature"]),
            label(one["without"]),
            or_dash(one["difference"], "+z.2f"),
            DASH if one["low"] is None else interval(one["low"], one["high"]),
            or_dash(one["detectable"], ".2f"),
            or_dash(one["paper_difference"], "+z.2f"),
            or_dash(one["p_value"], ".4f"),
            or_dash(one["p_bootstrap"], ".4f"),
            or_dash(one["p_strict"], ".4f"),
        ]
        for one in found
    ]
    headings = ["Feature", "added to", "Δ", "95 %", "detectable", "paper", "p", "p boot", "p strict"]
    return _without_empty(Table(headings, cells))


def verdict(rows: Sequence[Row]) -> str:
    """Say in a sentence which features make one test set better or worse, and how much others could be worth."""
    known = [one for one in contrast_records(rows) if one["p_strict"] is not None]
    sure = [one for one in known if one["p_strict"] < LEVEL]
    sides = (
        ("better", [one for one in sure if one["difference"] > 0]),
        ("worse", [one for one in sure if one["difference"] < 0]),
        ("not detected", [one for one in known if one["p_strict"] >= LEVEL]),
    )
    parts = [f"{what}: " + ", ".join(map(_said, found)) for what, found in sides if found]
    return f"In words (p strict below {LEVEL} or not; 95 % intervals): {'; '.join(parts)}." if parts else ""


def _said(one: Mapping[str, Any]) -> str:
    """Put a contrast into words: what is not detected is less than the upper end of its interval."""
    what = f"{label(one['feature'])} added to {label(one['without'])}"
    if one["p_strict"] < LEVEL:
        return f"{what} ({interval(one['low'], one['high'])})"
    return f"{what} (less than {max(one['high'], 0.0):.2f})"


def output(rows: Sequence[Row]) -> Table:
    """Show what the output on one test set is like, what it cost, and every run."""
    return _table(OUTPUT, rows)


def _table(columns: Sequence[TableColumn], rows: Sequence[Row]) -> Table:
    return _without_empty(
        Table([heading for heading, _ in columns], [[cell(row) for _, cell in columns] for row in rows])
    )


def _without_empty(table: Table) -> Table:
    """Without the columns that hold dashes only."""
    keep = [k for k in range(len(table.headings)) if any(row[k] != DASH for row in table.rows)]
    return Table([table.headings[k] for k in keep], [[row[k] for k in keep] for row in table.rows])


def last(row: Row) -> Contrast | None:
    """Return the contrast to the system without the feature that the paper adds last, if that is not the baseline."""
    return row.last if row.last and row.last.reference != BASELINE else None


def interval(low: float, high: float) -> str:
    """Format an interval: ``+0.12 to +0.71``."""
    return f"{low:+z.2f} to {high:+z.2f}"


def _interval(contrast: Contrast | None) -> str:
    """Format the interval of a contrast, or a dash."""
    return interval(*contrast.interval) if contrast and contrast.interval else DASH


def gain(contrast: Contrast | None) -> str:
    """``+0.57``, or a dash."""
    return or_dash(contrast.difference if contrast else None, "+z.2f")


def paper_gain(contrast: Contrast | None) -> str:
    """Format the paper's difference, or a dash."""
    return or_dash(contrast.paper if contrast else None, "+z.2f")


def spread(values: Sequence[float]) -> str:
    """``58.93 ± 0.05``, or a dash of nothing."""
    average, width = mean(values), deviation(values)
    if average is None:
        return DASH
    return f"{average:.2f}" if width is None else f"{average:.2f} ± {width:.2f}"


def or_dash(value: float | None, form: str) -> str:
    """Format a number, or return a dash."""
    return DASH if value is None else format(value, form)


def signatures(table: Sequence[Row]) -> list[str]:
    """Return the signatures of sacreBLEU, each once."""
    return sorted({row.signature for row in table if row.signature})
