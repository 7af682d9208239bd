"""Two-dimensional plots of learnt vectors: words and phrases of the RNN Encoder-Decoder, sentences of an LSTM.

Words and phrases (Figures 4 and 5 of the paper): Barnes-Hut t-SNE (van der Maaten 2013) of the embeddings of source
words, or of the vectors c of source phrases of four or more words. The whole map is shown, and zooms on clusters found
by HDBSCAN (Campello et al. 2013).

Sentences (Sutskever et al. 2014, Figure 2): the vector of a sentence is the state h of the encoder's last layer after
the sentence and its EOS, the initial state of the decoder. The plot of each group of sentences shows its first two
principal components.
"""

from collections.abc import Iterable, Sequence
from html import unescape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.errors import InputError
from rnnsmt.base.reading import words_of
from rnnsmt.base.rendering import BLUE, INK, ORANGE, canvas, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from rnnsmt.rnn.model import RNNEncoderDecoder
    from rnnsmt.rnn.pairs import Pairs
    from rnnsmt.seq2seq.model import TrainedSeq2Seq

LEAST_WORDS = 4
"""Minimum number of words of a phrase, as in the paper."""

PERPLEXITY = 30.0
"""Perplexity of t-SNE."""

ZOOMS = 4
"""Number of zooms."""

LABELLED = 60
"""Maximum number of points of a zoom, so that most can be labelled; ignored if all clusters are larger."""

CLUSTER_SIZES = (15, 10, 5)
"""Minimum numbers of points of a zoom: the first one that yields enough clusters is used, otherwise the last."""

FEW = 10
"""Number of points below which no map is computed."""

LEAST_SENTENCES = 3
"""Minimum number of sentences in a group: two sentences span only a line."""

WIDTH, LETTER = 8.2, 0.062
"""Width of a plot and mean width of a letter, in inches."""

Floats = NDArray[np.float64]

# Maps of words and phrases


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

    The pairs of a source phrase are consecutive in the table, and only the first of them can be drawn, so that a
    phrase with many targets is not drawn more often.
    """
    import torch

    from rnnsmt.networks.data import UNK
    from rnnsmt.rnn.phrase_scores import encode_distinct

    lengths = pairs.sides[0].lengths(np.arange(len(pairs)))
    pairs.release()
    long = np.flatnonzero(lengths > LEAST_WORDS)  # lengths include EOS
    rng = np.random.default_rng(seed)
    phrases: dict[bytes, NDArray[np.int32]] = {}
    for index in rng.permutation(long):
        ids = pairs.source(int(index))
        is_first = index == 0 or not np.array_equal(ids, pairs.source(int(index) - 1))
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
    points = TSNE(2, perplexity=perplexity, init="pca", random_state=seed, n_jobs=1).fit_transform(vectors)
    return np.asarray(points, np.float64)


def clusters(points: NDArray[np.float64], number: int = ZOOMS) -> list[NDArray[np.int64]]:
    """Return up to ``number`` clusters of a map, most compact first; preferably of at most ``LABELLED`` points."""
    if len(points) < FEW:
        return []
    members: list[NDArray[np.int64]] = []
    for least in CLUSTER_SIZES:
        members = _leaves(points, max(least, len(points) // 400))
        if len(members) >= number:
            break
    small = [rows for rows in members if len(rows) <= LABELLED] or members
    spread = [float(points[rows].std(0).mean()) / np.sqrt(len(rows)) for rows in small]
    return [small[index] for index in np.argsort(spread, kind="stable")[:number]]


def _leaves(points: NDArray[np.float64], least: int) -> list[NDArray[np.int64]]:
    """Return the leaves of HDBSCAN's cluster hierarchy with at least this number of points."""
    from sklearn.cluster import HDBSCAN

    if least > len(points):
        return []
    labels = HDBSCAN(min_cluster_size=least, cluster_selection_method="leaf", copy=True).fit(points).labels_
    return [np.flatnonzero(labels == label) for label in range(labels.max() + 1)]


class EmbeddingMap(NamedTuple):
    """Map of words or phrases.

    Attributes:
        labels: labels of the points, as in ``Vectors``.
        points: ``[n, 2]``.
        clusters: indices of the points of each zoom.
        dimensions: number of dimensions of the vectors.
    """

    labels: list[str]
    points: NDArray[np.float64]
    clusters: list[NDArray[np.int64]]
    dimensions: int

    @property
    def figures(self) -> dict[str, object]:
        """Return the numbers of points, dimensions and clusters."""
        return {"points": len(self.points), "dimensions": self.dimensions, "clusters": len(self.clusters)}

    def content(self) -> dict[str, object]:
        """Return the map for JSON; coordinates have three decimals."""
        return {
            "labels": self.labels,
            "points": [[round(float(x), 3), round(float(y), 3)] for x, y in self.points],
            "clusters": [rows.tolist() for rows in self.clusters],
        }


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
    """Draw the zooms; a label that would overlap an earlier one is omitted."""
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
            _label(axes, points[inside], [labels[int(index)] for index in inside])
    return figure


