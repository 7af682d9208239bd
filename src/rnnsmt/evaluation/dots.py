"""Dot plot of the tokenised BLEU of every run as SVG: a line per system, a dot per run, a bar at the mean."""

import re
from collections.abc import Sequence
from io import StringIO
from statistics import fmean

from rnnsmt.base.drawing import BLUE, GREY, INK, canvas, styled, svg_metadata
from rnnsmt.evaluation.table import Row
from rnnsmt.plan.systems import label

VARIABLES = {BLUE: "var(--mark)", GREY: "var(--line)", INK: "var(--ink)"}
"""CSS variables that replace colours, so that the plot follows the light or dark style of the page."""


def dot_plot(test_set: str, rows: Sequence[Row]) -> str:
    """Return the plot of all systems on one test set as an ``<svg>`` element for a page."""
    values = [bleu for row in rows for bleu in row.bleu]
    middle, half = (min(values) + max(values)) / 2, max((max(values) - min(values)) * 0.6, 0.25)
    figure, (axes,) = canvas(1, 1, 7.4, 0.5 + 0.27 * len(rows))
    for number, row in enumerate(rows):
        axes.plot(row.bleu, [number] * row.runs, "o", ms=6, mew=0, color=BLUE, alpha=0.55)
        axes.plot([fmean(row.bleu)], [number], "|", ms=13, mew=2, color=BLUE)
    axes.set_xlim(middle - half, middle + half)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_yticks(range(len(rows)), [label(row.system) for row in rows])
    axes.grid(visible=False)
    axes.spines["left"].set_visible(False)
    axes.tick_params(colors=INK, length=0)
    out = StringIO()
    with styled({"svg.hashsalt": f"rnnsmt {test_set}"}):
        figure.savefig(out, format="svg", transparent=True, metadata=svg_metadata())
    return _for_a_page(out.getvalue())


def _for_a_page(svg: str) -> str:
    """Return the bare ``<svg>`` element with the page's colours, without group ids, which would clash between plots."""
    svg = svg[svg.index("<svg") :].strip()
    svg = re.sub(r" *<metadata>.*?</metadata>\n", "", svg, flags=re.DOTALL)
    svg = re.sub(r' id="[A-Za-z0-9.]+_[0-9]+"', "", svg)
    for colour, variable in VARIABLES.items():
        svg = svg.replace(colour, variable)
    return svg
