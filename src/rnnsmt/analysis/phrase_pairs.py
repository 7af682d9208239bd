"""Phrase pairs with their scores in the phrase table and by the network.

This module draws the scatter plot of a sample (Figure 3 of the paper) and selects examples of frequent and rare long
source phrases (Tables 2 and 3 of the paper).
"""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.errors import InputError
from rnnsmt.base.kernels.decimals import six_digits
from rnnsmt.base.paths import StrPath
from rnnsmt.base.rendering import canvas
from rnnsmt.phrases.column_files import COUNT_NAMES, SCORE_NAMES, ColumnScores, TableScores, arrays_of
from rnnsmt.phrases.pairs import PhrasePairs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure

    from rnnsmt.networks.data import Vocabulary
    from rnnsmt.rnn.model import RNNEncoderDecoder

DIRECT = SCORE_NAMES[2]
"""Name of the direct phrase probability among the scores of a table."""

MORE_WORDS_THAN = 3
"""A phrase is long if it has more words than this, as in the paper."""

LONGEST = 30
"""Maximum number of words of a sampled target."""

FREQUENT, RARE = 0.99, 0.1
"""Quantiles of the counts: frequent phrases are in the top 1 %, rare phrases in the bottom 10 %."""

# Reading


class ScoredPairs:
    """Phrase pairs with their scores in the phrase table and by a network.

    Attributes:
        pairs: the phrase pairs.
        network: their scores by the network.
    """

    def __init__(self, pairs: StrPath, table: StrPath, network: Sequence[StrPath]) -> None:
        """Map the files into memory.

        Args:
            pairs: phrase pairs, written by `phrases extract` or `phrases import-table`.
            table: output of `phrases score`, or scores of an imported table.
            network: output of `phrases column`, in consecutive shards.

        Raises:
            InputError: a file is malformed or has scores of other pairs, or the table lacks p(target|source) or counts.
        """
        self.pairs = PhrasePairs(pairs)
        self.network = ColumnScores(network, self.pairs)
        scores = TableScores(table, self.pairs, "phrases score")
        needed = "the table must have Moses' four scores, and counts"
        self._direct, self._count, self._source_count = arrays_of(
            scores, (DIRECT, COUNT_NAMES[2], COUNT_NAMES[1]), needed
        )

    def direct(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return p(target | source) of pairs in the phrase table."""
        return six_digits(self._direct[rows])

    def counts(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how often pairs were extracted; 0 if it is not known."""
        return self._count[rows].astype(np.float64)

    def source_counts(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how often the source phrases of pairs were extracted; 0 if it is not known."""
        return self._source_count[rows].astype(np.float64)


# Sample with scores of both models


class PhraseSample(NamedTuple):
    """Sample of K phrase pairs.

    Attributes:
        table, network: ``[K]``, log p(target | source) (natural logarithm) in the table and by the network.
        counts: ``[K]``, extraction counts of the pairs; 1 if not known.
        total: number of pairs of the whole table.
    """

    table: NDArray[np.float64]
    network: NDArray[np.float64]
    counts: NDArray[np.float64]
    total: int

    @property
    def figures(self) -> dict[str, object]:
        """Return the number of pairs and, for three or more pairs, the correlation of both scores."""
        figures: dict[str, object] = {"pairs": len(self.table)}
        if len(self.table) > 2:
            figures["correlation"] = float(np.corrcoef(self.table, self.network)[0, 1])
        return figures


def draw_sample(scored: ScoredPairs, size: int, seed: int) -> PhraseSample:
    """Draw up to ``size`` pairs uniformly without replacement."""
    total = len(scored.pairs)
    rng = np.random.default_rng(seed)
    chosen = np.sort(rng.choice(total, min(size, total), replace=False))
    logs = np.log(np.maximum(scored.direct(chosen), np.exp(-100.0)))  # the table may contain 0
    network = np.log(scored.network.probabilities(chosen))
    return PhraseSample(logs, network, np.maximum(scored.counts(chosen), 1.0), total)


def draw_score_scatter(pairs: PhraseSample) -> "Figure":
    """Draw a scatter plot of the scores of both models, and the density of the points.

    The colour of a point is the count of the pair. The density plot shows the number of pairs where points overlap.
    """
    from matplotlib.colors import LogNorm

    figure, (scatter, density) = canvas(1, 2, 11.6, 5.2, share=True)
    # frequent pairs are drawn last, on top
    order = np.argsort(pairs.counts, kind="stable")
    most = max(float(pairs.counts.max()), 2.0)
    dots = scatter.scatter(
        pairs.table[order], pairs.network[order], c=pairs.counts[order], norm=LogNorm(1, most), cmap="viridis_r",
        s=5, lw=0, alpha=0.6, rasterized=True,
    )  # fmt: skip
    low = float(min(pairs.table.min(), np.quantile(pairs.network, 0.001)))
    left = float(pairs.table.min()) * 1.03
    cells = density.hexbin(
        pairs.table, pairs.network, gridsize=50, extent=(left, 0.3, low * 1.03, 0.5), bins="log", mincnt=1,
        cmap="viridis_r", lw=0, rasterized=True,
    )  # fmt: skip
    for axes in (scatter, density):
        axes.plot([low, 0], [low, 0], ls=":", lw=1.2, color="#59626b")
        axes.set_xlim(left, 0.3)
        axes.set_ylim(low * 1.03, 0.5)
        axes.set_xlabel("log p(target | source) of the phrase table")
    scatter.set_ylabel("log p(target | source) of the RNN Encoder–Decoder")
    scatter.set_title(f"{len(order):,} of {pairs.total:,} phrase pairs", loc="left")
    density.set_title("Number of pairs", loc="left")
    keys: list[tuple[ScalarMappable, Axes, str]] = [(cells, density, "pairs")]
    if pairs.counts.max() > 1:
        keys.append((dots, scatter, "occurrences of the pair"))
    for drawn, axes, label in keys:
        solids = figure.colorbar(drawn, ax=axes, label=label).solids
        if solids is not None:
            solids.set_alpha(1)
    return figure


# Examples of long phrases


class Example(NamedTuple):
    """Source phrase with its targets.

    Attributes:
        source: the phrase.
        extracted: extraction count of the phrase.
        table, network: targets with their probabilities, best first.
        samples: targets sampled from the network, with log p and number of samples; highest log p first.
    """

    source: str
    extracted: float
    table: list[tuple[str, float]]
    network: list[tuple[str, float]]
    samples: list[tuple[str, float, int]]

    def lines(self) -> Iterator[tuple[Any, ...]]:
        """Return the rows of the three lists side by side, with None where a list has ended."""
        return zip_longest(self.table, self.network, self.samples)


class PhraseExamples(NamedTuple):
    """Examples of frequent and of rare source phrases."""

    frequent: list[Example]
    rare: list[Example]

    @property
    def figures(self) -> dict[str, object]:
        """Return the numbers of phrases."""
        return {"frequent": len(self.frequent), "rare": len(self.rare)}


class LongPhrase(NamedTuple):
    """Long source phrase with several targets: its count, and the range of its phrase pairs (0-based, end excluded)."""

    extracted: float
    begin: int
    end: int


def choose(phrases: Sequence[LongPhrase], number: int, seed: int) -> tuple[list[LongPhrase], list[LongPhrase]]:
    """Draw up to ``number`` frequent and up to ``number`` rare phrases."""
    if not phrases:
        return [], []
    counts = np.array([phrase.extracted for phrase in phrases])
    rng = np.random.default_rng(seed)
    chosen = []
    for rows in (counts >= np.quantile(counts, FREQUENT), counts <= np.quantile(counts, RARE)):
        places = np.flatnonzero(rows)
        drawn = rng.choice(places, min(number, len(places)), replace=False)
        chosen.append([phrases[index] for index in sorted(drawn, key=lambda index: -counts[index])])
    return chosen[0], chosen[1]


def long_phrases(scored: ScoredPairs, targets: int) -> list[LongPhrase]:
    """Return the long source phrases of a table with at least ``targets`` targets.

    Raises:
        InputError: the table has no counts.
    """
    first, offsets = scored.pairs.first, scored.pairs.sides[0].offsets
    runs = np.flatnonzero((np.diff(first) >= targets) & (np.diff(offsets) > MORE_WORDS_THAN))
    counts = scored.source_counts(first[runs])
    if len(counts) and not counts.any():
        raise InputError(f"{scored.pairs.path}: the counts of its table are missing; create it with `phrases score`")
    begins, ends = first[runs].tolist(), first[runs + 1].tolist()
    return [LongPhrase(*phrase) for phrase in zip(counts.tolist(), begins, ends, strict=True)]


def examples_of(
    scored: ScoredPairs,
    chosen: Sequence[LongPhrase],
    model: "RNNEncoderDecoder",
    vocabularies: "Sequence[Vocabulary]",
    *,
    top: int,
    draws: int,
    seed: int,
) -> list[Example]:
    """Look up the chosen phrases in the table and sample targets from the network.

    Args:
        vocabularies: source and target vocabulary.
        top: maximum number of targets in each list.
        draws: number of samples per phrase.
    """
    from rnnsmt.rnn.generation import sample_targets

    pairs = [list(scored.pairs.texts(phrase.begin, phrase.end)) for phrase in chosen]
    sources = [vocabularies[0].ids(of_phrase[0][0], eos=True) for of_phrase in pairs]
    drawn = sample_targets(model, sources, draws, seed, LONGEST)
    examples = []
    for phrase, of_phrase, targets in zip(chosen, pairs, drawn, strict=True):
        rows = np.arange(phrase.begin, phrase.end)
        with_words = [each for each in targets if each.words]  # an empty target is no translation
        samples = [(vocabularies[1].text(each.words), each.score, each.times) for each in with_words[:top]]
        names = [" ".join(target) for _, target in of_phrase]
        examples.append(
            Example(
                " ".join(of_phrase[0][0]),
                phrase.extracted,
                _best(names, scored.direct(rows), top),
                _best(names, scored.network.probabilities(rows), top),
                samples,
            )
        )
    return examples


def _best(names: Sequence[str], scores: NDArray[np.float64], top: int) -> list[tuple[str, float]]:
    order = np.argsort(-scores, kind="stable")[:top]
    return [(names[index], float(scores[index])) for index in order]
