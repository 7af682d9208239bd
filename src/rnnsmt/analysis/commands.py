"""The commands that draw what was learnt."""

import argparse
import math
from typing import Any

from rnnsmt.io import InputError, read_json
from rnnsmt.options import positive


def learning_curve_options(parser: argparse.ArgumentParser) -> None:
    from rnnsmt.drawing import add_output

    parser.add_argument("--history", required=True, metavar="FILE", help="history of a training (JSON)")
    parser.add_argument("--title", default="Learning curve", help="what stands above the picture")
    add_output(parser)


def learning_curve(args: argparse.Namespace) -> dict[str, object]:
    """Draw the learning curve of a network: perplexity per word of the trained and of the held-out data by epochs.

    Reads the history that `rnn train` or `cslm train` wrote.
    """
    from rnnsmt.analysis.learning_curve import HELD_OUT, is_kept, perplexity, plain_ticks, points
    from rnnsmt.drawing import BLUE, GREY, ORANGE, canvas, check_output, save

    check_output(args.output)
    history = read_json(args.history)
    rows = history.get("curve") if isinstance(history, dict) else None
    if not isinstance(rows, list) or not rows:
        raise InputError(f"{args.history}: no learning curve; make it with `rnnsmt rnn train` or `rnnsmt cslm train`")
    curves = {name: points(rows, kinds) for name, kinds in (("trained", ("train",)), ("held out", HELD_OUT))}
    if not any(curves.values()):
        raise InputError(f"{args.history}: the curve has neither perplexities nor log probabilities per word")
    figure, (axes,) = canvas(1, 1, 6.4, 4.0)
    for (name, found), colour in zip(curves.items(), (GREY, BLUE), strict=True):
        if found:
            axes.plot(*zip(*found, strict=True), "o-", ms=3.5, lw=1.6, color=colour, label=name)
    unigram = perplexity(history, ("unigram",))
    if unigram is not None:
        axes.axhline(unigram, ls=":", lw=1.2, color=GREY, label="unigrams, held out")
    kept = next(iter(points([row for row in rows if is_kept(row, history)], HELD_OUT)), None)
    if kept is not None:
        axes.plot(*kept, "o", ms=8, mfc="none", mec=ORANGE, mew=1.6, label=f"kept: {kept[1]:.4g}")
    axes.set_yscale("log")
    axes.set(xlabel="epochs", ylabel="perplexity per word")
    axes.set_title(args.title, loc="left")
    plain_ticks(axes)
    axes.legend(frameon=True, framealpha=0.9, edgecolor="none")
    save(figure, args.output)
    return {"points": len(rows)} | ({"held-out perplexity": kept[1]} if kept else {})


def mert_curves_options(parser: argparse.ArgumentParser) -> None:
    from rnnsmt.drawing import add_output

    parser.add_argument("--history", nargs="+", required=True, metavar="SYSTEM=FILE", help="histories of runs (JSON)")
    add_output(parser)


def mert_curves(args: argparse.Namespace) -> dict[str, object]:
    """Draw the tuning of all systems: BLEU of the decoded development set by iterations of MERT, a line a run.

    Reads the histories that `tuning mert` wrote, as SYSTEM=FILE; the ring is the iteration whose weights were kept.
    """
    from rnnsmt.analysis.mert_curves import COLUMNS, _draw, _history, limits
    from rnnsmt.drawing import canvas, check_output, save

    check_output(args.output)
    systems: dict[str, list[dict[str, Any]]] = {}
    for text in args.history:
        system, equals, path = text.partition("=")
        if not equals:
            raise InputError(f"--history {text}: write SYSTEM=FILE, for example rnn=run1/history.json")
        systems.setdefault(system, []).append(_history(path))
    columns = min(COLUMNS, len(systems))
    rows = math.ceil(len(systems) / columns)
    figure, axes = canvas(rows, columns, 1.2 + 2.5 * columns, 0.8 + 2.3 * rows, share=True)
    for place, (system, runs) in zip(axes, systems.items(), strict=False):
        _draw(place, system, runs)
    for place in axes[len(systems) :]:
        place.set_axis_off()
    limits(axes[0], [record["dev_bleu"] for runs in systems.values() for run in runs for record in run["iterations"]])
    figure.supxlabel("iteration")
    figure.supylabel("BLEU of the development set")
    save(figure, args.output)
    return {"systems": len(systems), "runs": len(args.history)}


def score_scatter_options(parser: argparse.ArgumentParser) -> None:
    from rnnsmt.drawing import add_output

    add = parser.add_argument
    add("--phrase-table", required=True, metavar="FILE")
    add("--scores", nargs="+", required=True, metavar="FILE", help="the network's scores of its lines, in parts (.npy)")
    add("--sample", type=positive, default=20_000, metavar="N", help="at most so many pairs")
    add("--seed", type=int, default=1)
    add_output(parser)


def score_scatter(args: argparse.Namespace) -> dict[str, object]:
    """Draw the network's score of phrase pairs against log p(target | source) of the phrase table: Figure 3 of the
    paper.

    A random sample of the table's lines; the third of Moses' scores is the direct phrase probability. Colour: how often
    the pair was extracted, where the table has counts.
    """
    from rnnsmt.drawing import canvas, check_output, save

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
