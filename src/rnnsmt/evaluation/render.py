"""Table 1 for readers: Markdown, and a self-contained HTML page with a dot plot of all runs.

Both have an overview in the layout of the paper and, for every test set, three tables: scores with differences, the
gain from each feature, and properties of the output.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from statistics import fmean
from textwrap import wrap
from typing import Any, NamedTuple

from rnnsmt import __version__
from rnnsmt.base.io import atomic_text
from rnnsmt.base.rendering import BLUE, GREY, INK, canvas, styled, svg_metadata, write_page
from rnnsmt.config.features import (
    BASELINE,
    PAPER,
    SEQ2SEQ_PAPER,
    has_network,
    label,
    last_feature,
    named_features,
    paper_gain,
    published,
    without,
)
from rnnsmt.evaluation.table import Contrast, Row, contrast_records, deviation, mean
from rnnsmt.evaluation.text_metrics import METRICS

DASH = "–"

LEVEL = 0.05
"""Differences with a smaller p strict are significant."""

WIDTH = 100
"""Line width of running text in Markdown."""

COLOURS = {BLUE: "var(--mark)", GREY: "var(--line)", INK: "var(--ink)"}
"""CSS variables that replace colours of the plots, so that they follow the light or dark style of the page."""

DIM = {
    "p", "p boot", "p strict", "95 %", "detectable", "paper", "paper dev", "paper test", "Length", "Unknown",
}  # fmt: skip
"""Columns shown in a weaker colour."""

WHAT_IS_SHOWN = (
    "BLEU is tokenised and case-sensitive, as computed by multi-bleu.perl (the metric of the paper); "
    "sacreBLEU, chrF, chrF++ and TER (lower is better) are computed on the detokenised text. "
)

ONE_RUN = (
    "Figures are of one tuning run of each system.",
    "There is one tuning run of each system, so that the variation of BLEU between runs is unknown: tuning again, or "
    "training the networks again with other seeds, would give other figures. p and p boot include only the "
    "variance due to sentences; standard deviations, confidence intervals and p strict require two runs or more.",
)

ONE_TRAINING = (
    "Figures are means ± standard deviations over independent tuning runs, which share one network of each kind.",
    "± and p include the variance due to tuning, but not the variance due to training. All runs share one network of "
    "each kind; training the networks again with other seeds would change the figures by an unknown amount.",
)

NO_NETWORKS = (
    "Figures are means ± standard deviations over independent tuning runs.",
    "± and p include the variance due to tuning.",
)

SEVERAL_TRAININGS = (
    "Figures are means ± standard deviations over independent tuning runs, which cycle through {} training runs of "
    "each network.",
    "± and p include the variance due to tuning and, for systems with networks, the variance due to training with "
    "other seeds. If there are as many training runs as tuning runs, ± is the standard deviation due to both. p strict "
    "uses the mean of the tuning runs of each training run.",
)

DIFFERENCES = "Δ: difference to the baseline, and to the same system without one feature. "

INTERVALS = (
    "95 %: confidence interval of the difference. Detectable: the smallest true difference that the same experiment "
    "would detect (p strict at most 0.05) with a power of 80 %. "
)

P_VALUES = (
    "p: stratified approximate randomisation over all runs, two-sided (Clark et al. 2011); p boot: paired bootstrap "
    "over sentences (Koehn 2004), as in sacreBLEU"
)

P_STRICT = (
    "; p strict, the recommended p-value: the outputs for a sentence are exchanged in all runs at once, and the "
    "variance between runs is added; it requires two runs, and three or more are recommended"
)

DEV = ". The weights were tuned on dev, so that differences on dev have little meaning."

OUTPUT_NOTE = "Unknown: input words passed through untranslated. Length: words of the output per word of the reference."

PAPER_NOTE = (
    "paper: published figure for the column to its left, of Cho et al. (2014) and, for LSTMs, of Sutskever et al. "
    "(2014), on WMT 2014 English–French (dev: newstest2012+2013, test: newstest2014). BLEU is comparable only between "
    "systems on the same data; the differences indicate the gains to expect."
)

PAPER_REFERENCES = (
    "Sutskever et al. also list, for newstest2014: Bahdanau et al. (2014) 28.45, the best system of Cho et al. (2014) "
    "34.54, the best system of WMT 2014 37.0, and an oracle that selects from the 1000-best lists, about 45."
)

KIND_TITLES = {"extracted": "extraction count", "source words of a phrase": "source words per phrase"}
"""Titles of groups of sentences or phrase pairs of `evaluation compare`, if they differ from the keys."""

PAPER_SETS = "paper: published BLEU on WMT 2014 English–French, dev newstest2012+2013, test newstest2014."


class TextTable(NamedTuple):
    """Table of formatted cells: headings, and rows; the first column names the system."""

    headings: list[str]
    rows: list[list[str]]


# Text about the figures


def introduction(table: Sequence[Row]) -> str:
    """Return a text that defines the figures of the table."""
    return WHAT_IS_SHOWN + _noise(table)[0]


def notes(table: Sequence[Row], paper: bool, tuning: str) -> list[str]:
    """Return paragraphs on how to read the table.

    Args:
        paper: the table includes the published figures.
        tuning: how the systems were tuned; empty: not stated.
    """
    several = _runs(table) > 1
    differences = DIFFERENCES + (INTERVALS if several else "") + P_VALUES + (P_STRICT if several else "") + DEV
    parts = [introduction(table), _noise(table)[1]]
    parts += [f"Tuning: {tuning}."] if tuning else []
    parts += [differences, OUTPUT_NOTE, comparisons(table)] if _has_differences(table) else [OUTPUT_NOTE]
    if paper:
        parts.append(PAPER_NOTE)
        if any("lstm" in row.system for row in table):
            parts.append(PAPER_REFERENCES)
    return parts


def _has_differences(table: Sequence[Row]) -> bool:
    return any(row.baseline or row.features for row in table)


def _runs(table: Sequence[Row]) -> int:
    return max(row.runs for row in table)


def _noise(table: Sequence[Row]) -> tuple[str, str]:
    """Return a sentence and a paragraph about the variation between the runs."""
    trainings = max(row.trainings for row in table)
    if _runs(table) == 1:
        sentence, paragraph = ONE_RUN
    elif all(row.system == BASELINE or (row.added and not has_network(row.added)) for row in table):
        sentence, paragraph = NO_NETWORKS
    else:
        sentence, paragraph = ONE_TRAINING if trainings == 1 else SEVERAL_TRAININGS
    return sentence.format(trainings), paragraph


def comparisons(table: Sequence[Row]) -> str:
    """Return a paragraph about the number of contrasts tested on a test set and its effect on p and intervals."""
    number = max(_tested(rows) for rows in test_sets(table).values())
    if number < 2:
        return "p and intervals are not corrected for the number of comparisons."
    return (
        f"{number} contrasts are tested on every test set; p and intervals are those of single contrasts and are not "
        f"corrected for their number. Without any true difference, {number * LEVEL:.2g} p-values would be below "
        f"{LEVEL} on average."
    )


def _tested(rows: Sequence[Row]) -> int:
    """Return the number of pairs of systems of one test set whose difference has a p strict."""
    pairs = [(row.system, contrast) for row in rows for contrast in (row.baseline, *row.features.values()) if contrast]
    return len({(system, contrast.reference) for system, contrast in pairs if contrast.p_strict is not None})


def effects(contrasts: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the features that increase and decrease BLEU of one test set, and upper bounds for the others.

    Args:
        contrasts: differences on the test set, as those of ``contrast_records``.
    """
    known = [contrast for contrast in contrasts if contrast["p_strict"] is not None]
    significant = [contrast for contrast in known if contrast["p_strict"] < LEVEL]
    sides = (
        ("higher BLEU", [contrast for contrast in significant if contrast["difference"] > 0]),
        ("lower BLEU", [contrast for contrast in significant if contrast["difference"] < 0]),
        ("not detected", [contrast for contrast in known if contrast["p_strict"] >= LEVEL]),
    )
    return [f"{effect}: " + ", ".join(map(contrast_words, group)) for effect, group in sides if group]


