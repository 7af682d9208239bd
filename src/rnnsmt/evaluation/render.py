"""Table 1 as TSV, Markdown and HTML."""

import html
from collections.abc import Sequence
from pathlib import Path

from rnnsmt import __version__
from rnnsmt.evaluation.collect import Row, deviation, mean
from rnnsmt.evaluation.systems import PAPER, label
from rnnsmt.io import atomic_text

COLUMNS = (
    "system", "test_set", "bleu", "bleu_sd", "sacrebleu", "sacrebleu_sd", "runs", "diff_baseline", "p_value",
    "p_strict", "bleu_runs", "sacrebleu_runs", "length_ratio", "unknown_words", "segments", "decode_seconds",
    "paper_bleu", "signature",
)  # fmt: skip
"""Columns of the TSV file. An empty cell means: not known, or not defined (a deviation of one run)."""

NOTE = (
    "BLEU is tokenised and cased as multi-bleu.perl computes it, the metric of the paper; sacreBLEU is taken on "
    "detokenised text. ± is the standard deviation over independent tuning runs. The paper's figures are for WMT 2014 "
    "English–French (dev: newstest2012+2013, test: newstest2014) and compare only where the data are the same. "
    "Unknown: input words without a translation. p: stratified approximate randomisation over all runs against the "
    "baseline, two-sided (Clark et al. 2011). p, strict: the same with a sentence swapped in all runs at once and the "
    "noise of the tuning runs added; the one to go by."
)


def write_tsv(path: str | Path, table: Sequence[Row]) -> None:
    """Write every figure, four decimals."""
    with atomic_text(path) as out:
        print(*COLUMNS, sep="\t", file=out)
        for row in table:
            print(*_tsv_cells(row), sep="\t", file=out)


def _tsv_cells(row: Row) -> list[str]:
    return [
        row.system,
        row.test_set,
        _number(mean(row.bleu)),
        _number(deviation(row.bleu)),
        _number(mean(row.sacrebleu)),
        _number(deviation(row.sacrebleu)),
        str(row.runs),
        _number(row.difference),
        _number(row.comparison and row.comparison.p_clark),
        _number(row.comparison and row.comparison.p_strict),
        " ".join(map(_number, row.bleu)),
        " ".join(map(_number, row.sacrebleu)),
        _number(row.length_ratio),
        "" if row.unknown_words is None else f"{row.unknown_words:g}",
        str(row.segments),
        _number(row.decode_seconds, 1),
        _number(row.paper, 2),
        row.signature or "",
    ]


def _number(value: float | None, decimals: int = 4) -> str:
    return "" if value is None else f"{value:.{decimals}f}"


def _spread(values: Sequence[float]) -> str:
    """``58.93 ± 0.05``, or ``–`` of nothing."""
    average, spread = mean(values), deviation(values)
    if average is None:
        return "–"
    return f"{average:.2f}" if spread is None else f"{average:.2f} ± {spread:.2f}"


def _or_dash(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)


HEADINGS = (
    "System",
    "Test set",
    "BLEU",
    "Paper",
    "Δ baseline",
    "p",
    "p, strict",
    "sacreBLEU",
    "Runs",
    "Length ratio",
    "Unknown",
    "Each run",
)


def _cells(row: Row) -> tuple[str, ...]:
    return (
        label(row.system),
        row.test_set,
        _spread(row.bleu),
        _or_dash(row.paper, ".2f"),
        _or_dash(row.difference, "+.2f"),
        _or_dash(row.comparison and row.comparison.p_clark, ".4f"),
        _or_dash(row.comparison and row.comparison.p_strict, ".4f"),
        _spread(row.sacrebleu),
        str(row.runs),
        f"{row.length_ratio:.3f}",
        _or_dash(row.unknown_words, ",.0f"),
        " ".join(f"{bleu:.2f}" for bleu in row.bleu),
    )


def _columns(table: Sequence[Row]) -> list[tuple[str, list[str]]]:
    """Heading and cells of every column that says anything."""
    cells = zip(*map(_cells, table), strict=True)
    return [
        (heading, list(column))
        for heading, column in zip(HEADINGS, cells, strict=True)
        if any(cell != "–" for cell in column)
    ]


def _signatures(table: Sequence[Row]) -> list[str]:
    return sorted({row.signature for row in table if row.signature})


def write_markdown(path: str | Path, table: Sequence[Row]) -> None:
    """Write the table for a README."""
    columns = _columns(table)
    with atomic_text(path) as out:
        print("| " + " | ".join(heading for heading, _ in columns) + " |", file=out)
        print("|---|---|" + "---:|" * (len(columns) - 2), file=out)
        for row in zip(*(cells for _, cells in columns), strict=True):
            print("| " + " | ".join(row) + " |", file=out)
        print(f"\n{NOTE}", file=out)
        for signature in _signatures(table):
            print(f"\nsacreBLEU signature: `{signature}`", file=out)


