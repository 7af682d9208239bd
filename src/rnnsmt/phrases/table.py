"""Lines of Moses' phrase tables and reordering tables, read strictly and written back.

A phrase-table line is ``source ||| target ||| scores ||| alignment ||| counts`` and may have further fields; a line of
a reordering table is ``source ||| target ||| probabilities``. Blanks around a field are no part of it.
``rnnsmt.kernels.table_lines`` splits and checks lines by the same definition, for whole tables; here is what says what
is wrong with a line.
"""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from rnnsmt.io import InputError, read_byte_lines
from rnnsmt.parallel_gzip import Writer

BUFFER_BYTES = 1 << 20
"""Bytes of lines that are handed on at once."""

BLANKS = " \t\r"
"""What may stand around a field and separates its numbers and links; words are separated by spaces."""


@dataclass
class PhraseEntry:
    """One line of a phrase table.

    scores: probabilities, or other non-negative numbers whose log is a feature. alignment: (source, target) positions
    from 0, in the line's order. counts: of the target, of the source, of both; empty where the table has none.
    further: the fields after the counts.
    """

    source: str
    target: str
    scores: list[float]
    alignment: list[tuple[int, int]] = field(default_factory=list)
    counts: list[float] = field(default_factory=list)
    further: list[str] = field(default_factory=list)


@dataclass
class ReorderingEntry:
    """One line of a reordering table; probabilities: six in ``wbe-msd-bidirectional-fe``."""

    source: str
    target: str
    probabilities: list[float]


def read_phrase_table(path: str | Path, n_scores: int | None = None) -> Iterator[PhraseEntry]:
    """Yield the entries of a phrase table; every line must have as many scores as the first, or ``n_scores``.

    Raises:
        InputError: as ``parse_phrase_line`` and ``rnnsmt.io.read_byte_lines``.
    """
    for number, line in enumerate(read_byte_lines(path), 1):
        entry = parse_phrase_line(line, path, number, n_scores)
        n_scores = len(entry.scores)
        yield entry


def read_reordering_table(path: str | Path, n_probabilities: int | None = None) -> Iterator[ReorderingEntry]:
    """Yield the entries of a reordering table, all with as many probabilities as the first, or the given number.

    Raises:
        InputError: as ``parse_reordering_line`` and ``rnnsmt.io.read_byte_lines``.
    """
    for number, line in enumerate(read_byte_lines(path), 1):
        entry = parse_reordering_line(line, path, number, n_probabilities)
        n_probabilities = len(entry.probabilities)
        yield entry


