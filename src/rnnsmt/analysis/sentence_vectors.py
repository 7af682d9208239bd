"""Sentence representations of an LSTM encoder-decoder in the plane (Sutskever et al. 2014, Figure 2).

The vector of a sentence is the state h of the encoder's last layer after the sentence and its EOS, the initial state of
the decoder. Each group of sentences has its own principal component analysis, of which the first two components are
shown.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.drawing import BLUE, INK, canvas
from rnnsmt.base.io import InputError, words_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from rnnsmt.seq2seq.model import TrainedSeq2Seq

LEAST = 3
"""Minimum number of sentences in a group: two sentences span only a line."""

WIDTH, LETTER = 8.2, 0.062
"""Width of a plot and mean width of a letter, in inches."""

Floats = NDArray[np.float64]


def read_groups(lines: Iterable[str], path: str) -> list[list[str]]:
    """Read groups of sentences, separated by empty lines.

    Raises:
        InputError: there is no group, a group has fewer than three sentences, or a sentence occurs twice in a group.
    """
    groups: list[list[str]] = [[]]
    for line in lines:
        sentence = " ".join(words_of(line))
        if sentence:
            groups[-1].append(sentence)
        elif groups[-1]:
            groups.append([])
    groups = [group for group in groups if group]
    if not groups:
        raise InputError(f"{path}: contains no sentence; write groups of sentences separated by empty lines")
    for number, group in enumerate(groups, 1):
        if len(set(group)) < len(group):
            raise InputError(f"{path}: group {number} has a sentence twice")
        if len(group) < LEAST:
            raise InputError(f"{path}: group {number} has fewer than {LEAST} sentences, too few for two dimensions")
    return groups


def vectors_of(trained: "TrainedSeq2Seq", sentences: Sequence[Sequence[str]]) -> Floats:
    """Return h of the encoder's last layer after each tokenised sentence: [n, H]."""
    import torch

    from rnnsmt.seq2seq.sentences import as_read, padded

    ids = [as_read(trained.source.ids(words, eos=True), trained.source_order) for words in sentences]
    with torch.inference_mode():
        return trained.model.encode(torch.from_numpy(padded(ids))).h[-1].double().numpy()


def principal_components(vectors: Floats) -> tuple[Floats, Floats]:
    """Return the first two principal components [n, 2] of vectors [n, H] and their shares of the variance; n > 1.

    The sign of a component is chosen so that its value of largest magnitude is positive.
    """
    centred = vectors - vectors.mean(axis=0)
    left, values, _ = np.linalg.svd(centred, full_matrices=False)
    points = left[:, :2] * values[:2]
    # the tiny constant makes the sign of 0 positive instead of 0
    points *= np.sign(points[np.abs(points).argmax(axis=0), [0, 1]] + 1e-300)
    variances = values**2
    return points, variances[:2] / max(variances.sum(), 1e-300)


def draw_sentence_vectors(groups: Sequence[dict[str, Any]]) -> "Figure":
    """Draw one plot for every group, with its sentences next to their points."""
    figure, axes = canvas(len(groups), 1, 9.0, 0.4 + 4.0 * len(groups))
    for place, group in zip(axes, groups, strict=True):
        points = np.array(group["points"])
        place.plot(points[:, 0], points[:, 1], "o", ms=5, color=BLUE)
        shares = [f"{100 * share:.0f} %" for share in group["variance"]]
        place.set_xlabel(f"first component, {shares[0]} of the variance")
        place.set_ylabel(f"second component, {shares[1]}")
        _label(place, points, group["sentences"])
    return figure


def _label(axes: "Axes", points: Floats, sentences: Sequence[str]) -> None:
    """Write sentences on the side of their points that is nearer to the edge, shifted up to avoid overlaps."""
    x, y = points.T
    on_the_left = x < (x.min() + x.max()) / 2
    widths = np.array([LETTER * len(sentence) + 0.1 for sentence in sentences]) / WIDTH
    low, high = x.min(), x.max()
    for _ in range(9):  # fixed point: a wider axis makes the sentences longer in units of x
        size = max(high - low, 1e-9)
        low = min(np.where(on_the_left, x - widths * size, x))
        high = max(np.where(on_the_left, x, x + widths * size))
    axes.set_xlim(low - 0.02 * (high - low), high + 0.02 * (high - low))
    span = max(y.max() - y.min(), 1e-9)
    axes.set_ylim(y.min() - 0.1 * span, y.max() + 0.1 * span)
    for side in (on_the_left, ~on_the_left):
        height = -np.inf
        for i in sorted(np.flatnonzero(side).tolist(), key=lambda i: float(y[i])):
            height = max(y[i], height + 0.06 * span)
            aside, aligned = (-0.01, "right") if on_the_left[i] else (0.01, "left")
            axes.text(x[i] + aside * (high - low), height, sentences[i], fontsize=8, color=INK, va="center", ha=aligned)
