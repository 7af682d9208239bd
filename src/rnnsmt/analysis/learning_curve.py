"""Learning curves of networks: perplexity per word of training and held-out data by epoch."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rnnsmt.base.drawing import BLUE, GREY, ORANGE, canvas
from rnnsmt.base.io import InputError, read_json

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HELD_OUT = ("held-out", "validation")
"""Names of the held-out data in histories."""

PERPLEXITY, LOG_P = "perplexity", "log p per word"


def points(rows: list[dict[str, Any]], kinds: tuple[str, ...]) -> list[tuple[float, float]]:
    """Return epoch and perplexity of the rows that have a value for one of the kinds (``train``, ``held-out``)."""
    found = [(row.get("epoch"), perplexity(row, kinds)) for row in rows]
    return [(float(epoch), value) for epoch, value in found if epoch is not None and value is not None]


def is_kept(row: dict[str, Any], history: dict[str, Any]) -> bool:
    """Return whether the parameters at this row are those of the trained network.

    Histories of the RNN give the update of these parameters, those of the CSLM the epoch.
    """
    names = [name for name in ("update", "epoch") if f"kept {name}" in history]
    return any(row.get(name) == history[f"kept {name}"] for name in names)


def perplexity(row: dict[str, Any], kinds: tuple[str, ...]) -> float | None:
    """Return the perplexity per word of a row, which may also be given as log probability; None if there is none."""
    for kind in kinds:
        if isinstance(value := row.get(f"{kind} {PERPLEXITY}"), (int, float)):
            return float(value)
        if isinstance(value := row.get(f"{kind} {LOG_P}"), (int, float)):
            return math.exp(min(-value, 700.0))
    return None


def plain_ticks(axes: Any) -> None:
    """Label a logarithmic axis with plain numbers, a few of them for any range."""
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0), numticks=30))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))


Points = list[tuple[float, float]]
"""Epochs and perplexities."""


@dataclass(frozen=True)
class LearningCurve:
    """History of a training: rows, perplexities of training and held-out data, and the point that was kept."""

    rows: list[dict[str, Any]]
    trained: Points
    held_out: Points
    kept: tuple[float, float] | None
    unigram: float | None

    @classmethod
    def read(cls, path: str) -> "LearningCurve":
        """Read a history written by ``rnn train`` or ``cslm train``.

        Raises:
            InputError: the file is not a training history.
        """
        history = read_json(path)
        rows = history.get("curve") if isinstance(history, dict) else None
        if not isinstance(rows, list) or not rows:
            raise InputError(
                f"{path}: contains no learning curve; write it with `rnnsmt rnn train` or `rnnsmt cslm train`"
            )
        trained, held_out = points(rows, ("train",)), points(rows, HELD_OUT)
        if not trained and not held_out:
            raise InputError(f"{path}: the curve has neither perplexities nor log probabilities per word")
        kept = next(iter(points([row for row in rows if is_kept(row, history)], HELD_OUT)), None)
        return cls(rows, trained, held_out, kept, perplexity(history, ("unigram",)))


def draw_learning_curves(curves: Sequence[LearningCurve], title: str) -> "Figure":
    """Draw one line per training, with a legend for the first."""
    figure, (axes,) = canvas(1, 1, 6.4, 4.0)
    for number, curve in enumerate(curves):
        for name, found, colour in (("trained", curve.trained, GREY), ("held out", curve.held_out, BLUE)):
            if found:
                label = None if number else name
                axes.plot(*zip(*found, strict=True), "o-", ms=3.5, lw=1.6, color=colour, label=label)
        if curve.unigram is not None and not number:
            axes.axhline(curve.unigram, ls=":", lw=1.2, color=GREY, label="unigrams, held out")
    kept = [curve.kept for curve in curves if curve.kept is not None]
    if kept:
        values = ", ".join(f"{value:.4g}" for _, value in kept)
        axes.plot(
            *zip(*kept, strict=True), "o", ls="none", ms=8, mfc="none", mec=ORANGE, mew=1.6, label=f"kept: {values}"
        )
    axes.set_yscale("log")
    axes.set(xlabel="epochs", ylabel="perplexity per word")
    axes.set_title(title, loc="left")
    plain_ticks(axes)
    axes.legend(frameon=True, framealpha=0.9, edgecolor="none")
    return figure
