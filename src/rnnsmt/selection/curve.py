"""Perplexity of held-out in-domain text as a function of the fraction of the ranked pool that is kept.

For every fraction, a model is estimated on the kept lines and evaluated on the same held-out lines. All models have the
same vocabulary, the words that occur at least twice in the whole ranked pool. Words of the vocabulary that do not occur
in the kept lines have only the probability that unigrams receive from the uniform distribution. All words outside the
vocabulary are ``<unk>`` in every model. Therefore, all models distribute their probability over the same events, and
their perplexities, including unknown words, are comparable.
"""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rnnsmt.base.errors import InputError
from rnnsmt.base.paths import StrPath
from rnnsmt.base.progress import say
from rnnsmt.base.reading import read_lines
from rnnsmt.base.writing import write_lines
from rnnsmt.lm.estimation import estimate
from rnnsmt.lm.queries import load_kenlm, measure
from rnnsmt.lm.text import frequent_words, refuse_reserved
from rnnsmt.selection import ORDER

FRACTIONS = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 3 / 16, 1 / 4, 3 / 8, 1 / 2, 3 / 4, 1.0)
"""Fractions of the pool whose perplexities are compared."""


@dataclass(frozen=True)
class Point:
    """Result for one fraction of the pool.

    Attributes:
        fraction: the fraction.
        lines, words: number of kept lines, and of words in them.
        perplexity: perplexity of the held-out text.
        oov_rate: fraction of the words in the held-out text that do not occur in the kept lines.
    """

    fraction: float
    lines: int
    words: int
    perplexity: float
    oov_rate: float


@dataclass(frozen=True)
class Increment:
    """Lines that a fraction of the pool contains in addition to the next smaller fraction.

    Attributes:
        path: file with the lines.
        lines, words: number of lines, and of words in them.
        covers: words of the held-out text that occur in the lines.
    """

    path: Path
    lines: int
    words: int
    covers: frozenset[bytes]


def write_increments(
    texts: Iterable[tuple[StrPath, npt.NDArray[np.uint8]]], number: int, held_out: Sequence[str], directory: Path
) -> list[Increment]:
    """Write the lines of each increment 0, ..., ``number`` - 1 to a file; lines of increment ``number`` are omitted.

    Args:
        texts: pairs (file, increment of every line), see ``rnnsmt.selection.pool.best``.
        number: number of increments.
        held_out: lines of held-out text, for ``Increment.covers``.
        directory: directory of the files.
    """
    vocabulary = {word for line in held_out for word in line.encode().split()}
    paths = [directory / f"increment{i}" for i in range(number)]
    lines, words = [0] * number, [0] * number
    covers: list[set[bytes]] = [set() for _ in range(number)]
    with ExitStack() as stack:
        outs = [stack.enter_context(path.open("wb", 1 << 18)) for path in paths]
        for text, increments in texts:
            for at, (line, increment) in enumerate(zip(read_lines(text), increments.tolist(), strict=True), 1):
                if increment == number:
                    continue
                data = line.encode()
                tokens = data.split()
                refuse_reserved(tokens, text, at)
                outs[increment].write(data + b"\n")
                lines[increment] += 1
                words[increment] += len(tokens)
                covers[increment].update(vocabulary.intersection(tokens))
    return [Increment(*row) for row in zip(paths, lines, words, map(frozenset, covers), strict=True)]


def curve(
    texts: Sequence[tuple[StrPath, npt.NDArray[np.uint8]]],
    fractions: Sequence[float],
    held_out: Sequence[str],
    *,
    work: Path,
    memory_mb: int = 2000,
    threads: int = 1,
) -> list[Point]:
    """Return the perplexity of the held-out text for every fraction of the ranked texts.

    The lines of a fraction are the lines of its increment and of all smaller increments.

    Args:
        texts: pairs (file, increment of every line), see ``rnnsmt.selection.pool.best``.
        fractions: in ascending order.
        held_out: lines of held-out text.
        work: directory for temporary files.
        memory_mb, threads: as in ``rnnsmt.lm.estimation.estimate``.
    """
    increments = write_increments(texts, len(fractions), held_out, work)
    pool = [path for path, _ in texts]
    if not increments[0].words:
        raise InputError(
            f"{', '.join(map(str, pool))}: no words in the best {increments[0].lines} lines, the smallest fraction; "
            "use a pool with more words"
        )
    vocabulary = frequent_words(pool, 2)
    only = {word for line in held_out for word in line.split(" ")}
    tokens = [word for line in held_out for word in line.encode().split()]
    points = []
    for i, fraction in enumerate(fractions):
        kept = increments[: i + 1]
        arpa = work / "curve.arpa"
        inputs = [increment.path for increment in kept]
        estimate(inputs, ORDER, arpa, vocabulary=vocabulary, only=only, memory_mb=memory_mb, threads=threads)
        perplexity = measure(load_kenlm(arpa), held_out, "held-out text").perplexity
        arpa.unlink()
        known = frozenset().union(*(increment.covers for increment in kept))
        lines, words = sum(increment.lines for increment in kept), sum(increment.words for increment in kept)
        unknown = sum(token not in known for token in tokens)
        points.append(Point(fraction, lines, words, perplexity, unknown / max(len(tokens), 1)))
        say(f"fraction {fraction:g}: {lines:,} lines, {words:,} words, perplexity {perplexity:.2f}")
    return points


def write_curve(path: StrPath, points: Sequence[Point], chosen: float | None) -> None:
    """Write the curve as TSV, one fraction per line, and mark the chosen fraction."""
    rows = ["fraction\tlines\twords\tperplexity\toov_rate\tchosen"]
    for p in points:
        rows.append(
            f"{p.fraction:.6g}\t{p.lines}\t{p.words}\t{p.perplexity:.4f}\t{p.oov_rate:.6f}\t{int(p.fraction == chosen)}"
        )
    write_lines(path, rows)
