"""Table 1 as a HTML page that needs nothing else: overview, figures of every test set, every run as a dot."""

import html
from collections.abc import Callable, Sequence
from pathlib import Path

from rnnsmt import __version__
from rnnsmt.evaluation import cells
from rnnsmt.evaluation.collect import Row
from rnnsmt.evaluation.dots import dot_plot
from rnnsmt.evaluation.figures import strict
from rnnsmt.io import atomic_text
from rnnsmt.systems import PAPER, label, named_features, paper_gain, without_last

TITLE = "Table 1: BLEU"
LEVEL = 0.05
"""Differences with a smaller p are set in bold."""

STYLE = """
:root { color-scheme: light dark; --line: #d5d9dd; --soft: #f3f5f7; --faint: #59626b; --mark: #0b5cad;
        --page: #ffffff; --ink: #1c2024; }
@media (prefers-color-scheme: dark) { :root { --line: #3d454d; --soft: #22272c; --faint: #a3adb7; --mark: #7db7f0;
        --page: #15191d; --ink: #e4e8ec; } }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; max-width: 64rem; margin: 2.5rem auto;
       padding: 0 1.25rem; background: var(--page); color: var(--ink); }
h1 { font-size: 1.6rem; margin: 0 0 .25rem; } h2 { font-size: 1.2rem; margin: 3rem 0 .25rem; }
h2 small { font-weight: 400; font-size: .9rem; color: var(--faint); margin-left: .5rem; }
p, li, footer { color: var(--faint); max-width: 46rem; } footer { margin: 3rem 0 0; }
a { color: var(--mark); } code { overflow-wrap: anywhere; }
.scroll { overflow-x: auto; margin: .75rem 0 1.25rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .94rem; }
th, td { padding: .35rem .8rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
th { background: var(--soft); font-weight: 600; font-size: .86rem; }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0; background: var(--page); }
th:first-child { background: var(--soft); }
td.dim, td.runs { color: var(--faint); } td.runs { font-size: .86rem; }
.paper td:first-child, .sure { font-weight: 700; }
svg { display: block; width: 100%; max-width: 46rem; min-width: 32rem; }
svg text { fill: currentColor; font: 13px system-ui, "DejaVu Sans", sans-serif; }
.axis { stroke: var(--line); } .run { fill: var(--mark); fill-opacity: .55; }
.mean { stroke: var(--mark); stroke-width: 2; }
@media (max-width: 40rem) { body { margin-top: 1.25rem; } th, td { padding: .35rem .5rem; } }
"""

DIM = {"p", "p strict", "paper", "paper dev", "paper test", "Length", "Unknown", "CPU s"}

Style = Callable[[int, str], str]
"""The class of a cell from the number of its row and its heading."""


def write_html(path: str | Path, table: Sequence[Row], provenance: str | None = None) -> None:
    """Write the page; ``provenance``: address of the file that says where every figure comes from."""
    body = [f"<h1>{TITLE}</h1>", f"<p>{_escape(cells.NOTES[0])}</p>", _overview(table)]
    for name, rows in cells.test_sets(table).items():
        body += _test_set(name, rows)
    body += ["<h2>Table 1 of Cho et al. (2014)</h2>", _paper_table()]
    body += ["<h2>How to read it</h2>", "<ul>"]
    body += [f"<li>{_escape(note)}</li>" for note in cells.NOTES]
    body.append(f"<li>Bold systems are rows of the paper's table; bold differences have p strict below {LEVEL}.</li>")
    body += [f"<li>sacreBLEU signature: <code>{_escape(text)}</code></li>" for text in cells.signatures(table)]
    if provenance is not None:
        link = f'<a href="{_escape(provenance)}">{_escape(Path(provenance).name)}</a>'
        body.append(f"<li>Files, seeds and weights behind every figure: {link}.</li>")
    body += ["</ul>", f"<footer>rnnsmt {__version__}</footer>"]
    with atomic_text(path) as out:
        out.write(
            f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{TITLE}</title>\n'
            f"<style>{STYLE}</style>\n</head>\n<body>\n"
        )
        out.write("\n".join(body) + "\n</body>\n</html>\n")


def _overview(table: Sequence[Row]) -> str:
    systems = list(dict.fromkeys(row.system for row in table))
    return _html(cells.overview(table), systems, _plain)


def _test_set(name: str, rows: Sequence[Row]) -> list[str]:
    systems = [row.system for row in rows]
    runs = " or ".join(str(number) for number in sorted({row.runs for row in rows}))
    about = f"{rows[0].segments:,} segments, {runs} run{'s' if runs != '1' else ''}"

    def style(number: int, heading: str) -> str:
        contrast = {"Δ baseline": rows[number].baseline, "Δ feature": cells.added(rows[number])}.get(heading)
        p = strict(contrast)
        return "sure" if p is not None and p < LEVEL else _plain(number, heading)

    return [
        f"<h2>{_escape(name)}<small>{about}</small></h2>",
        _html(cells.scores(rows), systems, style),
        f'<div class="scroll">{dot_plot(name, rows)}</div>',
        _html(cells.output(rows), systems, _plain),
    ]


def _plain(_number: int, heading: str) -> str:
    return "dim" if heading in DIM else "runs" if heading.startswith("BLEU of") else ""


def _html(table: cells.Table, systems: Sequence[str], style: Style) -> str:
    lines = ['<div class="scroll"><table>', "<thead><tr>"]
    lines += [f"<th>{_escape(heading)}</th>" for heading in table.headings]
    lines.append("</tr></thead>\n<tbody>")
    for number, (system, row) in enumerate(zip(systems, table.rows, strict=True)):
        parts = [
            f"<td{_class(style(number, heading))}>{_escape(cell)}</td>"
            for heading, cell in zip(table.headings, row, strict=True)
        ]
        lines.append(f"<tr{_class('paper' if system in PAPER else '')}>{''.join(parts)}</tr>")
    lines.append("</tbody></table></div>")
    return "\n".join(lines)


def _paper_table() -> str:
    """The paper's figures with their gains over its baseline and over the row with one feature less."""
    rows = []
    features = {system: named_features(system) for system in PAPER}
    for system, figures in PAPER.items():
        gains = [
            cells.or_dash(paper_gain(system, reference, is_dev) if reference not in (None, system) else None, "+.2f")
            for reference in ("baseline", without_last(system, features))
            for is_dev in (True, False)
        ]
        rows.append([label(system), f"{figures.dev:.2f}", f"{figures.test:.2f}", *gains])
    headings = ["Models", "dev", "test", "Δ baseline, dev", "test", "Δ feature, dev", "test"]
    return _html(cells.Table(headings, rows), [""] * len(rows), _plain)


def _escape(text: str) -> str:
    return html.escape(text)


def _class(name: str) -> str:
    return f' class="{name}"' if name else ""
