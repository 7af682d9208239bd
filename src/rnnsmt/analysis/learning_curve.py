"""Learning curves of networks: perplexity per word of the trained and of the held-out data by epochs."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rnnsmt.drawing import BLUE, GREY, ORANGE, canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HELD_OUT = ("held-out", "validation")

PERPLEXITY, LOG_P = "perplexity", "log p per word"


def points(rows: list[dict[str, Any]], kinds: tuple[str, ...]) -> list[tuple[float, float]]:
    """Epochs and perplexity of the rows that have one of the kind ``train``, ``held-out`` ..."""
    found = [(row.get("epoch"), perplexity(row, kinds)) for row in rows]
    return [(float(epoch), value) for epoch, value in found if epoch is not None and value is not None]


def is_kept(row: dict[str, Any], history: dict[str, Any]) -> bool:
    """Whether the parameters of this row are the trained network: an update of the RNN's, an epoch of the CSLM's."""
    names = [name for name in ("update", "epoch") if f"kept {name}" in history]
    return any(row.get(name) == history[f"kept {name}"] for name in names)


def perplexity(row: dict[str, Any], kinds: tuple[str, ...]) -> float | None:
    """The perplexity per word that a map holds as such, or as log probability."""
    for kind in kinds:
        if isinstance(value := row.get(f"{kind} {PERPLEXITY}"), (int, float)):
            return float(value)
        if isinstance(value := row.get(f"{kind} {LOG_P}"), (int, float)):
            return math.exp(min(-value, 700.0))
    return None


def plain_ticks(axes: Any) -> None:
    """Numbers as people write them on a logarithmic axis, a handful of them whatever the range."""
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0), numticks=30))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))


def draw_learning_curve(
    history: dict[str, Any],
    rows: list[dict[str, Any]],
    curves: Mapping[str, Sequence[tuple[float, float]]],
    title: str,
) -> "tuple[Figure, float | None]":
    """The picture, and the held-out perplexity of the trained network; curves: ``points`` by trained and held out."""
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
    axes.set_title(title, loc="left")
    plain_ticks(axes)
    axes.legend(frameon=True, framealpha=0.9, edgecolor="none")
    return figure, kept[1] if kept else None
