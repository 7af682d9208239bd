"""Table 1 for readers: Markdown, and a self-contained HTML page with a dot plot of all runs.

Both have one table for each test set, and one for the dev set, as in the paper. The columns are BLEU, the difference to
the baseline with its 95 % confidence interval, and p. All other figures are in the TSV and JSON files.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from importlib.util import find_spec
from io import StringIO
from statistics import fmean
from typing import Any, NamedTuple

from rnnsmt import __version__
from rnnsmt.base.paths import StrPath
from rnnsmt.base.rendering import BLUE, GREY, INK, canvas, styled, svg_metadata, write_page
from rnnsmt.config.features import BASELINE, has_network, label
from rnnsmt.plan.corpora import FEW_LINES

DASH = "–"
MINUS = "−"

LEVEL = 0.05
"""Differences with a smaller p are significant."""

COLOURS = {BLUE: "var(--mark)", GREY: "var(--line)", INK: "var(--ink)"}
"""CSS variables that replace colours of the plots, so that they follow the light or dark style of the page."""

DIFFERENCE = "Δ baseline"
"""Heading of the difference to the baseline."""

BLEU_NOTE = (
    "BLEU is tokenised and case-sensitive, as computed by multi-bleu.perl (the metric of the paper). The TSV file has "
    "all other figures. "
)

ONE_RUN = (
    "BLEU is that of one tuning run of each system. The variation of BLEU between runs is unknown: tuning again, or "
    "training the networks again with other seeds, would give other figures. Standard deviations, confidence intervals "
    "and p require two runs or more."
)

ONE_TRAINING = (
    "BLEU is the mean ± standard deviation over independent tuning runs, which share one network of each kind. ± and p "
    "include the variance due to tuning, but not the variance due to training. Training the networks again with other "
    "seeds would change the figures by an unknown amount."
)

NO_NETWORKS = (
    "BLEU is the mean ± standard deviation over independent tuning runs. ± and p include the variance due to tuning."
)

SEVERAL_TRAININGS = (
    "BLEU is the mean ± standard deviation over independent tuning runs, which cycle through {} training runs of each "
    "network. ± and p include the variance due to tuning and, for systems with networks, the variance due to training "
    "with other seeds. If there are as many training runs as tuning runs, ± is the standard deviation due to both. p "
    "uses the mean of the tuning runs of each training run."
)

DIFFERENCES = (
    "Δ baseline: difference to the baseline; 95 %: its confidence interval; p: its two-sided p-value (p_strict of the "
    "TSV file), for which the outputs for a sentence are exchanged in all runs at once, and the variance between runs "
    "is added. Three or more runs are recommended."
)

PAPER_NOTE = (
    "paper: published figure for the column to its left, of Cho et al. (2014) and, for LSTMs, of Sutskever et al. "
    "(2014), on WMT 2014 English–French, newstest2014 (beside dev: newstest2012 and newstest2013). BLEU is comparable "
    "only between systems on the same data; the differences indicate the gains to expect."
)

DEV_NOTE = "Weights were tuned on dev, so its differences are not evidence of a gain."

KIND_TITLES = {"extracted": "extraction count", "source words of a phrase": "source words per phrase"}
"""Titles of groups of sentences or phrase pairs of `evaluation compare`, if they differ from the keys."""

Record = Mapping[str, Any]
"""Row of the table, or contrast, see ``rows.Record``."""


class TextTable(NamedTuple):
    """Table of formatted cells: headings and rows. The first column is the name of the system."""

    headings: list[str]
    rows: list[list[str]]


# Text about the figures


def notes(
    rows: Sequence[Record], contrasts: Sequence[Record], paper: bool, tuning: str, dev_sets: Collection[str]
) -> list[str]:
    """Return paragraphs on how to read the table.

    Args:
        rows, contrasts: as returned by ``rows.table_of``.
        paper: the table includes the published figures.
        tuning: how the systems were tuned; an empty string is omitted.
        dev_sets: names of the sets that the weights were tuned on.
    """
    trainings = max(row["trainings"] for row in rows)
    if max(row["runs"] for row in rows) == 1:
        noise = ONE_RUN
    elif all(row["system"] == BASELINE or (row["features"] and not has_network(row["features"])) for row in rows):
        noise = NO_NETWORKS
    else:
        noise = ONE_TRAINING if trainings == 1 else SEVERAL_TRAININGS.format(trainings)
    parts = [BLEU_NOTE + noise]
    if below_start := {label(row["system"]): row["below_start"] for row in rows if row.get("below_start")}:
        runs = "; ".join(f"{name}, run {', '.join(map(str, numbers))}" for name, numbers in below_start.items())
        parts.append(f"† After tuning, BLEU on the dev set is below that of the initial weights: {runs}.")
    if tuning:
        parts.append(f"Tuning: {tuning}.")
    if any(row["test_set"] in dev_sets for row in rows):
        parts.append(DEV_NOTE)
    if any(row.get("p_strict") is not None for row in rows):
        parts += [DIFFERENCES, comparisons(rows, contrasts)]
    return [*parts, PAPER_NOTE] if paper else parts


def comparisons(rows: Sequence[Record], contrasts: Sequence[Record]) -> str:
    """Return a paragraph about the number of pairs of systems tested on a test set and its effect on p."""
    pairs = {(row["test_set"], row["system"], BASELINE) for row in rows if row.get("p_strict") is not None}
    pairs |= {(one["test_set"], one["system"], one["without"]) for one in contrasts if one.get("p_strict") is not None}
    number = max(sum(pair[0] == name for pair in pairs) for name in {pair[0] for pair in pairs})
    if number < 2:
        return "p and intervals are not corrected for the number of comparisons."
    return (
        f"{number} contrasts are tested on every test set; p and intervals are those of single contrasts and are not "
        f"corrected for their number. Without any true difference, {number * LEVEL:.2g} p-values would be below "
        f"{LEVEL} on average."
    )


def effects(contrasts: Sequence[Record]) -> list[str]:
    """Return the features that increase and decrease BLEU of one test set, and upper bounds for the others."""
    known = [contrast for contrast in contrasts if contrast.get("p_strict") is not None]
    significant = [contrast for contrast in known if contrast["p_strict"] < LEVEL]
    sides = (
        ("higher BLEU", [contrast for contrast in significant if contrast["difference"] > 0]),
        ("lower BLEU", [contrast for contrast in significant if contrast["difference"] < 0]),
        ("not significant", [contrast for contrast in known if contrast["p_strict"] >= LEVEL]),
    )
    return [f"{effect}: " + ", ".join(map(contrast_words, group)) for effect, group in sides if group]


EFFECTS = f"Effects of single features (p below {LEVEL}; 95 % intervals in brackets)"
"""Heading of ``effects``."""


def contrast_words(contrast: Record) -> str:
    """Return a contrast in words, with the interval of the difference or, if not significant, its upper bound."""
    low, high = contrast["low"], contrast["high"]
    effect = interval(low, high) if contrast["p_strict"] < LEVEL else f"less than {max(high, 0.0):.2f}"
    return f"{label(contrast['feature'])} added to {label(contrast['without'])} ({effect})"


# Tables


def by_set(rows: Sequence[Record]) -> dict[str, list[Record]]:
    """Group rows by test set, in the order of the rows (dev sets come first)."""
    return {
        name: [row for row in rows if row["test_set"] == name]
        for name in dict.fromkeys(row["test_set"] for row in rows)
    }


def size(rows: Sequence[Record]) -> str:
    """Describe a test set: ``1,000 segments, 3 runs``, and the test set of published figures if they are shown."""
    runs = " or ".join(str(number) for number in sorted({row["runs"] for row in rows}))
    segments = rows[0]["segments"]
    few = "; too few segments for reliable scores" if segments < FEW_LINES else ""
    paper = "; paper: on WMT 2014" if any(row.get("paper_bleu") is not None for row in rows) else ""
    return f"{segments:,} segment{'s' * (segments != 1)}, {runs} run{'s' * (runs != '1')}{few}{paper}"


def table_for_readers(rows: Sequence[Record]) -> TextTable:
    """Return the table of one test set, without columns in which all cells are empty."""
    cells = [
        [
            label(row["system"]) + (" †" if row.get("below_start") else ""),
            spread(row["bleu"], row.get("bleu_sd")),
            or_dash(row.get("paper_bleu"), ".2f"),
            or_dash(row.get("diff_baseline"), "+z.2f"),
            interval(row.get("low_baseline"), row.get("high_baseline")),
            or_dash(row.get("paper_diff_baseline"), "+z.2f"),
            or_dash(row.get("p_strict"), ".4f"),
        ]
        for row in rows
    ]
    headings = ["System", "BLEU", "paper", DIFFERENCE, "95 %", "paper", "p"]
    keep = [k for k in range(len(headings)) if any(row[k] != DASH for row in cells)]
    return TextTable([headings[k] for k in keep], [[row[k] for k in keep] for row in cells])


def or_dash(value: float | None, form: str) -> str:
    """Format a number with a minus sign, not a hyphen, or return a dash."""
    return DASH if value is None else format(value, form).replace("-", MINUS)


def spread(average: float, deviation: float | None) -> str:
    """Format mean and standard deviation: ``58.93 ± 0.05``."""
    return f"{average:.2f}" if deviation is None else f"{average:.2f} ± {deviation:.2f}"


def interval(low: float | None, high: float | None) -> str:
    """Format an interval, ``+0.12 to +0.71``, or return a dash."""
    return DASH if low is None or high is None else f"{or_dash(low, '+z.2f')} to {or_dash(high, '+z.2f')}"


def padded(table: TextTable) -> list[list[str]]:
    """Return headings and rows with cells of equal width, first column left-aligned, others right-aligned."""
    rows = [table.headings, *table.rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        [cells[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))]
        for cells in rows
    ]


def markdown_table(table: TextTable) -> list[str]:
    """Return the lines of a table in Markdown, which are also readable as plain text."""
    escaped = [[cell.replace("|", r"\|") for cell in row] for row in (table.headings, *table.rows)]
    first, *others = padded(TextTable(escaped[0], escaped[1:]))
    rule = [f":{'-' * (len(first[0]) + 1)}", *(f"{'-' * (len(cell) + 1)}:" for cell in first[1:])]
    return [f"| {' | '.join(first)} |", f"|{'|'.join(rule)}|", *(f"| {' | '.join(cells)} |" for cells in others)]


# Pages


def sets_for_page(
    rows: Sequence[Record], contrasts: Sequence[Record], dev_sets: Collection[str]
) -> list[dict[str, Any]]:
    """Return every test set for the templates: its size, table, significant rows, plot and effects of the features."""
    return [
        {
            "name": name,
            "size": size(of_set),
            "rows": of_set,
            "table": table_for_readers(of_set),
            "significant": [(row.get("p_strict") or 1.0) < LEVEL for row in of_set],
            "plot": dot_plot(name, [(label(row["system"]), row["bleu_runs"]) for row in of_set])
            if find_spec("matplotlib")
            else "",
            "effects": effects([one for one in contrasts if one["test_set"] == name and name not in dev_sets]),
        }
        for name, of_set in by_set(rows).items()
    ]


def write_tables(
    markdown: StrPath | None,
    html: StrPath | None,
    rows: Sequence[Record],
    contrasts: Sequence[Record],
    dev_sets: Collection[str],
    *,
    paper: bool,
    title: str,
    tuning: str = "",
    provenance: str | None = None,
) -> None:
    """Write the table as Markdown and as an HTML page; a file that is None is not written.

    Args:
        rows, contrasts: as returned by ``rows.table_of``.
        paper, tuning: as for ``notes``.
        provenance: link to the output of `evaluation provenance`.
    """
    values = {
        "title": title,
        "test_sets": sets_for_page(rows, contrasts, dev_sets),
        "effects_heading": EFFECTS,
        "notes": notes(rows, contrasts, paper, tuning, dev_sets),
    }
    if markdown is not None:
        write_page(markdown, "rnnsmt.evaluation", "table.md.j2", **values, markdown_table=markdown_table)
    if html is not None:
        write_page(html, "rnnsmt.evaluation", "table.html.j2", **values, difference=DIFFERENCE, level=LEVEL,
                   provenance=provenance, version=__version__)  # fmt: skip


def dot_plot(test_set: str, systems: Sequence[tuple[str, Sequence[float]]]) -> str:
    """Return a plot of the BLEU of every run as ``<svg>``: a line per system, a dot per run, a bar at the mean.

    Args:
        systems: label of each system, and BLEU of its runs.
    """
    values = [bleu for _, runs in systems for bleu in runs]
    middle, half = (min(values) + max(values)) / 2, max((max(values) - min(values)) * 0.6, 0.25)
    figure, (axes,) = canvas(1, 1, 7.4, 0.5 + 0.27 * len(systems))
    for number, (_, runs) in enumerate(systems):
        axes.plot(runs, [number] * len(runs), "o", ms=6, mew=0, color=BLUE, alpha=0.55)
        axes.plot([fmean(runs)], [number], "|", ms=13, mew=2, color=BLUE)
    axes.set_xlim(middle - half, middle + half)
    axes.set_ylim(len(systems) - 0.4, -0.6)
    axes.set_yticks(range(len(systems)), [name for name, _ in systems])
    axes.grid(visible=False)
    axes.spines["left"].set_visible(False)
    axes.tick_params(colors=INK, length=0)
    out = StringIO()
    with styled({"svg.hashsalt": f"rnnsmt {test_set}"}):
        figure.savefig(out, format="svg", transparent=True, metadata=svg_metadata())
    return _for_page(out.getvalue())


def _for_page(svg: str) -> str:
    """Return the bare ``<svg>`` element with the page's colours, without group ids, which would clash between plots."""
    svg = svg[svg.index("<svg") :].strip()
    svg = re.sub(r" *<metadata>.*?</metadata>\n", "", svg, flags=re.DOTALL)
    svg = re.sub(r' id="[A-Za-z0-9.]+_[0-9]+"', "", svg)
    for colour, variable in COLOURS.items():
        svg = svg.replace(colour, variable)
    return svg
