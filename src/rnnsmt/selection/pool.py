"""The pool of all corpora from which lines are selected, with a score for each line; selection of the best lines.

All corpora without ``keep`` are ranked together; every corpus with ``keep`` is ranked separately. Lines with equal
scores are ranked in their original order.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from rnnsmt.base.arguments import TextFiles
from rnnsmt.base.errors import InputError
from rnnsmt.base.parallel import atomic_blocks
from rnnsmt.base.paths import StrPath
from rnnsmt.base.progress import say
from rnnsmt.base.reading import read_byte_lines, read_parallel
from rnnsmt.base.writing import scratch_directory, write_lines
from rnnsmt.selection import PoolFiles
from rnnsmt.selection.curve import Point, curve

if TYPE_CHECKING:
    from pandas import DataFrame


class LineScores:
    """Scores of the lines of a text.

    Attributes:
        path: file from which the scores are read on first use; None if they are in memory.
        figures: number of lines and mean score; the last line in the log of the command.
    """

    def __init__(self, path: Path | None, figures: dict[str, object]) -> None:
        self.path, self.figures = path, figures

    @classmethod
    def of(cls, scores: Iterable[float], output: StrPath | None) -> Self:
        """Write scores to a file, or keep them in memory if ``output`` is None; they are rounded to six decimals."""
        total = 0.0

        def formatted() -> Iterator[str]:
            nonlocal total
            for score in scores:
                total += score
                yield f"{score:.6f}"

        if output is not None:
            number = write_lines(output, formatted())
            return cls(Path(output), {"lines": number, "mean score": total / max(number, 1)})
        values = np.array([float(text) for text in formatted()], np.float32)
        found = cls(None, {"lines": len(values), "mean score": total / max(len(values), 1)})
        found.values = values
        return found

    @cached_property
    def values(self) -> npt.NDArray[np.float32]:
        """Return the scores, [lines]."""
        assert self.path is not None
        return read_scores(self.path)


@dataclass(frozen=True)
class Selected:
    """Selected lines.

    Attributes:
        path: directory of the selected text.
        fraction: kept fraction of the lines that are ranked together; None if every corpus has ``keep``.
        points: perplexity of the held-out text for every fraction that was compared.
        kept: whether each line is kept, bool [lines], by name of the corpus.
        figures: the fraction and numbers of lines; the last line in the log of the command.
    """

    path: Path
    fraction: float | None
    points: Sequence[Point]
    kept: dict[str, npt.NDArray[np.bool_]]
    figures: dict[str, object]

    @property
    def curve(self) -> "DataFrame":
        """Return the points as a DataFrame with columns fraction, lines, words, perplexity and oov_rate."""
        from pandas import DataFrame

        return DataFrame([vars(point) for point in self.points])


@dataclass(frozen=True)
class PoolCorpus:
    """A corpus from which lines are selected.

    Attributes:
        name: unique name.
        texts: one text, or two parallel texts.
        scores: score of every line, float [lines]; zeros for a corpus without scores.
        keep: fraction of the lines to keep; None if the corpus is ranked together with others.
    """

    name: str
    texts: list[str]
    scores: npt.NDArray[np.floating]
    keep: float | None

    @property
    def lines(self) -> int:
        """Return the number of lines of the corpus."""
        return len(self.scores)


def read_corpora(
    files: TextFiles, corpora: Sequence[PoolFiles], keep: Sequence[tuple[str, float]], langs: Sequence[str]
) -> list[PoolCorpus]:
    """Read the scores of corpora, and check the arguments of `selection select`.

    Args:
        files: temporary files, for texts that are lists of sentences.
        corpora: the corpora.
        keep: pairs (name of a corpus, fraction of its lines to keep).
        langs: languages of the texts of every corpus.
    """
    names = [corpus.name for corpus in corpora]
    fractions = dict(keep)
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"--corpus {name}: used twice; every corpus must have a different name")
    for name in fractions:
        if name not in names:
            raise InputError(f"--keep {name}: no such corpus; available: {', '.join(names)}")
    if len({len(corpus.texts) for corpus in corpora}) > 1:
        raise InputError("--corpus: parallel and monolingual corpora cannot be combined")
    for corpus in corpora:
        if corpus.scores is None and fractions.get(corpus.name) != 1.0:
            raise InputError(f"--corpus {corpus.name}: the score file - requires --keep {corpus.name}=all")
        if len(corpus.texts) != len(langs) or len(set(langs)) != len(langs):
            raise InputError(f"--corpus {corpus.name}: --lang must name the language of each of its texts")
    found = []
    for corpus in corpora:
        texts = [files.of(f"{corpus.name}.{lang}", text) for lang, text in zip(langs, corpus.texts, strict=True)]
        found.append(PoolCorpus(corpus.name, texts, _scores_of_lines(corpus, texts), fractions.get(corpus.name)))
    return found


def read_scores(path: StrPath) -> npt.NDArray[np.float32]:
    """Read the scores in a file, float32 [lines]."""
    try:
        scores = np.loadtxt(read_byte_lines(path), np.float32, delimiter="\t", ndmin=1)
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"{path}: contains other lines than scores ({error}); run `selection score` again") from None
    if np.isnan(scores).any():
        raise InputError(f"{path}: contains NaN; run `selection score` again")
    return scores


def _scores_of_lines(corpus: PoolFiles, texts: Sequence[str]) -> npt.NDArray[np.float32]:
    """Read the scores of a corpus and check that its texts have the same number of lines."""
    lines = sum(1 for _ in read_parallel(*texts))
    if corpus.scores is None:
        return np.zeros(lines, np.float32)
    if isinstance(corpus.scores, LineScores):
        name, scores = str(corpus.scores.path or corpus.name), corpus.scores.values
    else:
        name, scores = str(corpus.scores), read_scores(corpus.scores)
    if len(scores) != lines:
        raise InputError(
            f"{name} has {len(scores)} scores, but {texts[0]} has {lines} lines; score this text with `selection score`"
        )
    return scores


def best(scores: npt.NDArray[np.floating], fractions: Sequence[float]) -> npt.NDArray[np.uint8]:
    """Return the increment of every line: the index of the smallest fraction that contains the line.

    The number of lines of a fraction is rounded, and at least 1. If scores are equal, earlier lines are preferred.

    Args:
        scores: [lines], lower is better.
        fractions: in ascending order.

    Returns:
        uint8 [lines]; ``len(fractions)`` for lines that no fraction contains.
    """
    order = np.argsort(scores, kind="stable")
    increment = np.full(len(scores), len(fractions), np.uint8)
    start = 0
    for i, fraction in enumerate(fractions):
        stop = max(int(fraction * len(scores) + 0.5), 1)
        increment[order[start:stop]] = i
        start = max(start, stop)
    return increment


class Pool:
    """Corpora with ranked lines, and the fractions that may be chosen for the corpora that are ranked together."""

    def __init__(self, corpora: Sequence[PoolCorpus], fractions: Sequence[float]) -> None:
        """Rank the lines of all corpora without ``keep``.

        Args:
            fractions: in ascending order.
        """
        self.corpora = corpora
        self.fractions = list(fractions)
        self.together = [corpus for corpus in corpora if corpus.keep is None]
        self._increments: dict[str, npt.NDArray[np.uint8]] = {}
        """Increment of every line, see ``best``, by name of the corpus."""
        if self.together:
            scores = np.concatenate([corpus.scores for corpus in self.together])
            if not len(scores):
                names = ", ".join(str(corpus.texts[0]) for corpus in self.together)
                raise InputError(f"{names}: contains no lines")
            parts = np.split(best(scores, self.fractions), np.cumsum([corpus.lines for corpus in self.together])[:-1])
            self._increments = {
                corpus.name: increments for corpus, increments in zip(self.together, parts, strict=True)
            }

    def shuffled(self, seed: int) -> "Pool":
        """Return a pool of the same corpora with random scores for all lines, for a control experiment."""
        generator = np.random.default_rng(seed)
        corpora = [replace(corpus, scores=generator.random(corpus.lines)) for corpus in self.corpora]
        return Pool(corpora, self.fractions)

    def measure(self, held_out: Sequence[str], directory: Path, memory_mb: int, threads: int) -> list[Point]:
        """Return the perplexity of held-out text for each fraction of the corpora that are ranked together.

        Args:
            held_out: lines of held-out text.
            directory: directory in which temporary files are created.
        """
        texts = [(corpus.texts[-1], self._increments[corpus.name]) for corpus in self.together]
        with scratch_directory(directory / "curve") as work:
            return curve(texts, self.fractions, held_out, work=work, memory_mb=memory_mb, threads=threads)

    def kept(self, fraction: float | None) -> list[npt.NDArray[np.bool_]]:
        """Return for each corpus whether each line is kept, bool [lines].

        Args:
            fraction: one of ``fractions``; None for the largest one.
        """
        last = self.fractions.index(fraction) if fraction is not None else len(self.fractions) - 1
        masks = []
        for corpus in self.corpora:
            if corpus.keep is None:
                masks.append(self._increments[corpus.name] <= last)
            else:
                masks.append(best(corpus.scores, [corpus.keep]) == 0)
        return masks

    def report(self, masks: Sequence[npt.NDArray[np.bool_]]) -> dict[str, dict[str, Any]]:
        """Return for each corpus the number of lines, the number of kept lines, and ``keep`` or "ranked"."""
        return {
            corpus.name: {
                "lines": corpus.lines,
                "kept": int(mask.sum()),
                "keep": "ranked" if corpus.keep is None else corpus.keep,
            }
            for corpus, mask in zip(self.corpora, masks, strict=True)
        }

    def write(
        self, directory: Path, masks: Sequence[npt.NDArray[np.bool_]], langs: Sequence[str], threads: int
    ) -> None:
        """Write the kept lines of every text to NAME.LANG.gz."""
        for corpus, mask in zip(self.corpora, masks, strict=True):
            for lang, text in zip(langs, corpus.texts, strict=True):
                with atomic_blocks(directory / f"{corpus.name}.{lang}.gz", threads) as out:
                    for line, is_kept in zip(read_byte_lines(text), mask.tolist(), strict=True):
                        if is_kept:
                            out.write(line + b"\n")


def fraction_of_words(corpora: Sequence[PoolCorpus], words: int) -> float:
    """Return the largest fraction of the jointly ranked lines with at most ``words`` words in the last text.

    Cho et al. (2014) select by words: 348 of 850 million French words of the parallel text, and 418 million words for
    the language model. If the corpora have fewer than ``words`` words, the fraction is 1, and a message is logged.
    """
    together = [corpus for corpus in corpora if corpus.keep is None]
    if not together:
        raise InputError("--words has no effect, because every corpus has --keep; omit --words, or --keep of a corpus")
    scores = np.concatenate([corpus.scores for corpus in together])
    lengths = np.fromiter((len(line.split()) for corpus in together for line in read_byte_lines(corpus.texts[-1])), int)
    order = np.argsort(scores, kind="stable")
    if not len(order):
        raise InputError(f"{', '.join(str(corpus.texts[0]) for corpus in together)}: contains no lines")
    total = np.cumsum(lengths[order])
    number = int(np.searchsorted(total, words, "right"))
    if not number:
        raise InputError(f"--words {words}: the best line has {total[0]} words; use at least {total[0]}")
    if total[-1] < words:
        say(f"--words {words:,}: the corpora have {total[-1]:,} words in total; all lines are kept")
    return number / len(order)
