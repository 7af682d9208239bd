"""Draw the network's score of phrase pairs against log p(target | source) of the phrase table: Figure 3 of the paper.

A random sample of the table's lines; the third of Moses' scores is the direct phrase probability. Colour: how often the
pair was extracted, where the table has counts.
"""

import argparse

from rnnsmt.analysis.drawing import add_output, canvas, check_output, save
from rnnsmt.common_options import positive


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``rnnsmt analysis score-scatter``."""
    add = parser.add_argument
    add("--phrase-table", required=True, metavar="FILE")
    add("--scores", nargs="+", required=True, metavar="FILE", help="the network's scores of its lines, in parts (.npy)")
    add("--sample", type=positive, default=20_000, metavar="N", help="at most so many pairs")
    add("--seed", type=int, default=1)
    add_output(parser)


def run(args: argparse.Namespace) -> dict[str, object]:
    """Draw the picture; the figures are the correlations of the sample."""
    check_output(args.output)

    import numpy as np
    from matplotlib.colors import LogNorm

    from rnnsmt.analysis.phrase_sample import draw_sample

    pairs = draw_sample(args.phrase_table, args.scores, args.sample, args.seed)
    figure, (axes,) = canvas(1, 1, 6.4, 5.6)
    order = np.argsort(pairs.counts, kind="stable")
    most = max(float(pairs.counts.max()), 2.0)
    dots = axes.scatter(
        pairs.table[order], pairs.network[order], c=pairs.counts[order], norm=LogNorm(1, most), cmap="viridis_r",
        s=5, lw=0, alpha=0.6, rasterized=True,
    )  # fmt: skip
    low = float(min(pairs.table.min(), np.quantile(pairs.network, 0.001)))
    axes.plot([low, 0], [low, 0], ls=":", lw=1.2, color="#59626b")
    axes.set_xlim(float(pairs.table.min()) * 1.03, 0.3)
    axes.set_ylim(low * 1.03, 0.5)
    axes.set(xlabel="log p(f|e) of the phrase table", ylabel="log p(f|e) of the RNN Encoder–Decoder")
    axes.set_title(f"{len(order):,} of {pairs.lines:,} phrase pairs", loc="left")
    if pairs.counts.max() > 1:
        solids = figure.colorbar(dots, ax=axes, label="occurrences of the pair").solids
        if solids is not None:
            solids.set_alpha(1)
    save(figure, args.output)
    figures: dict[str, object] = {"pairs": len(order)}
    if len(order) > 2:
        figures["correlation"] = float(np.corrcoef(pairs.table, pairs.network)[0, 1])
    return figures