def frames(points: NDArray[np.float64], zooms: Iterable[NDArray[np.int64]]) -> list[NDArray[np.float64]]:
    """Return the frame of every zoom, with a margin: ``[2, 2]``, its lower left and upper right corner."""
    corners = []
    for rows in zooms:
        low, high = points[rows].min(0), points[rows].max(0)
        room = 0.15 * np.maximum(high - low, 1e-3 * np.ptp(points, 0).max())
        corners.append(np.array([low - room, high + room]))
    return corners


def _label(axes: "Axes", points: NDArray[np.float64], labels: Sequence[str]) -> None:
    """Write labels next to their points where there is space; the others are omitted."""
    from matplotlib.transforms import Bbox

    frame = axes.get_window_extent()
    taken: list[Bbox] = []
    for point, label in zip(points, labels, strict=True):
        text = unescape(label)  # Moses' entities, such as &apos;
        shown = text if len(text) <= 40 else f"{text[:39]}…"
        for x, y in ((1, 1), (-1, 1), (1, -1), (-1, -1)):
            drawn = axes.annotate(
                shown, point, (3 * x, 2 * y), textcoords="offset points", fontsize=7, color=INK, parse_math=False,
                ha="left" if x > 0 else "right", va="bottom" if y > 0 else "top",
            )  # fmt: skip
            box = drawn.get_window_extent()
            inside = frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1
            if inside and not any(Bbox.intersection(box, other) for other in taken):
                taken.append(box)
                break
            drawn.remove()


# Sentences


class SentenceVectors(NamedTuple):
    """Groups of sentences with two-dimensional points.

    Attributes:
        groups: a map for each group: ``sentences``; their ``points`` (``[n, 2]``); ``variance``, the share of the
            variance for each of the two components; and ``unknown``, the words that are not in the vocabulary.
    """

    groups: list[dict[str, Any]]

    @property
    def figures(self) -> dict[str, object]:
        """Return the numbers of groups and sentences."""
        return {"groups": len(self.groups), "sentences": sum(len(group["sentences"]) for group in self.groups)}


def read_groups(lines: Iterable[str], path: str) -> list[list[str]]:
    """Read groups of sentences, separated by empty lines.

    Raises:
        InputError: there are no sentences, or a group has fewer than three sentences or the same sentence twice.
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
        raise InputError(f"{path}: contains no sentences; it must contain groups of sentences separated by empty lines")
    for number, group in enumerate(groups, 1):
        if len(set(group)) < len(group):
            raise InputError(f"{path}: group {number} contains a duplicate sentence")
        if len(group) < LEAST_SENTENCES:
            raise InputError(
                f"{path}: group {number} has fewer than {LEAST_SENTENCES} sentences, which are too few for a "
                "two-dimensional projection"
            )
    return groups


def vectors_of(trained: "TrainedSeq2Seq", sentences: Sequence[Sequence[str]]) -> Floats:
    """Return the state h ``[n, H]`` of the encoder's last layer after each tokenised sentence."""
    import torch

    from rnnsmt.seq2seq.sentences import as_read, padded

    ids = [as_read(trained.source.ids(words, eos=True), trained.source_order) for words in sentences]
    with torch.inference_mode():
        return trained.model.encode(torch.from_numpy(padded(ids))).h[-1].double().numpy()


def principal_components(vectors: Floats) -> tuple[Floats, Floats]:
    """Return the first two principal components ``[n, 2]`` of vectors ``[n, H]``, n > 1, and their shares of variance.

    The sign of a component is chosen so that its value of largest magnitude is positive.
    """
    centred = vectors - vectors.mean(axis=0)
    left, values, _ = np.linalg.svd(centred, full_matrices=False)
    points = left[:, :2] * values[:2]
    # the tiny constant makes the sign of 0 +1 instead of 0
    points *= np.sign(points[np.abs(points).argmax(axis=0), [0, 1]] + 1e-300)
    variances = values**2
    return points, variances[:2] / max(variances.sum(), 1e-300)


def draw_sentence_vectors(groups: Sequence[dict[str, Any]]) -> "Figure":
    """Draw one plot for every group, with its sentences next to their points."""
    figure, axes = canvas(len(groups), 1, 9.0, 0.4 + 4.0 * len(groups))
    for axis, group in zip(axes, groups, strict=True):
        points = np.array(group["points"])
        axis.plot(points[:, 0], points[:, 1], "o", ms=5, color=BLUE)
        shares = [f"{100 * share:.0f} %" for share in group["variance"]]
        axis.set_xlabel(f"first component, {shares[0]} of the variance")
        axis.set_ylabel(f"second component, {shares[1]}")
        _label_sentences(axis, points, group["sentences"])
    return figure


def _label_sentences(axes: "Axes", points: Floats, sentences: Sequence[str]) -> None:
    """Write sentences on the side of their points that is nearer to the edge, shifted up to avoid overlaps."""
    x, y = points.T
    on_the_left = x < (x.min() + x.max()) / 2
    widths = np.array([LETTER * len(unescape(sentence)) + 0.1 for sentence in sentences]) / WIDTH
    low, high = x.min(), x.max()
    for _ in range(9):  # fixed-point iteration: a wider axis makes the sentences longer in units of x
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
            axes.text(
                x[i] + aside * (high - low),
                height,
                unescape(sentences[i]),
                fontsize=8,
                color=INK,
                va="center",
                ha=aligned,
            )
