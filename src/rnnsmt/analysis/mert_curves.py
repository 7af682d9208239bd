"""Draw the tuning of all systems: BLEU of the decoded development set by iterations of MERT, a line a run.

Reads the histories that `tuning mert` wrote, as SYSTEM=FILE; the ring is the iteration whose weights were kept.
"""

from typing import Any

from rnnsmt.drawing import BLUE, ORANGE
from rnnsmt.io import InputError, read_json
from rnnsmt.systems import label

COLUMNS = 4
"""Plots side by side."""


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


def limits(axes: Any, bleu: list[float]) -> None:
    """From the third quartile down by thrice the distance to the top: the first iterations are often far below."""
    top, ordered = max(bleu), sorted(bleu)
    quartile = ordered[len(ordered) // 4]
    low = max(ordered[0], quartile - 3 * max(top - quartile, 0.1))
    margin = 0.08 * max(top - low, 0.1)
    axes.set_ylim(low - margin, top + margin)
