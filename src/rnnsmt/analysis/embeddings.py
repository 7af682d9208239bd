"""Word and phrase representations of the RNN Encoder-Decoder in the plane: Figures 4 and 5 of the paper.

Barnes-Hut t-SNE (van der Maaten 2013) of the embeddings of source words, or of the vectors c of source phrases of four
or more words. The whole map is shown, and zooms on clusters found by HDBSCAN (Campello et al. 2013).
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.drawing import BLUE, INK, ORANGE, canvas, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from rnnsmt.rnn.model import RNNEncoderDecoder
    from rnnsmt.rnn.pairs import Pairs

LEAST_WORDS = 4
"""Minimum number of words of a phrase, as in the paper."""

PERPLEXITY = 30.0
"""Perplexity of t-SNE."""

ZOOMS = 4
"""Number of zooms."""

LABELLED = 60
"""Maximum number of points of a zoom, so that most can be labelled; larger if all clusters are larger."""

FEW = 10
"""Number of points below which no map is computed."""


class Vectors(NamedTuple):
    """Vectors with labels.

    Attributes:
        labels: labels of the points; words are in descending order of frequency.
        vectors: ``[n, d]``.
    """

    labels: list[str]
    vectors: NDArray[np.float32]


def word_vectors(model: "RNNEncoderDecoder", pairs: "Pairs", number: int) -> Vectors:
    """Return the embeddings of the ``number`` most frequent source words."""
    words = list(pairs.vocabularies[0].index)[:number]
    ids = [pairs.vocabularies[0].index[word] for word in words]
    vectors = model.encoder.embedding.detach().cpu().numpy()[ids]
    return Vectors(words, vectors.astype(np.float32))


def phrase_vectors(model: "RNNEncoderDecoder", pairs: "Pairs", number: int, seed: int) -> Vectors:
    """Return the vectors c of distinct source phrases of ``LEAST_WORDS`` words or more without UNK, drawn at random.

    The pairs of a source phrase follow each other in the table; the first stands for it, so that a phrase with many
    targets is not drawn more often.
    """
    import torch

    from rnnsmt.networks.vocabulary import UNK
    from rnnsmt.rnn.phrase_scores import encode_distinct

    lengths = np.diff(pairs.sides[0].offsets)
    long = np.flatnonzero(lengths > LEAST_WORDS)  # lengths include EOS
    rng = np.random.default_rng(seed)
    phrases: dict[bytes, NDArray[np.int32]] = {}
    for place in rng.permutation(long):
        ids = pairs.source(int(place))
        is_first = place == 0 or not np.array_equal(ids, pairs.source(int(place) - 1))
        if is_first and not (ids == UNK).any():
            phrases.setdefault(ids.tobytes(), ids)
        if len(phrases) == number:
            break
    if not phrases:
        return Vectors([], np.zeros((0, model.sizes.hidden), np.float32))
    chosen = list(phrases.values())
    words = np.concatenate(chosen).astype(np.int64)
    with torch.inference_mode():
        c, which = encode_distinct(model, words, np.array([len(ids) for ids in chosen]), torch.device("cpu"), 512)
    return Vectors([pairs.vocabularies[0].text(ids[:-1]) for ids in chosen], c.numpy()[which])


def plane(vectors: NDArray[np.float32], seed: int) -> NDArray[np.float64]:
    """Return the Barnes-Hut t-SNE of vectors, ``[n, 2]``; zeros if there are fewer than ``FEW``."""
    from sklearn.manifold import TSNE

    if len(vectors) < FEW:
        return np.zeros((len(vectors), 2))
    perplexity = min(PERPLEXITY, (len(vectors) - 1) / 3)
    found = TSNE(2, perplexity=perplexity, init="pca", random_state=seed, n_jobs=1).fit_transform(vectors)
    return np.asarray(found, np.float64)


def clusters(points: NDArray[np.float64], number: int = ZOOMS) -> list[NDArray[np.int64]]:
    """Return up to ``number`` clusters of a map, the most compact first, preferably of at most ``LABELLED`` points."""
    from sklearn.cluster import HDBSCAN

    if len(points) < FEW:
        return []
    least = max(5, len(points) // 400)
    found = HDBSCAN(min_cluster_size=least, cluster_selection_method="leaf", copy=True).fit(points)
    members = [np.flatnonzero(found.labels_ == label) for label in range(found.labels_.max() + 1)]
    small = [rows for rows in members if len(rows) <= LABELLED] or members
    spread = [float(points[rows].std(0).mean()) / np.sqrt(len(rows)) for rows in small]
    return [small[place] for place in np.argsort(spread, kind="stable")[:number]]


def draw_map(points: NDArray[np.float64], zooms: Sequence[NDArray[np.int64]], title: str) -> "Figure":
    """Draw the whole map with a frame and a letter for every zoom."""
    from matplotlib.patches import Rectangle

    figure, (axes,) = canvas(1, 1, 7.2, 6.4)
    axes.scatter(points[:, 0], points[:, 1], s=3, lw=0, color=BLUE, alpha=0.5, rasterized=True)
    for name, (low, high) in zip("ABCDEFGH", frames(points, zooms), strict=False):
        width, height = high - low
        axes.add_patch(Rectangle((low[0], low[1]), width, height, fill=False, edgecolor=ORANGE, lw=1))
        axes.annotate(name, (low[0], high[1]), color=ORANGE, weight="bold", va="bottom")
    axes.set(xticks=[], yticks=[])
    axes.grid(False)
    axes.set_title(title, loc="left")
    return figure


def draw_zooms(points: NDArray[np.float64], labels: Sequence[str], zooms: Sequence[NDArray[np.int64]]) -> "Figure":
    """Draw the zooms with labels that do not overlap; the first points have precedence."""
    rows = max(1, -(-len(zooms) // 2))
    figure, every = canvas(rows, 2, 10.5, 4.6 * rows)
    framed = frames(points, zooms)
    members = [np.flatnonzero(((points >= low) & (points <= high)).all(1)) for low, high in framed]
    for name, axes, (low, high), inside in zip("ABCDEFGH", every, framed, members, strict=False):
        axes.scatter(points[inside, 0], points[inside, 1], s=9, lw=0, color=BLUE)
        axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), xticks=[], yticks=[])
        axes.grid(False)
        axes.set_title(name, loc="left", color=ORANGE, weight="bold")
    for axes in every[len(zooms) :]:
        axes.set_axis_off()
    with styled():
        figure.draw_without_rendering()  # computes the layout, on which the sizes of the labels depend
        for axes, inside in zip(every, members, strict=False):
            _label(axes, points[inside], [labels[int(place)] for place in inside])
    return figure


def frames(points: NDArray[np.float64], zooms: Iterable[NDArray[np.int64]]) -> list[NDArray[np.float64]]:
    """Return the lower left and upper right corner of every zoom, ``[2, 2]``, with a margin."""
    found = []
    for rows in zooms:
        low, high = points[rows].min(0), points[rows].max(0)
        room = 0.15 * np.maximum(high - low, 1e-3 * np.ptp(points, 0).max())
        found.append(np.array([low - room, high + room]))
    return found


def _label(axes: "Axes", points: NDArray[np.float64], labels: Sequence[str]) -> None:
    """Write labels next to their points where there is space; the others are left out."""
    from matplotlib.transforms import Bbox

    frame = axes.get_window_extent()
    taken: list[Bbox] = []
    for point, label in zip(points, labels, strict=True):
        shown = label if len(label) <= 40 else f"{label[:39]}…"
        for x, y in ((1, 1), (-1, 1), (1, -1), (-1, -1)):
            text = axes.annotate(
                shown, point, (3 * x, 2 * y), textcoords="offset points", fontsize=7, color=INK, parse_math=False,
                ha="left" if x > 0 else "right", va="bottom" if y > 0 else "top",
            )  # fmt: skip
            box = text.get_window_extent()
            inside = frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1
            if inside and not any(Bbox.intersection(box, other) for other in taken):
                taken.append(box)
                break
            text.remove()
