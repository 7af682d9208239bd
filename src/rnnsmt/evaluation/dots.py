"""Tokenised BLEU of every run as SVG: a line a system, a dot a run, a bar at the mean."""

import html
from collections.abc import Sequence

from rnnsmt.evaluation.collect import Row, mean
from rnnsmt.systems import label

WIDTH, LEFT, RIGHT, HEIGHT = 736, 170, 30, 26
"""In pixels: of the plot, of the margins, of a line."""


def dot_plot(test_set: str, rows: Sequence[Row]) -> str:
    """The runs of all systems on one test set, with one scale."""
    values = [bleu for row in rows for bleu in row.bleu]
    middle, half = (min(values) + max(values)) / 2, max((max(values) - min(values)) * 0.6, 0.25)
    low, high = middle - half, middle + half

    def place(bleu: float) -> float:
        return LEFT + (bleu - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    bottom = len(rows) * HEIGHT + 8
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {bottom + 22}" width="{WIDTH}" role="img" '
        f'aria-label="BLEU of every run on {html.escape(test_set)}">',
        f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{bottom}" y2="{bottom}"/>',
    ]
    parts += [
        f'<text x="{place(tick):.1f}" y="{bottom + 16}" text-anchor="middle">{tick:.2f}</text>'
        for tick in (low, middle, high)
    ]
    for number, row in enumerate(rows):
        parts += _line(row, number * HEIGHT + HEIGHT / 2 + 4, place(mean(row.bleu) or 0.0))
        y = number * HEIGHT + HEIGHT / 2 + 4
        parts += [
            f'<circle class="run" cx="{place(bleu):.1f}" cy="{y:.1f}" r="4"><title>{bleu:.2f}</title></circle>'
            for bleu in row.bleu
        ]
    return "".join(parts) + "</svg>"


def _line(row: Row, y: float, x: float) -> list[str]:
    name = html.escape(label(row.system))
    return [
        f'<text x="0" y="{y + 4:.1f}">{name}</text>',
        f'<line class="mean" x1="{x:.1f}" x2="{x:.1f}" y1="{y - 8:.1f}" y2="{y + 8:.1f}"/>',
    ]
