"""Which lines of which corpora are kept."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rnnsmt.io import InputError, read_byte_lines, read_parallel


@dataclass
class Corpus:
    """One corpus to select from: its scores file (None: kept whole) and its one or two parallel texts.

    keep: None: ranked together with the others; otherwise the fraction of its own lines that is kept.
    """

    name: str
    scores: Path | None
    texts: list[Path]
    keep: float | None = None


@dataclass
class Ranked:
    """One corpus read through: ``scores`` float32 [lines], +inf for lines left out as repeated; ``lines``."""

    corpus: Corpus
    scores: npt.NDArray[np.float32]

    @property
    def lines(self) -> int:
        """How many lines the corpus has."""
        return len(self.scores)


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


def read_corpus(corpus: Corpus, unique: bool) -> Ranked:
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
        return Ranked(corpus, np.zeros(lines, np.float32))
    scores = read_scores(corpus.scores)
    if len(scores) != lines:
        raise InputError(
            f"{corpus.scores} has {len(scores)} scores, but {corpus.texts[0]} has {lines} lines; "
            "score this very text with `selection score`"
        )
    scores[repeated] = np.inf
    return Ranked(corpus, scores)


def best(scores: npt.NDArray[np.float32], fractions: list[float]) -> npt.NDArray[np.uint8]:
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
