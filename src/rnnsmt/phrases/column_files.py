"""Files of columns: arrays with one element for each pair of a store (``rnnsmt.phrases.pairs``), by name.

A file of arrays (``rnnsmt.base.array_file``), with the entry ``pairs``, the fingerprint of the store. There are three
kinds:

* Scores of the phrase table (`phrases score`): scores in Moses' order (``SCORE_NAMES``), ``links`` (bit 8 · target +
  source), the counts of target phrase, source phrase and pair (``COUNT_NAMES``), and ``affiliations``, which has one
  element for each target word (``rnnsmt.align.affiliation``). An imported table has no links; its counts are 0 if it
  does not have them.
* Reordering scores (`phrases reordering`): ``ORIENTATIONS``.
* A score column of systems (`phrases column`): ``score``, natural logarithms or counts, with the entry ``name``. A file
  may be a part: the entry ``begin`` is its first pair.

Scores of the first two kinds are probabilities of six significant digits, as in Moses' text, in single precision
(``rnnsmt.base.kernels.decimals``). The entry ``scores`` lists their names in order (JSON).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rnnsmt.base.array_file import ArrayFile, ArrayWriter, write_arrays
from rnnsmt.base.errors import InputError
from rnnsmt.base.kernels.decimals import six_digits
from rnnsmt.base.paths import StrPath
from rnnsmt.phrases.pairs import PhrasePairs

SCORE_NAMES = ("p(source|target)", "lex(source|target)", "p(target|source)", "lex(target|source)")
"""Scores of a phrase table, in Moses' order."""

COUNT_NAMES = ("count(target)", "count(source)", "count")

LINKS, AFFILIATIONS, SCORE = "links", "affiliations", "score"

ORIENTATIONS = tuple(
    f"{orientation} {side}" for side in ("previous", "next") for orientation in ("monotone", "swap", "discontinuous")
)
"""Reordering scores with respect to the previous and the next phrase, in Moses' order (wbe-msd-bidirectional-fe)."""

MIN_PROBABILITY = 1e-40
"""Minimum probability of a column in a table; smaller ones are replaced. Moses takes the logarithm of a column, and
cannot distinguish values below exp(-100)."""

MAX_SCORE = 20.0
"""Maximum score of a column: a log probability is not positive, and a larger count is not plausible."""

REMEDY = "compute it again"


@contextmanager
def write_columns(
    path: StrPath, pairs: PhrasePairs, types: Mapping[str, DTypeLike], scores: Sequence[str] = (), **entries: object
) -> Iterator[ArrayWriter]:
    """Write columns of a store, atomically; the arrays are appended to in the ``with`` block.

    Args:
        types: the types of the arrays by name.
        scores: names of the scores in the order of a table.
        entries: further entries, ``name`` and ``begin`` of a column.
    """
    with write_arrays(path, types) as out:
        yield out
        out.entries |= {"pairs": pairs.fingerprint, "scores": json.dumps(list(scores))}
        out.entries |= {name: str(value) for name, value in entries.items()}


class TableScores:
    """The scores of a table or reordering table of a store.

    Attributes:
        names: names of the scores in the order of the table.
        arrays: the arrays, by name.
    """

    def __init__(self, path: StrPath, pairs: PhrasePairs, command: str) -> None:
        """Map a file; ``command`` creates it.

        Raises:
            InputError: the file is not complete, or its scores are those of other pairs.
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
        """Return the scores of some pairs as numbers of six digits [rows, scores]."""
        return six_digits(np.stack([self.arrays[name][rows] for name in self.names], axis=1))

    def release(self) -> None:
        """Unmap the pages that have been read, e.g. in a pass over all pairs."""
        self.arrays.release()


def _check_pairs(arrays: ArrayFile, pairs: PhrasePairs) -> None:
    if arrays.entries.get("pairs") != pairs.fingerprint:
        raise InputError(f"{arrays.path}: has the scores of other phrase pairs than those of {pairs.path}; {REMEDY}")


class ColumnScores:
    """One score for each pair, a natural logarithm or a count, from one file or from consecutive parts.

    Attributes:
        name: the files, for messages.
        label: name of the score, ``score`` if it is not known.
    """

    def __init__(self, paths: Sequence[StrPath], pairs: PhrasePairs | None = None) -> None:
        """Map files that `phrases column` has written.

        Args:
            pairs: the store whose pairs were scored; None: not known, as for the lines of a table in text form.

        Raises:
            InputError: a file is not complete, parts are missing, or the scores are those of other pairs.
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
        """Return whether all scores are whole numbers, as counts and unlike log probabilities."""
        return all(np.array_equal(scores, np.rint(scores)) for _, scores in self._parts)

    def scores(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the scores of some pairs, in any order."""
        order = np.argsort(rows, kind="stable")
        scores = np.empty(len(rows))
        scores[order] = np.concatenate([scores[places] for _, scores, places in self._pieces(rows[order])])
        return scores

    def _pieces(self, rows: NDArray[np.int64]) -> Iterator[tuple[Path, NDArray[np.float32], NDArray[np.int64]]]:
        """Yield the parts with the places of ``rows``, ascending, in them."""
        for (path, scores), after in zip(self._parts, self._ends, strict=True):
            first = int(after) - len(scores)
            yield path, scores, rows[slice(*np.searchsorted(rows, (first, after)))] - first

    def probabilities(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return exp(score) of some pairs, at least ``MIN_PROBABILITY``.

        Args:
            rows: the pairs, ascending.

        Returns:
            float64 [rows], or fewer elements if the column is shorter.
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
    """Map the columns of a system, each in one or several files."""
    return [ColumnScores(paths, pairs) for paths in columns]


def arrays_of(scores: TableScores, names: Sequence[str], what: str) -> list[NDArray[Any]]:
    """Return further arrays of a table by name.

    Raises:
        InputError: the file lacks one; ``what`` needs it.
    """
    missing = [name for name in names if name not in scores.arrays]
    if missing:
        raise InputError(f"{scores.arrays.path}: has no {missing[0]}, as scores of an imported table; {what}")
    return [scores.arrays[name] for name in names]
