"""Phrase pairs with the scores of the phrase table and of the network.

Scatter plot of a sample (Figure 3 of the paper), and examples of long source phrases, frequent and rare (Tables 2 and
3).
"""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.errors import InputError
from rnnsmt.base.kernels.table_lines import COUNTS, SOURCE
from rnnsmt.base.paths import StrPath
from rnnsmt.base.progress import Meter
from rnnsmt.base.reading import words_of
from rnnsmt.base.rendering import canvas
from rnnsmt.formats.phrase_table import PhraseEntry, PhraseLines, read_phrase_lines
from rnnsmt.phrases.augmentation import ColumnFiles

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure

    from rnnsmt.networks.data import Vocabulary
    from rnnsmt.rnn.model import RNNEncoderDecoder

DIRECT = 2
"""0-based index of the direct phrase probability among Moses' scores."""

MORE_WORDS_THAN = 3
"""A phrase is long if it has more words than this, as in the paper."""

LONGEST = 30
"""Maximum number of words of a sampled target."""

FREQUENT, RARE = 0.99, 0.1
"""Quantiles of the counts: frequent phrases are in the top 1 %, rare phrases in the bottom 10 %."""

# Reading


def _lines(table: StrPath) -> Iterator[PhraseLines]:
    """Yield the lines of a table in blocks, showing progress."""
    meter = Meter(f"reading {Path(table).name}")
    for lines in read_phrase_lines(table):
        yield lines
        meter.add(len(lines.bounds))


def _entries(table: StrPath, column: ColumnFiles, wanted: NDArray[np.int64]) -> dict[int, PhraseEntry]:
    """Return the entries of some lines (0-based, ascending) by line, if every line of the table has a score."""
    entries: dict[int, PhraseEntry] = {}
    begin = 0
    for lines in _lines(table):
        end = begin + len(lines.bounds)
        inside = wanted[slice(*np.searchsorted(wanted, (begin, end)))]
        entries |= {index: lines.entry(index - begin) for index in inside.tolist()}
        begin = end
    if begin != len(column):
        raise InputError(
            f"{column.name}: {len(column)} scores, but {table} has {begin} lines; use scores of this table"
        )
    return entries


# Sample with scores of both models


class PhraseSample(NamedTuple):
    """Sample of K phrase pairs.

    Attributes:
        table, network: natural logarithms [K] of p(target | source).
        counts: counts [K] of the pairs, 1 if not known.
        lines: number of lines of the whole table.
    """

    table: NDArray[np.float64]
    network: NDArray[np.float64]
    counts: NDArray[np.float64]
    lines: int

    @property
    def figures(self) -> dict[str, object]:
        """Return the number of pairs and, of three or more, the correlation of both scores."""
        figures: dict[str, object] = {"pairs": len(self.table)}
        if len(self.table) > 2:
            figures["correlation"] = float(np.corrcoef(self.table, self.network)[0, 1])
        return figures


def draw_sample(table: StrPath, scores: Sequence[str], size: int, seed: int) -> PhraseSample:
    """Draw up to ``size`` lines uniformly without replacement.

    Args:
        scores: network scores of its lines, in consecutive shards.
    """
    column = ColumnFiles(scores)
    total = len(column)
    if not total:
        raise InputError(
            f"{column.name}: contains no scores; score the phrase table again or, if it is a filtered table, check "
            "that the text it was filtered for is in the source language"
        )
    rng = np.random.default_rng(seed)
    chosen = np.sort(rng.choice(total, min(size, total), replace=False))
    entries = _entries(table, column, chosen)
    sampled = [_direct(entry, table, index + 1) for index, entry in entries.items()]
    probabilities, counts = np.array(sampled).T
    logs = np.log(np.maximum(probabilities, np.exp(-100.0)))  # the table may contain 0
    return PhraseSample(logs, np.log(column.probabilities(chosen)), np.maximum(counts, 1.0), total)


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
    scatter.set_title(f"{len(order):,} of {pairs.lines:,} phrase pairs", loc="left")
    density.set_title("Number of pairs", loc="left")
    keys: list[tuple[ScalarMappable, Axes, str]] = [(cells, density, "pairs")]
    if pairs.counts.max() > 1:
        keys.append((dots, scatter, "occurrences of the pair"))
    for drawn, axes, label in keys:
        solids = figure.colorbar(drawn, ax=axes, label=label).solids
        if solids is not None:
            solids.set_alpha(1)
    return figure


