"""Strict parsing and formatting of lines of Moses' phrase tables and reordering tables.

A phrase-table line is ``source ||| target ||| scores ||| alignment ||| counts`` and may have further fields; a line of
a reordering table is ``source ||| target ||| probabilities``. White space around a field is not part of it. The words
of a phrase are separated by runs of spaces and tabs, as in Moses; here they are joined by single spaces.
``rnnsmt.base.kernels.table_lines`` splits and checks lines of complete tables by the same definition; this module
reports the error of an invalid line.
"""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.io import InputError, check_utf8, read_byte_lines, read_line_blocks
from rnnsmt.base.kernels.strings import POW10
from rnnsmt.base.kernels.table_lines import split_phrase_lines
from rnnsmt.base.parallel import Writer

BUFFER_BYTES = 1 << 20
"""Size of the buffer for lines, in bytes."""

BLANKS = " \t\r"
"""White space around a field, between numbers and between links; between words, a carriage return is a character."""

_GAP = re.compile(rb"[ \t]+")


@dataclass
class PhraseEntry:
    """One line of a phrase table.

    Attributes:
        scores: probabilities, or other non-negative numbers whose logarithms are features.
        alignment: 0-based (source, target) positions, in the order of the line.
        counts: counts of the target, of the source, and of both; empty if the table has none.
        further: fields after the counts.
    """

    source: str
    target: str
    scores: list[float]
    alignment: list[tuple[int, int]] = field(default_factory=list)
    counts: list[float] = field(default_factory=list)
    further: list[str] = field(default_factory=list)


@dataclass
class ReorderingEntry:
    """One line of a reordering table; ``wbe-msd-bidirectional-fe`` has six probabilities."""

    source: str
    target: str
    probabilities: list[float]


class PhraseLines(NamedTuple):
    """Whole lines of a phrase table.

    Attributes:
        text: ``uint8``, the bytes of the lines.
        bounds: ``int64`` [lines, 3, 2], where source, target and scores of each line begin and end in ``text``.
        scores: number of scores of a line, the same in the whole table.
    """

    text: NDArray[np.uint8]
    bounds: NDArray[np.int64]
    scores: int


def read_table_blocks(path: str | Path) -> Iterator[bytes]:
    """Yield a phrase table or reordering table in blocks of whole lines of UTF-8 text, as ``read_line_blocks``.

    The words of its phrases are separated by single spaces, which the readers of the blocks require.
    """
    lines = 0
    for block in read_line_blocks(path):
        check_utf8(block, path, lines)
        lines += block.count(b"\n")
        yield single_spaced(block)


def single_spaced(lines: bytes) -> bytes:
    """Return lines of a table with single spaces between the words of their phrases."""
    # almost all tables are returned here; the other fields of a line may contain further blanks
    if b"  " not in lines and b"\t" not in lines:
        return lines
    return b"\n".join(map(_single_spaced, lines.split(b"\n")))


def _single_spaced(line: bytes) -> bytes:
    phrases = line[: line.find(b"|||", line.find(b"|||") + 3)]
    if b"  " not in phrases and b"\t" not in phrases:
        return line
    fields = line.split(b"|||", 2)
    for side, text in enumerate(fields[:2]):
        phrase = text.strip(BLANKS.encode())
        if b"  " in phrase or b"\t" in phrase:
            fields[side] = text.replace(phrase, _GAP.sub(b" ", phrase))
    return b"|||".join(fields)


def read_phrase_lines(table: str | Path) -> Iterator[PhraseLines]:
    """Read and check the lines of a phrase table in blocks; a table without lines yields nothing."""
    lines, scores = 0, 0
    for block in read_table_blocks(table):
        text, bounds = np.frombuffer(block, np.uint8), np.empty((block.count(b"\n"), 3, 2), np.int64)
        scores, bad = split_phrase_lines(text, POW10, scores, bounds)
        if bad >= 0:
            refuse_line(block.split(b"\n")[bad], table, lines + bad + 1, scores or None, reordering=False)
        yield PhraseLines(text, bounds, scores)
        lines += len(bounds)


def read_phrase_table(path: str | Path, n_scores: int | None = None) -> Iterator[PhraseEntry]:
    """Yield the entries of a phrase table.

    Args:
        n_scores: number of scores of every line; None: that of the first line.
    """
    for number, line in enumerate(read_byte_lines(path), 1):
        entry = parse_phrase_line(line, path, number, n_scores)
        n_scores = len(entry.scores)
        yield entry


def read_reordering_table(path: str | Path, n_probabilities: int | None = None) -> Iterator[ReorderingEntry]:
    """Yield the entries of a reordering table.

    Args:
        n_probabilities: number of probabilities of every line; None: that of the first line.
    """
    for number, line in enumerate(read_byte_lines(path), 1):
        entry = parse_reordering_line(line, path, number, n_probabilities)
        n_probabilities = len(entry.probabilities)
        yield entry


