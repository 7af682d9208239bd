"""Additional columns of a phrase table, from arrays with one score per line.

The columns can be added to the table of a model of Moses, whose moses.ini is then copied with their weights.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.arrays import read_array
from rnnsmt.base.errors import InputError
from rnnsmt.base.kernels.decorator import INNER, kernel
from rnnsmt.base.kernels.numbers import NUMBER_BYTES, put_number
from rnnsmt.base.kernels.table_lines import SCORES
from rnnsmt.base.parallel import atomic_blocks
from rnnsmt.base.progress import Meter
from rnnsmt.formats.ini import PHRASE_DICTIONARY, MosesIni, feature_count
from rnnsmt.formats.phrase_table import read_phrase_lines
from rnnsmt.phrases.filtering import read_kept_lines

MIN_PROBABILITY = 1e-40
"""Minimum probability; smaller ones are replaced. Moses takes the logarithm of a column, and cannot distinguish values
below exp(-100)."""

COLUMN_WEIGHT = 0.2
"""Weight of a log probability before tuning, the same as that of every phrase score in Moses' untuned models."""

COUNT_WEIGHT = 0.0
"""Weight of a count before tuning."""

MAX_SCORE = 20.0
"""Maximum score: a log probability is not positive, and a larger count is not plausible."""