def _direct(entry: PhraseEntry, table: StrPath, number: int) -> tuple[float, float]:
    """Return direct probability and count of an entry."""
    if len(entry.scores) <= DIRECT:
        raise InputError(
            f"{table}, line {number}: {len(entry.scores)} score(s), but the direct probability p(e|f) "
            "is the third score"
        )
    return entry.scores[DIRECT], entry.counts[2] if len(entry.counts) > 2 else 1.0


# Examples of long phrases


class Example(NamedTuple):
    """Source phrase with its targets.

    Attributes:
        source: the phrase.
        extracted: its count.
        table, network: targets with their probabilities, best first.
        samples: targets sampled from the network, with log p and number of samples; highest log p first.
    """

    source: str
    extracted: float
    table: list[tuple[str, float]]
    network: list[tuple[str, float]]
    samples: list[tuple[str, float, int]]

    def lines(self) -> Iterator[tuple[Any, ...]]:
        """Return the targets side by side; None where a list has ended."""
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
    """Long source phrase with several targets: its count, and the range of its lines (0-based, end excluded)."""

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


def long_phrases(table: StrPath, targets: int) -> list[LongPhrase]:
    """Return the long source phrases of a table with at least ``targets`` targets."""
    phrases: list[LongPhrase] = []
    first, end = 0, 0
    source, count = b"", 0.0

    def add() -> None:
        """Add the source phrase of the lines ``first`` to ``end - 1``."""
        if end - first >= targets and source.count(b" ") >= MORE_WORDS_THAN:
            phrases.append(LongPhrase(count, first, end))

    for lines in _lines(table):
        for of_line, text in zip(lines.column(SOURCE), lines.column(COUNTS), strict=True):
            if of_line != source:
                add()
                source, first = of_line, end
                if of_line.count(b" ") >= MORE_WORDS_THAN:
                    counts = text.split()
                    if len(counts) < 2:
                        raise InputError(
                            f"{table}, line {end + 1}: the counts are missing; create the table with `phrases score`"
                        )
                    count = float(counts[1])
            end += 1
    add()
    return phrases


def examples_of(
    table: StrPath,
    scores: Sequence[str],
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
        scores: network scores of its lines, in consecutive shards.
        vocabularies: source and target vocabulary.
        top: maximum number of targets in each list.
        draws: number of samples per phrase.
    """
    from rnnsmt.rnn.generation import sample_targets

    wanted = np.array(sorted({line for phrase in chosen for line in range(phrase.begin, phrase.end)}), np.int64)
    column = ColumnFiles(scores)
    entry_of = _entries(table, column, wanted)
    sources = [vocabularies[0].ids(words_of(entry_of[phrase.begin].source), eos=True) for phrase in chosen]
    drawn = sample_targets(model, sources, draws, seed, LONGEST)
    examples = []
    for phrase, targets in zip(chosen, drawn, strict=True):
        entries = [entry_of[number] for number in range(phrase.begin, phrase.end)]
        probabilities = column.probabilities(np.arange(phrase.begin, phrase.end))
        with_words = [each for each in targets if each.words]  # an empty target is no translation
        samples = [(vocabularies[1].text(each.words), each.score, each.times) for each in with_words[:top]]
        table_scores = np.array([entry.scores[DIRECT] for entry in entries])
        names = [entry.target for entry in entries]
        examples.append(
            Example(
                entries[0].source,
                phrase.extracted,
                _best(names, table_scores, top),
                _best(names, probabilities, top),
                samples,
            )
        )
    return examples


def _best(names: Sequence[str], scores: NDArray[np.float64], top: int) -> list[tuple[str, float]]:
    order = np.argsort(-scores, kind="stable")[:top]
    return [(names[index], float(scores[index])) for index in order]