EFFECTS = f"Effects (p strict below {LEVEL}; 95 % intervals in brackets)"
"""Heading of ``effects``."""


def verdict(contrasts: Sequence[Mapping[str, Any]]) -> str:
    """Return ``effects`` as one sentence; an empty string if no difference was tested."""
    parts = effects(contrasts)
    return f"{EFFECTS}: {'; '.join(parts)}." if parts else ""


def contrast_words(contrast: Mapping[str, Any]) -> str:
    """Return a contrast in words: the features, and the effect."""
    pair = f"{label(contrast['feature'])} added to {label(contrast['without'])}"
    return f"{pair} ({effect_words(contrast['p_strict'], contrast['low'], contrast['high'])})"


def effect_words(p_strict: float, low: float, high: float) -> str:
    """Return a difference in words: its interval, or its upper bound if it is not detected."""
    return interval(low, high) if p_strict < LEVEL else f"less than {max(high, 0.0):.2f}"


def highest(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a sentence with the systems of the highest BLEU on one test set, and their differences to the baseline.

    Args:
        rows: rows of the test set, as those of ``table.record``.
    """
    best = max(row["bleu"] for row in rows)
    parts = []
    for row in (row for row in rows if row["bleu"] == best):
        text = f"{label(row['system'])}, {spread(row['bleu_runs'])}"
        if row["p_strict"] is not None:
            detected = "" if row["p_strict"] < LEVEL else " not detected"
            effect = effect_words(row["p_strict"], row["low_baseline"], row["high_baseline"])
            text += f" (difference to {label(BASELINE)}{detected}: {effect})"
        elif row["diff_baseline"] is not None:
            text += f" ({row['diff_baseline']:+z.2f} to {label(BASELINE)})"
        parts.append(text)
    return f"Highest BLEU: {'; '.join(parts)}."


def test_sets(table: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the rows of every test set, in the order of the table."""
    return {name: [row for row in table if row.test_set == name] for name in dict.fromkeys(r.test_set for r in table)}


def size(rows: Sequence[Row]) -> str:
    """Return the size of one test set: ``1,000 segments, 3 runs``."""
    runs = " or ".join(str(number) for number in sorted({row.runs for row in rows}))
    return f"{rows[0].segments:,} segment{'s' * (rows[0].segments != 1)}, {runs} run{'s' * (runs != '1')}"


# Formatted cells


def or_dash(value: float | None, form: str) -> str:
    """Format a number, or return a dash."""
    return DASH if value is None else format(value, form)


def spread(values: Sequence[float]) -> str:
    """Format mean and standard deviation: ``58.93 ± 0.05``; a dash if there is no value."""
    average, width = mean(values), deviation(values)
    if average is None:
        return DASH
    return f"{average:.2f}" if width is None else f"{average:.2f} ± {width:.2f}"


def interval(low: float, high: float) -> str:
    """Format an interval: ``+0.12 to +0.71``."""
    return f"{low:+z.2f} to {high:+z.2f}"


def _difference(contrast: Contrast | None) -> str:
    return or_dash(contrast.difference if contrast else None, "+z.2f")


def _published_difference(contrast: Contrast | None) -> str:
    return or_dash(contrast.paper if contrast else None, "+z.2f")


def _interval(contrast: Contrast | None) -> str:
    return interval(*contrast.interval) if contrast and contrast.interval else DASH


def _p_strict(contrast: Contrast | None) -> str:
    return or_dash(contrast.p_strict if contrast else None, ".4f")


def _last(row: Row) -> Contrast | None:
    """Return the contrast to the system without the feature that the paper adds last, if that is not the baseline."""
    return row.last if row.last and row.last.reference != BASELINE else None


# Tables


def overview(table: Sequence[Row], paper: bool) -> TextTable:
    """Return the table of the paper: a row per system, a column per test set; paper: followed by published figures."""
    cells = {(row.system, row.test_set): spread(row.bleu) for row in table}
    sets = list(test_sets(table))
    rows = [
        [
            label(system),
            *(cells.get((system, name), DASH) for name in sets),
            *(or_dash(figure, ".2f") for figure in (published(system) or (None, None)) if paper),
        ]
        for system in dict.fromkeys(row.system for row in table)
    ]
    return _without_empty(TextTable(["System", *sets, *(["paper dev", "paper test"] if paper else [])], rows))


Column = tuple[str, Callable[[Row], str]]
"""Heading, and the function that formats the cell of a row."""

SCORES: list[Column] = [
    ("System", lambda row: label(row.system)),
    ("BLEU", lambda row: spread(row.bleu)),
    ("paper", lambda row: or_dash(row.paper, ".2f")),
    ("Δ baseline", lambda row: _difference(row.baseline)),
    ("95 %", lambda row: _interval(row.baseline)),
    ("paper", lambda row: _published_difference(row.baseline)),
    ("p strict", lambda row: _p_strict(row.baseline)),
    ("Δ feature", lambda row: _difference(_last(row))),
    ("paper", lambda row: _published_difference(_last(row))),
    ("p strict", lambda row: _p_strict(_last(row))),
]

OUTPUT: list[Column] = [
    ("System", lambda row: label(row.system)),
    ("sacreBLEU", lambda row: spread(row.sacrebleu)),
    ("Length", lambda row: f"{row.length_ratio:.3f}"),
    ("Unknown", lambda row: or_dash(row.unknown_words, ",.0f")),
    ("BLEU of every run", lambda row: " ".join(f"{bleu:.2f}" for bleu in row.bleu)),
]


def other_metrics(rows: Sequence[Row]) -> TextTable | None:
    """Return chrF, chrF++ and TER of one test set with their differences to the baseline; None without any."""
    cells = []
    for name, metric in METRICS.items():
        for row in rows:
            if name in row.metrics:
                contrast = row.baseline.metrics.get(name) if row.baseline else None
                cells.append(
                    [
                        label(row.system),
                        metric.label,
                        spread(row.metrics[name]),
                        or_dash(contrast and contrast.difference, "+z.2f"),
                        interval(*contrast.interval) if contrast and contrast.interval else DASH,
                        or_dash(contrast and contrast.p_strict, ".4f"),
                    ]
                )
    headings = ["System", "Metric", "Score", "Δ baseline", "95 %", "p strict"]
    return _without_empty(TextTable(headings, cells)) if cells else None


def _columns(columns: Sequence[Column], rows: Sequence[Row]) -> TextTable:
    """Return the table of some columns (``SCORES`` or ``OUTPUT``) of one test set."""
    headings = [heading for heading, _ in columns]
    return _without_empty(TextTable(headings, [[cell(row) for _, cell in columns] for row in rows]))


def contrasts(rows: Sequence[Row]) -> TextTable | None:
    """Return the gain from each feature in each system on one test set; None if no systems differ by one feature."""
    cells = [
        [
            label(contrast["feature"]),
            label(contrast["without"]),
            or_dash(contrast["difference"], "+z.2f"),
            DASH if contrast["low"] is None else interval(contrast["low"], contrast["high"]),
            or_dash(contrast["detectable"], ".2f"),
            or_dash(contrast["paper_difference"], "+z.2f"),
            or_dash(contrast["p_value"], ".4f"),
            or_dash(contrast["p_bootstrap"], ".4f"),
            or_dash(contrast["p_strict"], ".4f"),
        ]
        for contrast in contrast_records(rows)
    ]
    headings = ["Feature", "added to", "Δ", "95 %", "detectable", "paper", "p", "p boot", "p strict"]
    return _without_empty(TextTable(headings, cells)) if cells else None


def _without_empty(table: TextTable) -> TextTable:
    """Remove columns in which all cells are dashes."""
    keep = [k for k in range(len(table.headings)) if any(row[k] != DASH for row in table.rows)]
    return TextTable([table.headings[k] for k in keep], [[row[k] for k in keep] for row in table.rows])


def signatures(table: Sequence[Row]) -> list[str]:
    """Return the different signatures of sacreBLEU."""
    return sorted({row.signature for row in table if row.signature})


# Markdown, also readable as plain text


def write_markdown(path: str | Path, table: Sequence[Row], paper: bool, title: str, tuning: str = "") -> None:
    """Write the overview and the tables of every test set, with padded columns.

    Args:
        paper: include the published results.
        tuning: as for ``notes``.
    """
    parts = [f"# {title}", "", *markdown_table(overview(table, paper)), ""]
    if paper:
        parts += [PAPER_SETS, ""]
    for name, rows in test_sets(table).items():
        parts += [f"## {name}: {size(rows)}", "", *markdown_table(_columns(SCORES, rows)), ""]
        if (added := contrasts(rows)) is not None:
            parts += [f"### Effect of each feature on {name}", "", *markdown_table(added), ""]
        if sentence := verdict(contrast_records(rows)):
            parts += [*_paragraph(sentence), ""]
        if (others := other_metrics(rows)) is not None:
            parts += [f"### Other metrics on {name}", "", *markdown_table(others), ""]
        parts += [f"### Output on {name}", "", *markdown_table(_columns(OUTPUT, rows)), ""]
    for note in [
        *notes(table, paper, tuning),
        *(f"sacreBLEU signature: `{signature}`" for signature in signatures(table)),
    ]:
        parts += [*_paragraph(note), ""]
    with atomic_text(path) as out:
        out.write("\n".join(parts).rstrip("\n") + "\n")


def _paragraph(text: str) -> list[str]:
    return wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def markdown_table(table: TextTable) -> list[str]:
    """Return the lines of a table with padded cells, first column left-aligned, others right-aligned."""
    headings, *rows = ([cell.replace("|", r"\|") for cell in row] for row in (table.headings, *table.rows))
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    rule = [f":{'-' * (widths[0] + 1)}", *(f"{'-' * (width + 1)}:" for width in widths[1:])]
    padded = [
        [cells[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))]
        for cells in (headings, *rows)
    ]
    first, *others = (f"| {' | '.join(cells)} |" for cells in padded)
    return [first, f"|{'|'.join(rule)}|", *others]