class ColumnFiles:
    """One score per line of the table, a natural logarithm, from one file or from consecutive parts."""

    def __init__(self, paths: Sequence[str]) -> None:
        """Open one-dimensional ``.npy`` files; they are memory-mapped."""
        self.name = paths[0] if len(paths) == 1 else f"{paths[0]} to {Path(paths[-1]).name}"
        self._parts = [(path, read_array(path, np.floating, "score again")) for path in paths]
        self._ends = np.cumsum([len(scores) for _, scores in self._parts])

    def __len__(self) -> int:
        return int(self._ends[-1])

    @property
    def is_count(self) -> bool:
        """Return whether all scores are whole numbers, as counts and unlike log probabilities."""
        return all(np.array_equal(scores, np.rint(scores)) for _, scores in self._parts)

    def probabilities(self, lines: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return exp(score) of some lines, at least ``MIN_PROBABILITY``.

        Args:
            lines: 0-based line numbers, ascending.

        Returns:
            float64 [lines], or fewer elements if the column is shorter.
        """
        pieces = []
        for (path, scores), after in zip(self._parts, self._ends, strict=True):
            first = int(after) - len(scores)
            places = lines[slice(*np.searchsorted(lines, (first, after)))] - first
            piece = np.asarray(scores[places], np.float64)
            bad = np.flatnonzero(~np.isfinite(piece) | (piece > MAX_SCORE))
            if len(bad):
                raise InputError(
                    f"{path}: score {places[bad[0]] + 1} is {piece[bad[0]]:g}, not a log probability; "
                    "compute the scores again"
                )
            pieces.append(piece)
        return np.maximum(np.exp(np.concatenate(pieces)), MIN_PROBABILITY)


def augment_table(
    table: str, columns: Sequence[Sequence[str]], output: str, threads: int = 1, kept_lines: str | None = None
) -> dict[str, object]:
    """Write the table with an additional column of probabilities for each of ``columns``.

    Args:
        table: the phrase table; it is streamed, and everything else is copied byte by byte.
        columns: for each column its files, in the order of the table's lines. With ``kept_lines``, a column has the
            scores of all lines before filtering.
        threads: number of compression threads.
        kept_lines: file of ``filter_tables`` with the numbers of this table's lines in the table that was scored; None
            if all lines were kept.

    Returns:
        The statistics of the stage.
    """
    if Path(output).exists() and Path(table).exists() and Path(output).samefile(table):
        raise InputError(f"--output {output}: is the table itself; choose another file")
    opened = [ColumnFiles(paths) for paths in columns]
    numbers, scored = (None, 0) if kept_lines is None else read_kept_lines(kept_lines)
    meter = Meter("adding columns")
    lines, scores = 0, 0
    with atomic_blocks(output, threads) as out:
        for text, bounds, scores in read_phrase_lines(table):  # noqa: B007  scores is used after the loop
            count = len(bounds)
            places = np.arange(lines, lines + count) if numbers is None else numbers[lines : lines + count]
            parts = [column.probabilities(places) for column in opened]
            if any(len(values) < count for values in parts):
                lines += count
                continue  # the table is longer than a column or the kept lines: only count lines, for the message
            buffer = np.empty(max_output_bytes(len(text), count, len(parts)), np.uint8)
            filled = insert_scores(text, bounds, np.stack(parts, 1), buffer)
            out.write(buffer[:filled].data)
            lines += count
            meter.add(count)
        if not lines and numbers is None:
            raise InputError(f"{table}: the table is empty; create it again")
        if numbers is None:
            scored, size = lines, f"{table} has {lines} lines"
            remedy = "score this table or, if it is a filtered table, add --kept-lines"
        else:
            size = f"the unfiltered table of {kept_lines} has {scored} lines, of which {len(numbers)} were kept"
            remedy = "specify the scores of that table; for scores of its kept lines, omit --kept-lines"
            if len(numbers) != lines:
                raise InputError(
                    f"{kept_lines}: {len(numbers)} lines, but {table} has {lines}; run `phrases filter` again"
                )
        for column in opened:
            if len(column) != scored:
                raise InputError(
                    f"{column.name}: {len(column)} scores, but {size}; they are scores of another table: {remedy}"
                )
    return {"lines": lines, "scores per line": scores + len(opened)}


def augment_model(
    path: str,
    columns: Sequence[Sequence[str]],
    output: str,
    output_ini: str,
    threads: int = 1,
    kept_lines: str | None = None,
) -> dict[str, object]:
    """Write the table of a model with additional columns, and a copy of its moses.ini that refers to this table.

    Moses resolves relative paths against its working directory: those in the copy are absolute.

    Args:
        path: the moses.ini.
        columns, output, threads, kept_lines: as in ``augment_table``.

    Returns:
        The statistics of the stage.
    """
    ini = MosesIni.read(path)
    table = next((feature for feature in ini.features if feature.kind == PHRASE_DICTIONARY), None)
    if table is None:
        raise InputError(
            f"{path}: has no {PHRASE_DICTIONARY}; scores can be added to a phrase table in text form only, so name "
            "the text file (phrase-table.gz) from which a binary table was built"
        )
    before, scores = ini.located(table), feature_count(table, path)
    first = next(read_phrase_lines(before), None)
    if first is not None and first.scores != scores:
        raise InputError(
            f"{before}, line 1: {first.scores} scores, but {path} has {scores} weights of {table.name}; "
            "correct num-features and the weights"
        )
    figures = augment_table(str(before), columns, output, threads, kept_lines)
    for feature in ini.features:
        if "path" in feature.options:
            feature.options["path"] = str(ini.file_of(feature).resolve())
    table.options |= {"path": str(Path(output).resolve()), "num-features": str(scores + len(columns))}
    ini.weights[table.name] += [COUNT_WEIGHT if ColumnFiles(paths).is_count else COLUMN_WEIGHT for paths in columns]
    ini.write(output_ini)
    return figures


_BLANK, _NEWLINE = 32, 10


@kernel(**INNER)
def _copy(block: Any, begin: Any, end: Any, out: Any, at: Any) -> Any:
    """Copy block[begin:end] to ``at``; return the index after the copy.

    A loop, because numba takes seconds to compile this as one assignment of slices.
    """
    for position in range(begin, end):
        out[at] = block[position]
        at += 1
    return at


@kernel()
def insert_scores(block: Any, bounds: Any, columns: Any, out: Any) -> Any:
    """Copy whole lines with additional numbers after the scores of each; return the number of bytes written.

    Args:
        block: uint8, lines with their newline.
        bounds: int64 [lines, FIELDS, 2], as filled by ``split_phrase_lines``.
        columns: float64 [lines, C], in the range of ``put_number``.
        out: uint8, at least ``max_output_bytes``, filled.
    """
    at, begin = 0, 0
    for line in range(bounds.shape[0]):
        index = bounds[line, SCORES, 1]
        end = index
        while block[end] != _NEWLINE:
            end += 1
        at = _copy(block, begin, index, out, at)
        for column in range(columns.shape[1]):
            out[at] = _BLANK
            at = put_number(out, at + 1, columns[line, column])
        at = _copy(block, index, end + 1, out, at)
        begin = end + 1
    return at


def max_output_bytes(block_bytes: int, lines: int, columns: int) -> int:
    """Return the maximum number of bytes that ``insert_scores`` writes."""
    return block_bytes + lines * columns * (NUMBER_BYTES + 1)