STYLE = """
:root { color-scheme: light dark; --line: #c8ccd0; --soft: #f3f5f7; --faint: #5c656e; --mark: #0b5cad; }
@media (prefers-color-scheme: dark) { :root { --line: #444c54; --soft: #22272c; --faint: #a3adb7; --mark: #7db7f0; } }
body { font: 16px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; max-width: 78rem; margin: 2.5rem auto;
       padding: 0 1.25rem; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; } h2 { font-size: 1.1rem; margin: 2.25rem 0 .5rem; }
p, footer { color: var(--faint); max-width: 48rem; } .scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; width: 100%; }
th, td { padding: .4rem .6rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
th { background: var(--soft); font-weight: 600; }
th:first-child, td:first-child, .text { text-align: left; } td.main { font-weight: 700; }
td.dim { color: var(--faint); } tr.first td { border-top: 2px solid var(--line); }
svg text { fill: currentColor; font: 13px system-ui, "DejaVu Sans", sans-serif; } code { overflow-wrap: anywhere; }
.axis { stroke: var(--line); } .run { fill: var(--mark); fill-opacity: .55; }
.mean { stroke: var(--mark); stroke-width: 2; }
"""


def write_html(path: str | Path, table: Sequence[Row]) -> None:
    """Write a page that needs nothing else: the table, every run as a dot, the paper's Table 1, how it was scored."""
    title = "Table 1: BLEU"
    body = [f"<h1>{title}</h1>", f"<p>{html.escape(NOTE)}</p>", _html_table(table), "<h2>Every run</h2>", _dots(table)]
    body += ["<h2>Table 1 of Cho et al. (2014)</h2>", _html_paper()]
    body += [f"<p>sacreBLEU signature: <code>{html.escape(signature)}</code></p>" for signature in _signatures(table)]
    body.append(f"<footer>rnnsmt {__version__}</footer>")
    with atomic_text(path) as out:
        out.write(
            f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{title}</title>\n'
            f"<style>{STYLE}</style>\n</head>\n<body>\n"
        )
        out.write("\n".join(body) + "\n</body>\n</html>\n")


def _html_table(table: Sequence[Row]) -> str:
    dim = {"Each run", "Paper", "Runs", "Length ratio", "Unknown"}
    columns = _columns(table)
    lines = ['<div class="scroll"><table>', "<thead><tr>"]
    lines += [f"<th{_class('text' if place < 2 else '')}>{heading}</th>" for place, (heading, _) in enumerate(columns)]
    lines.append("</tr></thead>\n<tbody>")
    previous = None
    for number, row in enumerate(table):
        cells = []
        for heading, column in columns:
            kind = "main" if heading == "BLEU" else "dim" if heading in dim else "text" if heading == "Test set" else ""
            shown = "" if heading == "System" and row.system == previous else html.escape(column[number])
            cells.append(f"<td{_class(kind)}>{shown}</td>")
        lines.append(f"<tr{_class('first' if row.system != previous else '')}>{''.join(cells)}</tr>")
        previous = row.system
    lines.append("</tbody></table></div>")
    return "\n".join(lines)


def _html_paper() -> str:
    lines = ["<table style='width:auto'><thead><tr><th>Models</th><th>dev</th><th>test</th></tr></thead><tbody>"]
    lines += [
        f"<tr><td>{label(system)}</td><td>{figures.dev:.2f}</td><td>{figures.test:.2f}</td></tr>"
        for system, figures in PAPER.items()
    ]
    return "\n".join([*lines, "</tbody></table>"])


def _class(name: str) -> str:
    return f' class="{name}"' if name else ""


def _dots(table: Sequence[Row]) -> str:
    """Tokenised BLEU of every run, one line a test set and system, one scale a test set."""
    lines: list[str] = []
    for test_set in dict.fromkeys(row.test_set for row in table):
        lines.append(_dot_plot(test_set, [row for row in table if row.test_set == test_set]))
    return "\n".join(lines)


def _dot_plot(test_set: str, table: Sequence[Row]) -> str:
    width, left, right, height = 760, 260, 60, 26
    values = [bleu for row in table for bleu in row.bleu]
    middle, half = (min(values) + max(values)) / 2, max((max(values) - min(values)) * 0.6, 0.25)
    low, high = middle - half, middle + half

    def place(bleu: float) -> float:
        return left + (bleu - low) / (high - low) * (width - left - right)

    bottom = len(table) * height + 8
    parts = [
        f'<svg viewBox="0 0 {width} {bottom + 22}" width="{width}" role="img" style="max-width:100%" '
        f'aria-label="BLEU of every run on {html.escape(test_set)}">',
        f'<line class="axis" x1="{left}" x2="{width - right}" y1="{bottom}" y2="{bottom}"/>',
    ]
    parts += [
        f'<text x="{place(tick):.1f}" y="{bottom + 16}" text-anchor="middle">{tick:.2f}</text>'
        for tick in (low, middle, high)
    ]
    for number, row in enumerate(table):
        y = number * height + height / 2 + 4
        average = mean(row.bleu) or 0.0
        name = html.escape(f"{label(row.system)}, {test_set}")
        parts.append(f'<text x="{left - 14}" y="{y + 4:.1f}" text-anchor="end">{name}</text>')
        x = f"{place(average):.1f}"
        parts.append(f'<line class="mean" x1="{x}" x2="{x}" y1="{y - 8:.1f}" y2="{y + 8:.1f}"/>')
        parts += [
            f'<circle class="run" cx="{place(bleu):.1f}" cy="{y:.1f}" r="4"><title>{bleu:.2f}</title></circle>'
            for bleu in row.bleu
        ]
    return "".join(parts) + "</svg>"
