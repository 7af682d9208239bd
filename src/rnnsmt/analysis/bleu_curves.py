"""BLEU by length and by word frequency of the source sentences (Sutskever et al. 2014, Figure 3).

The sentences are sorted and split into groups of equal size. A point shows the BLEU of a group, averaged over the runs
of a system, at the mean of the sorting key.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.drawing import canvas
from rnnsmt.base.io import words_of
from rnnsmt.bleu.multi_bleu import bleu_of
from rnnsmt.plan.systems import label

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LENGTH, RANK = "source words", "mean frequency rank of the source words"

MARKERS = "osD^vPX*"
"""Markers of the systems."""


def mean_ranks(sentences: Iterable[str], text: Iterable[str]) -> NDArray[np.float64]:
    """Return the mean frequency rank of the words of every sentence; nan for an empty one.

    Args:
        sentences: tokenised sentences.
        text: tokenised text whose words are ranked: rank 1 is the most frequent word, ties are in alphabetical order.
            Other words get the next rank after the last.

    >>> mean_ranks(["a b", "b c d", ""], ["b a b", "c"]).tolist()
    [1.5, 2.6666666666666665, nan]
    """
    counts = Counter(word for line in text for word in words_of(line))
    order = sorted(counts, key=lambda word: (-counts[word], word))
    rank = {word: place for place, word in enumerate(order, 1)}
    found = [[rank.get(word, len(rank) + 1) for word in words_of(sentence)] for sentence in sentences]
    return np.array([np.mean(ranks) if ranks else np.nan for ranks in found])


def groups_by(values: NDArray[np.float64], number: int) -> list[NDArray[np.int64]]:
    """Return the indices of the sentences in ascending order of their values, in ``number`` groups of similar size.

    Sentences without a value (nan) are left out.
    """
    there = np.flatnonzero(~np.isnan(values))
    order = there[np.argsort(values[there], kind="stable")]
    return [group for group in np.array_split(order, number) if len(group)]


def curve(
    values: NDArray[np.float64], groups: Sequence[NDArray[np.int64]], runs: Sequence[NDArray[np.int64]]
) -> list[dict[str, Any]]:
    """Return the points of a system: for each group, the mean value, the number of sentences and BLEU of every run.

    Args:
        values: [S], value of each sentence.
        groups: indices of the sentences of each group.
        runs: statistics [S, 9] of every run.
    """
    return [
        {
            "mean": float(values[group].mean()),
            "sentences": len(group),
            "bleu": [bleu_of(run[group].sum(axis=0).tolist()).bleu for run in runs],
        }
        for group in groups
    ]


def draw_bleu_curves(curves: Mapping[str, Mapping[str, list[dict[str, Any]]]]) -> "Figure":
    """Draw one plot for every sorting key, with a line for every system."""
    figure, axes = canvas(1, len(curves), 0.6 + 4.4 * len(curves), 4.2)
    for place, (value, systems) in zip(axes, curves.items(), strict=True):
        for number, (system, points) in enumerate(systems.items()):
            bleu = [np.mean(point["bleu"]) for point in points]
            means = [point["mean"] for point in points]
            place.plot(means, bleu, marker=MARKERS[number % len(MARKERS)], ms=4.5, lw=1.3, label=label(system))
        place.set_xlabel(value)
        place.set_ylabel("BLEU")
        place.set_ylim(bottom=0)
    axes[-1].legend(fontsize=8, loc="best")
    return figure