def parse_phrase_line(line: bytes, path: str | Path, number: int, n_scores: int | None = None) -> PhraseEntry:
    """Parse a line of a phrase table.

    Args:
        line: the line without newline.
        path, number: file and line number for the error message.
        n_scores: number of scores; None: at least one.
    """
    fields = _fields(line, path, number)
    source, target, scores = fields[:3]
    entry = PhraseEntry(source, target, _scores(scores, "score", n_scores, path, number))
    if len(fields) > 3:
        lengths = len(_tokens(source, " ")), len(_tokens(target, " "))
        entry.alignment = [_link(token, lengths, path, number) for token in _tokens(fields[3])]
    if len(fields) > 4:
        entry.counts = [_number(token, "count", path, number) for token in _tokens(fields[4])]
        entry.further = fields[5:]
    return entry


def refuse_line(line: bytes, path: str | Path, number: int, n_scores: int | None, *, reordering: bool) -> NoReturn:
    """Raise the error for a line that was rejected by ``rnnsmt.base.kernels.table_lines``."""
    parse = parse_reordering_line if reordering else parse_phrase_line
    parse(line, path, number, n_scores)
    _reject(path, number, f"not a line of a {'reordering' if reordering else 'phrase'} table")


def parse_reordering_line(
    line: bytes, path: str | Path, number: int, n_probabilities: int | None = None
) -> ReorderingEntry:
    """Parse a line of a reordering table.

    Args:
        line: the line without newline.
        path, number: file and line number for the error message.
        n_probabilities: number of probabilities; None: at least one.
    """
    fields = _fields(line, path, number)
    if len(fields) != 3:
        _reject(path, number, f"{len(fields)} fields, a reordering table has 3")
    return ReorderingEntry(fields[0], fields[1], _scores(fields[2], "probability", n_probabilities, path, number))


def rewritten_tables(phrase_table: str, reordering_table: str, output_dir: str) -> tuple[Path, Path]:
    """Return the paths of both tables in ``output_dir``, under the same names."""
    paths = Path(phrase_table), Path(reordering_table)
    outputs = Path(output_dir) / paths[0].name, Path(output_dir) / paths[1].name
    if outputs[0] == outputs[1]:
        raise InputError(f"{phrase_table} and {reordering_table} have the same name; rename one of them")
    for path in paths:
        if path.exists() and any(output.exists() and output.samefile(path) for output in outputs):
            raise InputError(f"--output-dir {output_dir}: is the directory of {path.name}; choose another directory")
    return outputs


def write_table_lines(
    out: Writer, kernel: Callable[..., tuple[int, int]], lines: int, arguments: tuple[Any, ...]
) -> None:
    """Write ``lines`` lines with a kernel that fills a buffer.

    Args:
        kernel: ``kernel(start, *arguments, buffer)`` writes lines from ``start``, and returns the first line that did
            not fit and the number of bytes.
    """
    buffer = np.empty(BUFFER_BYTES, np.uint8)
    start = 0
    while start < lines:
        reached, filled = kernel(start, *arguments, buffer)
        if reached == start:
            buffer = np.empty(2 * len(buffer), np.uint8)  # a single line did not fit
            continue
        out.write(buffer[:filled].data)
        start = reached


def _fields(line: bytes, path: str | Path, number: int) -> list[str]:
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        _reject(path, number, f"not UTF-8 at byte {error.start}")
    fields = [item.strip(BLANKS) for item in text.split("|||")]
    if len(fields) < 3:
        _reject(path, number, f"{len(fields)} field(s) between |||, at least 3 are required")
    for side, name in enumerate(("source", "target")):
        if not fields[side]:
            _reject(path, number, f"the {name} phrase is empty")
        fields[side] = " ".join(_tokens(fields[side], " \t"))
    return fields


def _scores(text: str, what: str, expected: int | None, path: str | Path, number: int) -> list[float]:
    """Return the numbers of the third field."""
    scores = [_number(token, what, path, number) for token in _tokens(text)]
    if not scores or (expected is not None and len(scores) != expected):
        required = "at least 1" if expected is None else str(expected)
        _reject(path, number, f"the third field has {len(scores)} numbers, expected: {required}")
    return scores


def _tokens(text: str, separators: str = BLANKS) -> list[str]:
    """Split a field at ``separators``, without empty tokens."""
    return [token for token in re.split(f"[{separators}]", text) if token]


def _number(token: str, what: str, path: str | Path, number: int) -> float:
    """Return a finite non-negative number."""
    try:
        value = float(token) if token.isascii() and "_" not in token else math.nan
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0.0):
        _reject(path, number, f"'{token[:40]}' is not a {what} (finite and not negative)")
    return value


def _link(token: str, lengths: tuple[int, int], path: str | Path, number: int) -> tuple[int, int]:
    parts = token.split("-")
    whole = len(parts) == 2 and all(digits.isascii() and digits.isdigit() and len(digits) < 10 for digits in parts)
    if not whole or int(parts[0]) >= lengths[0] or int(parts[1]) >= lengths[1]:
        _reject(
            path, number, f"'{token[:40]}' is not a link i-j between phrases of {lengths[0]} and {lengths[1]} words"
        )
    return int(parts[0]), int(parts[1])


def _reject(path: str | Path, number: int, problem: str) -> NoReturn:
    raise InputError(f"{path}, line {number}: {problem}; create the table again")
