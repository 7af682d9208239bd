"""Corpora with scored lines, and selection of the best lines."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rnnsmt.base.io import InputError, read_byte_lines, read_parallel


@dataclass(frozen=True)
class PoolCorpus:
    """One corpus to select from.

    Attributes:
        name: unique name.
        scores: file of scores; None: the corpus is kept whole.
        texts: one text, or two parallel texts.
        keep: fraction of the lines to keep; None: the corpus is ranked together with the others.
    """

    name: str
    scores: Path | None
    texts: list[Path]
    keep: float | None = None


@dataclass(frozen=True)
class RankedCorpus:
    """One corpus and the scores of its lines, float [lines]; +inf for repeated lines, which are left out."""

    corpus: PoolCorpus
    scores: npt.NDArray[np.floating]

    @property
    def lines(self) -> int:
        """Number of lines of the corpus."""
        return len(self.scores)


def with_keep(corpora: Sequence[PoolCorpus], keep: Sequence[tuple[str, float]]) -> list[PoolCorpus]:
    """Return the corpora with their own fractions.

    Raises:
        InputError: names are duplicate or unknown, parallel and monolingual texts are mixed, or scores are missing.
    """
    names = [corpus.name for corpus in corpora]
    wanted = dict(keep)
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"--corpus {name}: given twice; every corpus needs a name of its own")
    for name in wanted:
        if name not in names:
            raise InputError(f"--keep {name}: there is no such corpus; there are {', '.join(names)}")
    if len({len(corpus.texts) for corpus in corpora}) > 1:
        raise InputError("--corpus: bitexts and monolingual texts cannot be selected together")
    for corpus in corpora:
        if corpus.scores is None and wanted.get(corpus.name) != 1.0:
            raise InputError(f"--corpus {corpus.name}: scores can be - only with --keep {corpus.name}=all")
    return [replace(corpus, keep=wanted.get(corpus.name)) for corpus in corpora]


def read_scores(path: Path) -> npt.NDArray[np.float32]:
    """Read the scores in a file, float32 [lines].

    Raises:
        InputError: a line is not a finite number.
    """

    def parse(number: int, line: bytes) -> float:
        try:
            value = float(line)
        except ValueError:
            value = np.nan
        if not np.isfinite(value):
            shown = line[:40].decode("utf-8", "replace")
            raise InputError(f"{path}, line {number}: {shown!r} is not a score; run `selection score` again")
        return value

    return np.fromiter((parse(i, line) for i, line in enumerate(read_byte_lines(path), 1)), np.float32)


def read_corpus(corpus: PoolCorpus, unique: bool) -> RankedCorpus:
    """Read the scores of a corpus and check that its texts have the same number of lines.

    Args:
        corpus: the corpus.
        unique: set the score of repeated lines (line pairs) to +inf, except for their first occurrence.

    Raises:
        InputError: the numbers of lines differ.
    """
    seen: set[bytes] = set()
    repeated: list[int] = []
    lines = 0
    for row in read_parallel(*corpus.texts):
        if unique:
            # 8 bytes per line need less memory than the lines themselves
            key = hashlib.blake2b("\0".join(row).encode(), digest_size=8).digest()
            if key in seen:
                repeated.append(lines)
            seen.add(key)
        lines += 1
    if corpus.scores is None:
        return RankedCorpus(corpus, np.zeros(lines, np.float32))
    scores = read_scores(corpus.scores)
    if len(scores) != lines:
        raise InputError(
            f"{corpus.scores} has {len(scores)} scores, but {corpus.texts[0]} has {lines} lines; "
            "score this text with `selection score`"
        )
    scores[repeated] = np.inf
    return RankedCorpus(corpus, scores)


def best(scores: npt.NDArray[np.floating], fractions: list[float]) -> npt.NDArray[np.uint8]:
    """Return for every line the index of the smallest fraction that includes it, or ``len(fractions)``; uint8 [lines].

    A fraction is that part of the lines with finite scores, rounded, but at least one line. Ties are resolved in favour
    of the earlier line.

    Args:
        scores: [lines], lower is better.
        fractions: in ascending order.
    """
    order = np.argsort(scores, kind="stable")
    finite = int(np.isfinite(scores).sum())
    shell = np.full(len(scores), len(fractions), np.uint8)
    start = 0
    for i, fraction in enumerate(fractions):
        stop = min(max(int(fraction * finite + 0.5), 1), finite)
        shell[order[start:stop]] = i
        start = max(start, stop)
    return shell
