"""Tuning curves of all systems: BLEU of the decoded development set by iteration, a line per run.

A ring marks the iteration whose weights were used.
"""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rnnsmt.base.drawing import BLUE, ORANGE, canvas
from rnnsmt.base.io import InputError, read_json
from rnnsmt.plan.systems import label

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = 4
"""Number of plots per row."""


def read_history(path: str) -> dict[str, Any]:
    """Read the history written by ``tuning mert``.

    Raises:
        InputError: the file has no iterations.
    """
    history = read_json(path)
    if not isinstance(history, dict) or not history.get("iterations"):
        raise InputError(f"{path}: contains no iterations; write it with `rnnsmt tuning mert`")
    return history


def draw_mert_curves(systems: Mapping[str, list[dict[str, Any]]]) -> "Figure":
    """Draw the histories of the runs by system, one plot per system with common axis limits."""
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
    return figure


def _draw(axes: Any, system: str, runs: list[dict[str, Any]]) -> None:
    """Draw the curves of one system."""
    for run in runs:
        bleu = {record["iteration"]: record["dev_bleu"] for record in run["iterations"]}
        axes.plot(list(bleu), list(bleu.values()), "-", lw=1.3, color=BLUE, alpha=0.65)
        best = run["best_iteration"]
        axes.plot(best, bleu[best], "o", ms=6, mfc="none", mec=ORANGE, mew=1.4)
    axes.set_title(label(system), loc="left")
    axes.xaxis.get_major_locator().set_params(integer=True)


def limits(axes: Any, bleu: list[float]) -> None:
    """Set the limits of the BLEU axis so that low values of the first iterations do not compress the curves.

    The lower limit is the lower quartile minus three times its distance from the maximum, or the minimum if that is
    higher.
    """
    top, ordered = max(bleu), sorted(bleu)
    quartile = ordered[len(ordered) // 4]
    low = max(ordered[0], quartile - 3 * max(top - quartile, 0.1))
    margin = 0.08 * max(top - low, 0.1)
    axes.set_ylim(low - margin, top + margin)
