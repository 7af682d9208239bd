"""Files of columns: named arrays with one element for each pair in a file of phrase pairs (``rnnsmt.phrases.pairs``).

A file of columns is a file of arrays (``rnnsmt.base.array_file``). Its header entry ``pairs`` is the fingerprint of the
phrase pairs. There are three kinds of files:

* Scores of the phrase table (`phrases score`): the scores in the order of Moses (``SCORE_NAMES``); ``links``, as a bit
  mask (``rnnsmt.phrases.scores``); the counts of the target phrase, of the source phrase and of the pair
  (``COUNT_NAMES``); and ``affiliations``, with one element for each target word (``rnnsmt.align.affiliation``). If the
  scores were imported from a table in Moses format, there are no links, and counts that the table lacks are 0.
* Scores of the reordering table (`phrases reordering`): ``ORIENTATIONS``.
* A score column (`phrases column`): ``score``, natural logarithms or counts; the header entry ``name`` is the name of
  the column. If the file contains a shard of the column, the header entry ``begin`` is the index of its first pair.

The scores of the first two kinds are probabilities with six significant digits, as in the text files of Moses, in
single precision (``rnnsmt.base.kernels.decimals``). The header entry ``scores`` lists their names in order (JSON).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rnnsmt.base.array_file import ArrayFile, ArrayWriter, write_arrays
from rnnsmt.base.arrays import release_pages
from rnnsmt.base.errors import InputError
from rnnsmt.base.kernels.decimals import six_digits
from rnnsmt.base.paths import StrPath
from rnnsmt.phrases.pairs import PhrasePairs

SCORE_NAMES = ("p(source|target)", "lex(source|target)", "p(target|source)", "lex(target|source)")
"""Names of the scores of a phrase table, in the order of Moses."""

COUNT_NAMES = ("count(target)", "count(source)", "count")

LINKS, AFFILIATIONS, SCORE = "links", "affiliations", "score"

ORIENTATIONS = tuple(
    f"{orientation} {side}" for side in ("previous", "next") for orientation in ("monotone", "swap", "discontinuous")
)
"""Names of the reordering scores with respect to the previous and the next phrase, in the order of Moses
(wbe-msd-bidirectional-fe)."""

MIN_PROBABILITY = 1e-40
"""Minimum probability that a column adds to a table; smaller probabilities are replaced by it. Moses uses the logarithm
of the probability and cannot distinguish values below exp(-100)."""

MAX_SCORE = 20.0
"""Maximum score in a column: a log probability is at most 0, and larger counts are implausible."""

REMEDY = "compute it again"


@contextmanager
def write_columns(
    path: StrPath, pairs: PhrasePairs, types: Mapping[str, DTypeLike], scores: Sequence[str] = (), **entries: object
) -> Iterator[ArrayWriter]:
    """Write a file of columns atomically; the ``with`` block appends values to the arrays.

    Args:
        pairs: the phrase pairs.
        types: type of each array by name.
        scores: names of the arrays that are scores, in the order of the table.
        entries: further header entries, such as ``name`` and ``begin`` of a score column.
    """
    with write_arrays(path, types) as out:
        yield out
        out.entries |= {"pairs": pairs.fingerprint, "scores": json.dumps(list(scores))}
        out.entries |= {name: str(value) for name, value in entries.items()}


class TableScores:
    """Scores of phrase pairs in a phrase table or reordering table, from a file of columns.

    Attributes:
        names: names of the scores in the order of the table.
        arrays: the arrays of the file by name.
    """

    def __init__(self, path: StrPath, pairs: PhrasePairs, command: str) -> None:
        """Map a file.

        Args:
            path: the file.
            pairs: the phrase pairs.
            command: command that creates such a file, for error messages.

        Raises:
            InputError: the file is missing or incomplete, or contains scores of other phrase pairs.
        """
        remedy = f"create it with `{command}`"
        self.arrays = ArrayFile(path, remedy)
        if self.arrays.entries.get("scores", "[]") == "[]":
            raise InputError(f"{path}: not a file of scores; {remedy}")
        _check_pairs(self.arrays, pairs)
        self.names: list[str] = json.loads(self.arrays.entries["scores"])
        lengths = {name: len(self.arrays[name]) for name in self.names}
        if not self.names or set(lengths.values()) != {len(pairs)}:
            raise InputError(f"{path}: does not have a score for each of the {len(pairs):,} pairs; {remedy}")

    def probabilities(self, rows: NDArray[np.int64] | slice) -> NDArray[np.float64]:
        """Return the scores of the pairs ``rows``, rounded to six significant digits, [rows, scores]."""
        return six_digits(np.stack([self.arrays[name][rows] for name in self.names], axis=1))

    def release(self) -> None:
        """Unmap the pages that have been read, e.g. in a pass over all pairs."""
        self.arrays.release()


def _check_pairs(arrays: ArrayFile, pairs: PhrasePairs) -> None:
    if arrays.entries.get("pairs") != pairs.fingerprint:
        raise InputError(f"{arrays.path}: has the scores of other phrase pairs than those of {pairs.path}; {REMEDY}")


class ColumnScores:
    """A score column: a natural logarithm or a count for each pair, from one file or from consecutive shards.

    Attributes:
        name: the paths of the files, for error messages.
        label: name of the column; ``score`` if the file has no name.
    """

    def __init__(self, paths: Sequence[StrPath], pairs: PhrasePairs | None = None) -> None:
        """Map files that `phrases column` has written.

        Args:
            paths: the file, or the files of all shards in order.
            pairs: the phrase pairs that were scored, for a check; None if they are not available.

        Raises:
            InputError: a file is missing or incomplete, a shard is missing, or the scores belong to other phrase pairs.
        """
        self.name = str(paths[0]) if len(paths) == 1 else f"{paths[0]} to {Path(paths[-1]).name}"
        self.label = SCORE
        self._parts: list[tuple[Path, NDArray[np.float32]]] = []
        end = 0
        for path in map(Path, paths):
            arrays = ArrayFile(path, REMEDY)
            if SCORE not in arrays or arrays[SCORE].dtype.kind != "f":
                raise InputError(f"{path}: not a file of `phrases column`; {REMEDY}")
            if pairs is not None:
                _check_pairs(arrays, pairs)
            if int(arrays.entries.get("begin", "0")) != end:
                raise InputError(f"{path}: is not the part after {self.name}: a shard is missing, or in another order")
            self.label = arrays.entries.get("name", SCORE)
            self._parts.append((path, arrays[SCORE]))
            end += len(arrays[SCORE])
        self._ends = np.cumsum([len(scores) for _, scores in self._parts])
        if pairs is not None and end != len(pairs):
            raise InputError(f"{self.name}: {end:,} scores, but {pairs.path} has {len(pairs):,} pairs; {REMEDY}")

    def __len__(self) -> int:
        return int(self._ends[-1])

    @property
    def is_count(self) -> bool:
        """Return whether all scores are integers, which means that they are counts and not log probabilities."""
        return all(np.array_equal(scores, np.rint(scores)) for _, scores in self._parts)

    def scores(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the scores of the pairs ``rows``, which may be in any order, [rows]."""
        order = np.argsort(rows, kind="stable")
        scores = np.empty(len(rows))
        scores[order] = np.concatenate([scores[places] for _, scores, places in self._pieces(rows[order])])
        return scores

    def release(self) -> None:
        """Unmap the pages that have been read, e.g. in a pass over all pairs."""
        for _, scores in self._parts:
            release_pages(scores.base)

    def _pieces(self, rows: NDArray[np.int64]) -> Iterator[tuple[Path, NDArray[np.float32], NDArray[np.int64]]]:
        """Yield the path and scores of each shard, and the ``rows`` (ascending) in it, as indices in the shard."""
        for (path, scores), after in zip(self._parts, self._ends, strict=True):
            first = int(after) - len(scores)
            yield path, scores, rows[slice(*np.searchsorted(rows, (first, after)))] - first

    def probabilities(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the probabilities exp(score) of pairs, at least ``MIN_PROBABILITY``.

        Args:
            rows: indices of the pairs, in ascending order.

        Returns:
            float64 [rows]; fewer elements if the column has fewer pairs.
        """
        pieces = []
        for path, scores, places in self._pieces(rows):
            piece = np.asarray(scores[places], np.float64)
            bad = np.flatnonzero(~np.isfinite(piece) | (piece > MAX_SCORE))
            if len(bad):
                raise InputError(
                    f"{path}: score {places[bad[0]] + 1} is {piece[bad[0]]:g}, not a log probability; {REMEDY}"
                )
            pieces.append(piece)
        return np.maximum(np.exp(np.concatenate(pieces)), MIN_PROBABILITY)


def open_columns(columns: Sequence[Sequence[StrPath]], pairs: PhrasePairs) -> list[ColumnScores]:
    """Map several score columns; each is given as a list of files, see ``ColumnScores``."""
    return [ColumnScores(paths, pairs) for paths in columns]


def arrays_of(scores: TableScores, names: Sequence[str], what: str) -> list[NDArray[Any]]:
    """Return arrays of a file of scores by name.

    Args:
        scores: the file.
        names: names of the arrays.
        what: remedy at the end of the error message.

    Raises:
        InputError: the file does not contain an array.
    """
    missing = [name for name in names if name not in scores.arrays]
    if missing:
        raise InputError(f"{scores.arrays.path}: has no {missing[0]}, as scores of an imported table; {what}")
    return [scores.arrays[name] for name in names]