# HTML


class HtmlTable(NamedTuple):
    """Table for the template: headings; for every row, whether it is bold, and its cells as (text, CSS class)."""

    headings: list[str]
    rows: list[tuple[bool, list[tuple[str, str]]]]


def write_html(
    path: str | Path, table: Sequence[Row], paper: bool, title: str, tuning: str = "", provenance: str | None = None
) -> None:
    """Write the page.

    Args:
        paper: include the published results.
        tuning: as for ``notes``.
        provenance: address of the file with the origin of every number.
    """
    systems = list({row.system: row for row in reversed(table)}.values())[::-1]
    write_page(
        path,
        "rnnsmt.evaluation",
        "table.html.j2",
        title=title,
        introduction=introduction(table),
        overview=_html(overview(table, paper), _in_paper(systems, paper)),
        paper_sets=PAPER_SETS if paper else None,
        test_sets=[_test_set(name, rows, paper) for name, rows in test_sets(table).items()],
        papers=_paper_tables(table) if paper else [],
        notes=notes(table, paper, tuning),
        level=LEVEL if _runs(table) > 1 and _has_differences(table) else None,
        signatures=signatures(table),
        provenance=provenance,
        provenance_name=Path(provenance or "").name,
        version=__version__,
    )


def _in_paper(rows: Sequence[Row], paper: bool) -> list[bool]:
    """Return for every row whether results of its system are published, and shown."""
    return [paper and published(row.system) is not None for row in rows]


