"""Draw the tuning of all systems: BLEU of the decoded development set by iterations of MERT, a line a run.

Reads the histories that `tuning mert` wrote, as SYSTEM=FILE; the ring is the iteration whose weights were kept.
"""

import argparse
import math
from typing import Any

from rnnsmt.analysis.drawing import BLUE, ORANGE, add_output, canvas, check_output, save
from rnnsmt.io import InputError, read_json
from rnnsmt.systems import label

COLUMNS = 4
"""Plots side by side."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``rnnsmt analysis mert-curves``."""
    parser.add_argument("--history", nargs="+", required=True, metavar="SYSTEM=FILE", help="histories of runs (JSON)")
    add_output(parser)


def run(args: argparse.Namespace) -> dict[str, object]:
    """Draw the picture."""
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
    _limits(axes[0], [record["dev_bleu"] for runs in systems.values() for run in runs for record in run["iterations"]])
    figure.supxlabel("iteration")
    figure.supylabel("BLEU of the development set")
    save(figure, args.output)
    return {"systems": len(systems), "runs": len(args.history)}


def _history(path: str) -> dict[str, Any]:
    history = read_json(path)
    if not isinstance(history, dict) or not history.get("iterations"):
        raise InputError(f"{path}: no iterations; make it with `rnnsmt tuning mert`")
    return history


def _draw(axes: Any, system: str, runs: list[dict[str, Any]]) -> None:
    for run in runs:
        bleu = {record["iteration"]: record["dev_bleu"] for record in run["iterations"]}
        axes.plot(list(bleu), list(bleu.values()), "-", lw=1.3, color=BLUE, alpha=0.65)
        best = run["best_iteration"]
        axes.plot(best, bleu[best], "o", ms=6, mfc="none", mec=ORANGE, mew=1.4)
    axes.set_title(label(system), loc="left")
    axes.xaxis.get_major_locator().set_params(integer=True)


def _limits(axes: Any, bleu: list[float]) -> None:
    """From the third quartile down by thrice the distance to the top: the first iterations are often far below."""
    top, ordered = max(bleu), sorted(bleu)
    quartile = ordered[len(ordered) // 4]
    low = max(ordered[0], quartile - 3 * max(top - quartile, 0.1))
    margin = 0.08 * max(top - low, 0.1)
    axes.set_ylim(low - margin, top + margin)
