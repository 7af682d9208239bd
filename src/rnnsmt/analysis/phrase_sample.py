"""Random sample of phrase pairs with the scores of both models, and its figure (Figure 3 of the paper)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.drawing import canvas
from rnnsmt.base.io import InputError, read_line_blocks
from rnnsmt.phrases.augmentation import ScoreColumn
from rnnsmt.phrases.table import parse_phrase_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure

DIRECT = 2
"""Index of the direct phrase probability among Moses' scores."""


class PhraseSample(NamedTuple):
    """Sample of K phrase pairs.

    Attributes:
        table, network: natural logarithms [K] of p(target | source).
        counts: counts [K] of the pairs, 1 if not known.
        lines: number of lines of the whole table.
    """

    table: NDArray[np.float64]
    network: NDArray[np.float64]
    counts: NDArray[np.float64]
    lines: int


def draw_sample(table: str, scores: Sequence[str], size: int, seed: int) -> PhraseSample:
    """Draw up to ``size`` lines uniformly without replacement.

    Args:
        table: phrase table.
        scores: network scores of its lines, in parts.
        size: number of lines.
        seed: random seed.

    Raises:
        InputError: as ``ScoreColumn`` and ``parse_phrase_line``; the number of scores differs from that of the lines;
            or a line has fewer than three scores.
    """
    column = ScoreColumn(scores)
    total = len(column)
    if not total:
        raise InputError(f"{column.name}: contains no scores; score the phrase table again")
    rng = np.random.default_rng(seed)
    chosen = np.sort(rng.choice(total, min(size, total), replace=False))
    found: list[tuple[float, float]] = []
    begin = 0
    for block in read_line_blocks(table):
        lines = block.split(b"\n")[:-1]
        inside = chosen[np.searchsorted(chosen, begin) : np.searchsorted(chosen, begin + len(lines))]
        found += [_direct(lines[k - begin], table, int(k) + 1) for k in inside]
        begin += len(lines)
    if begin != total:
        raise InputError(
            f"{column.name}: {total} scores, but {table} has {begin} lines; run the scoring for this table"
        )
    probabilities, counts = np.array(found).T
    logs = np.log(np.maximum(probabilities, np.exp(-100.0)))  # the table may contain 0
    return PhraseSample(logs, np.log(column.probabilities(chosen)), np.maximum(counts, 1.0), total)


def draw_score_scatter(pairs: PhraseSample) -> "Figure":
    """Draw a scatter plot of the scores of both models, and the density of the points.

    The colour of a point is the count of the pair. The density plot shows the number of pairs where points overlap.
    """
    from matplotlib.colors import LogNorm

    figure, (scatter, density) = canvas(1, 2, 11.6, 5.2, share=True)
    # frequent pairs are drawn last, on top
    order = np.argsort(pairs.counts, kind="stable")
    most = max(float(pairs.counts.max()), 2.0)
    dots = scatter.scatter(
        pairs.table[order], pairs.network[order], c=pairs.counts[order], norm=LogNorm(1, most), cmap="viridis_r",
        s=5, lw=0, alpha=0.6, rasterized=True,
    )  # fmt: skip
    low = float(min(pairs.table.min(), np.quantile(pairs.network, 0.001)))
    left = float(pairs.table.min()) * 1.03
    cells = density.hexbin(
        pairs.table, pairs.network, gridsize=50, extent=(left, 0.3, low * 1.03, 0.5), bins="log", mincnt=1,
        cmap="viridis_r", lw=0, rasterized=True,
    )  # fmt: skip
    for axes in (scatter, density):
        axes.plot([low, 0], [low, 0], ls=":", lw=1.2, color="#59626b")
        axes.set_xlim(left, 0.3)
        axes.set_ylim(low * 1.03, 0.5)
        axes.set_xlabel("log p(target | source) of the phrase table")
    scatter.set_ylabel("log p(target | source) of the RNN Encoder–Decoder")
    scatter.set_title(f"{len(order):,} of {pairs.lines:,} phrase pairs", loc="left")
    density.set_title("How many lie where", loc="left")
    keys: list[tuple[ScalarMappable, Axes, str]] = [(cells, density, "pairs")]
    if pairs.counts.max() > 1:
        keys.append((dots, scatter, "occurrences of the pair"))
    for drawn, axes, label in keys:
        solids = figure.colorbar(drawn, ax=axes, label=label).solids
        if solids is not None:
            solids.set_alpha(1)
    return figure


def _direct(line: bytes, table: str, number: int) -> tuple[float, float]:
    """Return direct probability and count of a line."""
    entry = parse_phrase_line(line, table, number)
    if len(entry.scores) <= DIRECT:
        raise InputError(f"{table}, line {number}: {len(entry.scores)} score(s), the direct probability is the third")
    return entry.scores[DIRECT], entry.counts[2] if len(entry.counts) > 2 else 1.0