def _test_set(name: str, rows: Sequence[Row], paper: bool) -> dict[str, Any]:
    """Return the template variables of one test set."""
    bold = _in_paper(rows, paper)

    def p_of(number: int, heading: str) -> float | None:
        contrast = {"Δ baseline": rows[number].baseline, "Δ feature": _last(rows[number])}.get(heading)
        return contrast.p_strict if contrast else None

    added, others = contrasts(rows), other_metrics(rows)
    p_values = [contrast["p_strict"] for contrast in contrast_records(rows)]
    return {
        "name": name,
        "size": size(rows),
        "scores": _html(_columns(SCORES, rows), bold, p_of),
        "plot": dot_plot(name, [(label(row.system), row.bleu) for row in rows]) if find_spec("matplotlib") else "",
        "verdict": verdict(contrast_records(rows)),
        "contrasts": added
        and _html(added, [False] * len(p_values), lambda number, heading: p_values[number] if heading == "Δ" else None),
        "metrics": others and _html(others),
        "output": _html(_columns(OUTPUT, rows), bold),
    }


def _html(
    table: TextTable,
    bold: Sequence[bool] | None = None,
    p_of: Callable[[int, str], float | None] = lambda _number, _heading: None,
) -> HtmlTable:
    """Return a table with the CSS classes of its cells.

    Args:
        bold: bold rows; None for none.
        p_of: function that returns the p-value of a cell, given row number and heading.
    """

    def css_class(number: int, heading: str) -> str:
        p = p_of(number, heading)
        if p is not None and p < LEVEL:
            return "sure"
        return "dim" if heading in DIM else "runs" if heading.startswith("BLEU of") else ""

    return HtmlTable(
        table.headings,
        [
            (
                bold is not None and bold[number],
                [(text, css_class(number, heading)) for heading, text in zip(table.headings, row, strict=True)],
            )
            for number, row in enumerate(table.rows)
        ],
    )


