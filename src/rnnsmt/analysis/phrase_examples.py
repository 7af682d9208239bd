"""Examples of long source phrases, frequent and rare: Tables 2 and 3 of the paper.

For each phrase, the targets preferred by the table and by the network, and targets sampled from the network.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rnnsmt.analysis.phrase_sample import DIRECT
from rnnsmt.base.io import InputError, read_line_blocks
from rnnsmt.base.progress import Meter
from rnnsmt.phrases.augmentation import ScoreColumn
from rnnsmt.phrases.table import PhraseEntry, parse_phrase_line

if TYPE_CHECKING:
    from rnnsmt.networks.vocabulary import Vocabulary
    from rnnsmt.rnn.model import RNNEncoderDecoder

MORE_WORDS_THAN = 3
"""A phrase is long if it has more words than this, as in the paper."""

LONGEST = 30
"""Maximum number of words of a sampled target."""

FREQUENT, RARE = 0.99, 0.1
"""Quantiles of the counts: frequent phrases are in the top 1 %, rare phrases in the bottom 10 %."""


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


class LongPhrase(NamedTuple):
    """Long source phrase with several targets: its count, and the range of its lines from 0."""

    extracted: float
    begin: int
    end: int


def choose(phrases: Sequence[LongPhrase], number: int, seed: int) -> tuple[list[LongPhrase], list[LongPhrase]]:
    """Draw up to ``number`` frequent and up to ``number`` rare phrases."""
    if not phrases:
        return [], []
    counts = np.array([one.extracted for one in phrases])
    rng = np.random.default_rng(seed)
    chosen = []
    for rows in (counts >= np.quantile(counts, FREQUENT), counts <= np.quantile(counts, RARE)):
        places = np.flatnonzero(rows)
        drawn = rng.choice(places, min(number, len(places)), replace=False)
        chosen.append([phrases[place] for place in sorted(drawn, key=lambda place: -counts[place])])
    return chosen[0], chosen[1]


def long_phrases(table: str | Path, targets: int) -> list[LongPhrase]:
    """Return the long source phrases of a table with at least ``targets`` targets.

    Raises:
        InputError: the table has no counts, is missing or damaged.
    """
    found: list[LongPhrase] = []
    source, begin, count = b"", 0, 0.0
    number = -1
    for number, line in enumerate(_lines(table)):
        own = line[: line.find(b" ||| ")]
        if own != source:
            if number - begin >= targets and source.count(b" ") >= MORE_WORDS_THAN:
                found.append(LongPhrase(count, begin, number))
            source, begin = own, number
            if own.count(b" ") >= MORE_WORDS_THAN:
                count = _source_count(line, table, number + 1)
    if number + 1 - begin >= targets and source.count(b" ") >= MORE_WORDS_THAN:
        found.append(LongPhrase(count, begin, number + 1))
    return found


def _source_count(line: bytes, table: str | Path, number: int) -> float:
    """Return the count of the source phrase of a line."""
    try:
        return float(line.split(b"|||", 5)[4].split()[1])
    except (IndexError, ValueError):
        raise InputError(
            f"{table}, line {number}: the counts are missing; write the table with `phrases score`"
        ) from None


def examples_of(
    table: str | Path,
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
        table: phrase table.
        scores: network scores of its lines, in parts.
        chosen: source phrases.
        model: the network.
        vocabularies: source and target vocabulary.
        top: maximum number of targets in each list.
        draws: number of samples per phrase.
        seed: random seed.

    Raises:
        InputError: as ``ScoreColumn``, or the number of scores differs from that of the lines.
    """
    from rnnsmt.rnn.generation import sample_targets

    wanted = sorted({line for one in chosen for line in range(one.begin, one.end)})
    lines: dict[int, PhraseEntry] = {}
    places = iter(wanted)
    following, total = next(places, -1), 0
    for number, line in enumerate(_lines(table)):
        total = number + 1
        if number == following:
            lines[number] = parse_phrase_line(line, table, number + 1)
            following = next(places, -1)
    column = ScoreColumn(scores)
    if len(column) != total:
        raise InputError(
            f"{column.name}: {len(column)} scores, but {table} has {total} lines; run the scoring for this table"
        )
    sources = [vocabularies[0].ids(lines[one.begin].source.split(), eos=True) for one in chosen]
    drawn = sample_targets(model, sources, draws, seed, min(LONGEST, model.sizes.longest))
    found = []
    for one, targets in zip(chosen, drawn, strict=True):
        entries = [lines[number] for number in range(one.begin, one.end)]
        probabilities = column.probabilities(np.arange(one.begin, one.end))
        with_words = [each for each in targets if each.words]  # an empty target is no translation
        samples = [(vocabularies[1].text(each.words), each.score, each.times) for each in with_words[:top]]
        table_scores = np.array([entry.scores[DIRECT] for entry in entries])
        names = [entry.target for entry in entries]
        found.append(
            Example(
                entries[0].source,
                one.extracted,
                _best(names, table_scores, top),
                _best(names, probabilities, top),
                samples,
            )
        )
    return found


def _best(names: Sequence[str], scores: NDArray[np.float64], top: int) -> list[tuple[str, float]]:
    """Return the ``top`` best names with their scores."""
    order = np.argsort(-scores, kind="stable")[:top]
    return [(names[place], float(scores[place])) for place in order]


def _lines(table: str | Path) -> Iterator[bytes]:
    """Yield the lines of a table, showing progress."""
    meter = Meter(f"reading {Path(table).name}")
    for block in read_line_blocks(table):
        lines = block.split(b"\n")[:-1]
        yield from lines
        meter.add(len(lines))


def markdown(frequent: Sequence[Example], rare: Sequence[Example], draws: int) -> Iterator[str]:
    """Yield the lines of both tables as Markdown."""
    yield from ("# What the network makes of long phrases", "")
    yield f"Targets by p(target | source) of the table and of the RNN Encoder-Decoder, and the best of {draws} draws."
    for title, examples in (("Long, frequent source phrases", frequent), ("Long, rare source phrases", rare)):
        yield from ("", f"## {title}")
        for one in examples:
            yield from (
                "",
                f"### {one.source} ({one.extracted:g})",
                "",
                "| phrase table | RNN | drawn by the RNN |",
                "|:--|:--|:--|",
            )
            columns = (
                [f"{target} ({p:.2f})" for target, p in one.table],
                [f"{target} ({p:.2f})" for target, p in one.network],
                [f"{target} ({times})" for target, _, times in one.samples],
            )
            for row in range(max(map(len, columns))):
                cells = (column[row].replace("<unk>", "`<unk>`") if row < len(column) else "" for column in columns)
                yield "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def content(frequent: Sequence[Example], rare: Sequence[Example]) -> dict[str, Any]:
    """Return both tables for JSON."""
    return {"frequent": [one._asdict() for one in frequent], "rare": [one._asdict() for one in rare]}
