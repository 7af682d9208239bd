"""Draw the learning curve of a network: perplexity per word of the trained and of the held-out data by epochs.

Reads the history that `rnn train` or `cslm train` wrote.
"""

import math
from typing import Any

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
