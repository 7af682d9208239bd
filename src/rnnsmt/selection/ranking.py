"""Corpora with the scores of their lines, and which lines are the best of them."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rnnsmt.io import InputError, read_byte_lines, read_parallel


@dataclass(frozen=True)
class PoolCorpus:
    """One corpus to select from: its scores file (None: kept whole) and its one or two parallel texts.

    keep: None: ranked together with the others; otherwise the fraction of its own lines that is kept.
    """

    name: str
    scores: Path | None
    texts: list[Path]
    keep: float | None = None


@dataclass(frozen=True)
class RankedCorpus:
    """One corpus read through: ``scores`` [lines], +inf for lines left out as repeated; ``lines``."""

    corpus: PoolCorpus
    scores: npt.NDArray[np.floating]

    @property
    def lines(self) -> int:
        """How many lines the corpus has."""
        return len(self.scores)


def with_keep(corpora: Sequence[PoolCorpus], keep: Sequence[tuple[str, float]]) -> list[PoolCorpus]:
    """The corpora with their own fractions.

    Raises:
        InputError: names that are not clear, bitexts beside monolingual texts, no scores where they are needed.
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
        raise InputError("--corpus: some have one text and some two; select bitexts and monolingual texts separately")
    for corpus in corpora:
        if corpus.scores is None and wanted.get(corpus.name) != 1.0:
            raise InputError(f"--corpus {corpus.name}: with - for scores it needs --keep {corpus.name}=all")
    return [replace(corpus, keep=wanted.get(corpus.name)) for corpus in corpora]


def read_scores(path: Path) -> npt.NDArray[np.float32]:
    """The scores of a file, float32 [lines].

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
            raise InputError(f"{path}, line {number}: {shown!r} is not a score; make it again with `selection score`")
        return value

    return np.fromiter((parse(i, line) for i, line in enumerate(read_byte_lines(path), 1)), np.float32)


def read_corpus(corpus: PoolCorpus, unique: bool) -> RankedCorpus:
    """Read the scores and check that the texts have as many lines.

    Args:
        unique: give every later copy of a line (of a pair) the score +inf.

    Raises:
        InputError: line counts differ.
    """
    seen: set[bytes] = set()
    repeated: list[int] = []
    lines = 0
    for row in read_parallel(*corpus.texts):
        if unique:
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
            "score this very text with `selection score`"
        )
    scores[repeated] = np.inf
    return RankedCorpus(corpus, scores)


def best(scores: npt.NDArray[np.floating], fractions: list[float]) -> npt.NDArray[np.uint8]:
    """For every line the first of the rising ``fractions`` that includes it; ``len(fractions)`` where none does.

    A fraction means that part of the lines with a finite score, rounded, at least one; of equal scores the earlier line
    comes first.
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