def parse_phrase_line(line: bytes, path: str | Path, number: int, n_scores: int | None = None) -> PhraseEntry:
    """Read one line of a phrase table.

    Args:
        line: without its newline.
        path, number: for the error's sentence.
        n_scores: how many scores there must be; None: at least one.

    Raises:
        InputError: fewer than three fields, an empty phrase, another number of scores, a score that is NaN, infinite or
            negative, an alignment point outside the phrases, a count that is not a count; text that is not UTF-8.
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
    """Say what is wrong with a line that ``rnnsmt.kernels.table_lines`` refused.

    Raises:
        InputError: always; as ``parse_phrase_line`` or ``parse_reordering_line``.
    """
    parse = parse_reordering_line if reordering else parse_phrase_line
    parse(line, path, number, n_scores)
    _complain(path, number, "not a line of such a table")


def parse_reordering_line(
    line: bytes, path: str | Path, number: int, n_probabilities: int | None = None
) -> ReorderingEntry:
    """Read one line of a reordering table.

    Raises:
        InputError: other than three fields, an empty phrase, another number of probabilities, one that is none.
    """
    fields = _fields(line, path, number)
    if len(fields) != 3:
        _complain(path, number, f"{len(fields)} fields, a reordering table has 3")
    return ReorderingEntry(fields[0], fields[1], _scores(fields[2], "probability", n_probabilities, path, number))


def format_phrase_line(entry: PhraseEntry) -> str:
    """The line of an entry as Moses writes it, without newline: six significant digits, one blank between tokens."""
    fields = [entry.source, entry.target, " ".join(f"{score:.6g}" for score in entry.scores)]
    if entry.alignment or entry.counts or entry.further:
        fields.append(" ".join(f"{i}-{j}" for i, j in entry.alignment))
        fields.append(" ".join(f"{count:.15g}" for count in entry.counts))
        fields += entry.further
    return " ||| ".join(fields).replace("|||  |||", "||| |||").replace("|||  |||", "||| |||").rstrip(" ")


def format_reordering_line(entry: ReorderingEntry) -> str:
    """The line of an entry as Moses writes it, without newline."""
    return f"{entry.source} ||| {entry.target} ||| {' '.join(f'{p:.6g}' for p in entry.probabilities)}"


def line_order(entry: PhraseEntry | ReorderingEntry) -> bytes:
    """What the lines of a table are sorted by, as ``LC_ALL=C sort`` does it."""
    return f"{entry.source} ||| {entry.target} ||| ".encode()


def rewritten_tables(phrase_table: str, reordering_table: str, output_dir: str, *others: str) -> tuple[Path, Path]:
    """Where both tables are written anew: under the same names in ``output_dir``.

    Raises:
        InputError: both have one name; one of them, or of the ``others`` that are read, would overwrite itself.
    """
    paths = Path(phrase_table), Path(reordering_table)
    outputs = Path(output_dir) / paths[0].name, Path(output_dir) / paths[1].name
    if outputs[0] == outputs[1]:
        raise InputError(f"{phrase_table} and {reordering_table} have the same name; their outputs would be one file")
    for path in (*paths, *map(Path, others)):
        if path.exists() and any(output.exists() and output.samefile(path) for output in outputs):
            raise InputError(f"--output-dir {output_dir}: holds {path.name} itself; choose another folder")
    return outputs


def write_table_lines(
    out: Writer, kernel: Callable[..., tuple[int, int]], lines: int, arguments: tuple[Any, ...]
) -> None:
    """Let ``kernel(start, *arguments, buffer)`` write ``lines`` lines buffer by buffer."""
    buffer = np.empty(BUFFER_BYTES, np.uint8)
    start = 0
    while start < lines:
        reached, filled = kernel(start, *arguments, buffer)
        if reached == start:
            buffer = np.empty(2 * len(buffer), np.uint8)  # one line with endless words
            continue
        out.write(buffer[:filled].data)
        start = reached


def _fields(line: bytes, path: str | Path, number: int) -> list[str]:
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        _complain(path, number, f"not UTF-8 at byte {error.start}")
    fields = [part.strip(BLANKS) for part in text.split("|||")]
    if len(fields) < 3:
        _complain(path, number, f"{len(fields)} field(s) between |||, at least 3 are needed")
    for name, phrase in zip(("source", "target"), fields, strict=False):
        if not phrase:
            _complain(path, number, f"the {name} phrase is empty")
    return fields


def _scores(text: str, what: str, expected: int | None, path: str | Path, number: int) -> list[float]:
    scores = [_number(token, what, path, number) for token in _tokens(text)]
    if not scores or (expected is not None and len(scores) != expected):
        wanted = "at least 1" if expected is None else str(expected)
        _complain(path, number, f"the third field has {len(scores)} numbers, needed: {wanted}")
    return scores


def _tokens(text: str, separators: str = BLANKS) -> list[str]:
    return [token for token in re.split(f"[{separators}]", text) if token]


def _number(token: str, what: str, path: str | Path, number: int) -> float:
    try:
        value = float(token) if token.isascii() and "_" not in token else math.nan
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0.0):
        _complain(path, number, f"'{token[:40]}' is no {what} (a number, not negative, finite)")
    return value


def _link(token: str, lengths: tuple[int, int], path: str | Path, number: int) -> tuple[int, int]:
    parts = token.split("-")
    whole = len(parts) == 2 and all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts)
    if not whole or int(parts[0]) >= lengths[0] or int(parts[1]) >= lengths[1]:
        _complain(path, number, f"'{token[:40]}' is no link i-j between phrases of {lengths[0]} and {lengths[1]} words")
    return int(parts[0]), int(parts[1])


def _complain(path: str | Path, number: int, problem: str) -> NoReturn:
    raise InputError(f"{path}, line {number}: {problem}; make the table again")