def _paper_tables(table: Sequence[Row]) -> list[tuple[str, HtmlTable]]:
    """Return the titles and tables of Cho et al. and, if there are LSTMs, of Sutskever et al."""
    features = {system: named_features(system) for system in PAPER}
    rows = []
    for system, figures in PAPER.items():
        last = last_feature(features[system])
        references = (BASELINE, without(system, last, features) if last else None)
        gains = [
            paper_gain(system, reference, is_dev) if reference not in (None, system) else None
            for reference in references
            for is_dev in (True, False)
        ]
        rows.append([label(system), *(or_dash(bleu, ".2f") for bleu in figures), *(or_dash(g, "+.2f") for g in gains)])
    headings = ["Models", "dev", "test", "Δ baseline, dev", "test", "Δ feature, dev", "test"]
    tables = [("Table 1 of Cho et al. (2014)", _html(TextTable(headings, rows)))]
    if any(row.system in SEQ2SEQ_PAPER for row in table):
        rows = [
            [label(system), or_dash(figures.test, ".2f"), or_dash(paper_gain(system, BASELINE, False), "+.2f")]
            for system, figures in SEQ2SEQ_PAPER.items()
        ]
        view = _html(TextTable(["Models", "test", "Δ baseline"], rows))
        tables.append(("Tables 1 and 2 of Sutskever et al. (2014)", view))
    return tables


def dot_plot(test_set: str, systems: Sequence[tuple[str, Sequence[float]]]) -> str:
    """Return BLEU of every run on one test set as ``<svg>``: a line per system, a dot per run, a bar at the mean.

    Args:
        systems: label and BLEU of every run of each system.
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
