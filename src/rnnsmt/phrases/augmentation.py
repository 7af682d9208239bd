"""Addition of score columns to a phrase table, from arrays with one score per line.

If the table is part of a model with a moses.ini, a copy of the moses.ini with weights for the columns is written.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rnnsmt.base.errors import InputError
from rnnsmt.base.kernels.decorator import INNER, kernel
from rnnsmt.base.kernels.numbers import NUMBER_BYTES, put_number
from rnnsmt.base.kernels.table_lines import SCORES
from rnnsmt.base.parallel import atomic_blocks
from rnnsmt.base.progress import Meter
from rnnsmt.formats.ini import PHRASE_DICTIONARY, MosesIni, feature_count
from rnnsmt.formats.phrase_table import read_table_lines
from rnnsmt.phrases.column_files import ColumnScores

COLUMN_WEIGHT = 0.2
"""Weight before tuning of a column of log probabilities; untuned models of Moses have it for every phrase score."""

COUNT_WEIGHT = 0.0
"""Weight before tuning of a column of counts."""


def augment_table(table: str, columns: Sequence[Sequence[str]], output: str, threads: int = 1) -> dict[str, object]:
    """Write the table with an additional column of probabilities for each of ``columns``.

    Args:
        table: the phrase table, which is streamed; the rest of each line is copied unchanged.
        columns: the files of each column, in the order of the lines of the table.
        threads: number of compression threads.

    Returns:
        The statistics of the stage.
    """
    if Path(output).exists() and Path(table).exists() and Path(output).samefile(table):
        raise InputError(f"--output {output}: is the table itself; choose another file")
    opened = [ColumnScores(paths) for paths in columns]
    meter = Meter("adding columns")
    lines, scores = 0, 0
    with atomic_blocks(output, threads) as out:
        for text, bounds, scores in read_table_lines(table):  # noqa: B007  scores is used after the loop
            count = len(bounds)
            parts = [column.probabilities(np.arange(lines, lines + count)) for column in opened]
            lines += count
            for column in opened:
                column.release()
            if any(len(values) < count for values in parts):
                continue  # the table is longer than a column: only count the lines, for the error message
            buffer = np.empty(max_output_bytes(len(text), count, len(parts)), np.uint8)
            filled = insert_scores(text, bounds, np.stack(parts, 1), buffer)
            out.write(buffer[:filled].data)
            meter.add(count)
        if not lines:
            raise InputError(f"{table}: the table is empty; create it again")
        for column in opened:
            if len(column) != lines:
                raise InputError(
                    f"{column.name}: {len(column)} scores, but {table} has {lines} lines; they are scores of another "
                    "table: score this table (`phrases import-table`, `phrases column`)"
                )
    return {"lines": lines, "scores per line": scores + len(opened)}


def augment_model(
    path: str,
    columns: Sequence[Sequence[str]],
    output: str,
    output_ini: str,
    threads: int = 1,
) -> dict[str, object]:
    """Write the table of a model with additional columns, and a copy of its moses.ini that refers to this table.

    All paths in the copy are absolute, because Moses resolves relative paths against its working directory.

    Args:
        path: the moses.ini.
        columns, output, threads: as in ``augment_table``.

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
    first = next(read_table_lines(before), None)
    if first is not None and first.scores != scores:
        raise InputError(
            f"{before}, line 1: {first.scores} scores, but {path} has {scores} weights of {table.name}; "
            "correct num-features and the weights"
        )
    figures = augment_table(str(before), columns, output, threads)
    for feature in ini.features:
        if "path" in feature.options:
            feature.options["path"] = str(ini.file_of(feature).resolve())
    table.options |= {"path": str(Path(output).resolve()), "num-features": str(scores + len(columns))}
    ini.weights[table.name] += [COUNT_WEIGHT if ColumnScores(paths).is_count else COLUMN_WEIGHT for paths in columns]
    ini.write(output_ini)
    return figures


_BLANK, _NEWLINE = 32, 10


@kernel(**INNER)
def _copy(block: Any, begin: Any, end: Any, out: Any, at: Any) -> Any:
    """Copy block[begin:end] to ``at``; return the index after the copy.

    This is a loop, because numba takes seconds to compile an assignment of slices.
    """
    for position in range(begin, end):
        out[at] = block[position]
        at += 1
    return at


@kernel()
def insert_scores(block: Any, bounds: Any, columns: Any, out: Any) -> Any:
    """Copy whole lines, inserting numbers after the scores of each line; return the number of bytes written.

    Args:
        block: uint8, lines with their newlines.
        bounds: int64 [lines, FIELDS, 2], as filled by ``split_table_lines``.
        columns: float64 [lines, C], the C numbers to insert into each line, in the range of ``put_number``.
        out: uint8 [at least ``max_output_bytes``], filled.
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
