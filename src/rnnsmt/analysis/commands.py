"""The commands that draw what was learnt."""

import argparse
from typing import Any

from rnnsmt.io import InputError
from rnnsmt.options import positive


def learning_curve_options(parser: argparse.ArgumentParser) -> None:
    from rnnsmt.drawing import add_output

    parser.add_argument(
        "--history", nargs="+", required=True, metavar="FILE", help="histories of trainings with other seeds (JSON)"
    )
    parser.add_argument("--title", default="Learning curve", help="what stands above the picture")
    add_output(parser)


def learning_curve(args: argparse.Namespace) -> dict[str, object]:
    """Draw the learning curve of a network: perplexity per word of the trained and of the held-out data by epochs.

    Reads the histories that `rnn train` or `cslm train` wrote; a line for each.
    """
    from rnnsmt.analysis.learning_curve import LearningCurve, draw_learning_curves
    from rnnsmt.drawing import check_output, save

    check_output(args.output)
    curves = [LearningCurve.read(path) for path in args.history]
    save(draw_learning_curves(curves, args.title), args.output)
    kept = [curve.kept[1] for curve in curves if curve.kept is not None]
    figures: dict[str, object] = {"points": sum(len(curve.rows) for curve in curves)}
    return figures | ({"held-out perplexity": sum(kept) / len(kept)} if kept else {})


def mert_curves_options(parser: argparse.ArgumentParser) -> None:
    from rnnsmt.drawing import add_output

    parser.add_argument("--history", nargs="+", required=True, metavar="SYSTEM=FILE", help="histories of runs (JSON)")
    add_output(parser)


def mert_curves(args: argparse.Namespace) -> dict[str, object]:
    """Draw the tuning of all systems: BLEU of the decoded development set by iterations of MERT, a line a run.

    Reads the histories that `tuning mert` wrote, as SYSTEM=FILE; the ring is the best iteration.
    """
    from rnnsmt.analysis.mert_curves import draw_mert_curves, read_history
    from rnnsmt.drawing import check_output, save

    check_output(args.output)
    systems: dict[str, list[dict[str, Any]]] = {}
    for text in args.history:
        system, equals, path = text.partition("=")
        if not equals:
            raise InputError(f"--history {text}: write SYSTEM=FILE, for example rnn=run1/history.json")
        systems.setdefault(system, []).append(read_history(path))
    figure = draw_mert_curves(systems)
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
    from rnnsmt.drawing import check_output, save

    check_output(args.output)

    import numpy as np

    from rnnsmt.analysis.phrase_sample import draw_sample, draw_score_scatter

    pairs = draw_sample(args.phrase_table, args.scores, args.sample, args.seed)
    figure = draw_score_scatter(pairs)
    save(figure, args.output)
    figures: dict[str, object] = {"pairs": len(pairs.table)}
    if len(pairs.table) > 2:
        figures["correlation"] = float(np.corrcoef(pairs.table, pairs.network)[0, 1])
    return figures
