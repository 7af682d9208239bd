"""Reading of Moses' phrase tables and reordering tables, and error messages for their lines.

A line of a phrase table is ``source ||| target ||| scores ||| alignment ||| counts``; a line of a reordering table is
``source ||| target ||| probabilities``. As in Moses, further fields are ignored, white space around a field is not part
of it, and the words of a phrase are separated by runs of spaces and tabs, which the functions replace by single spaces.
``rnnsmt.base.kernels.table_lines`` splits and checks the lines.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.errors import InputError
from rnnsmt.base.kernels.strings import POW10
from rnnsmt.base.kernels.table_lines import COUNTS, FIELDS, LINKS, SCORES, SOURCE, TARGET, numbers, split_table_lines
from rnnsmt.base.paths import StrPath
from rnnsmt.base.reading import check_utf8, read_line_blocks

BLANKS = b" \t\r"
"""White space around a field, between numbers and between links; in a phrase, a carriage return is part of a word."""

_GAP = re.compile(rb"[ \t]+")


class TableLines(NamedTuple):
    """Whole lines of a phrase table or reordering table.

    Attributes:
        text: ``uint8``, the bytes of the lines.
        bounds: ``int64`` [lines, 5, 2], begin and end in ``text`` of the five fields of each line: source, target,
            scores, alignment and counts. Missing fields are empty. In a reordering table, only the first three fields
            are checked.
        scores: number of scores per line, which is the same in the whole table.
    """

    text: NDArray[np.uint8]
    bounds: NDArray[np.int64]
    scores: int


def read_table_blocks(path: StrPath) -> Iterator[bytes]:
    """Yield a phrase table or reordering table in blocks of whole lines of UTF-8 text, like ``read_line_blocks``.

    In the blocks, the words of a phrase are separated by single spaces.
    """
    lines = 0
    for block in read_line_blocks(path):
        check_utf8(block, path, lines)
        lines += block.count(b"\n")
        yield single_spaced(block)


def single_spaced(lines: bytes) -> bytes:
    """Return lines of a table with single spaces between the words of phrases."""
    # fast path for almost all tables; other fields than phrases may contain further blanks
    if b"  " not in lines and b"\t" not in lines:
        return lines
    return b"\n".join(map(_single_spaced, lines.split(b"\n")))


def _single_spaced(line: bytes) -> bytes:
    phrases = line[: line.find(b"|||", line.find(b"|||") + 3)]
    if b"  " not in phrases and b"\t" not in phrases:
        return line
    fields = line.split(b"|||", 2)
    for side, text in enumerate(fields[:2]):
        phrase = text.strip(BLANKS)
        if b"  " in phrase or b"\t" in phrase:
            fields[side] = text.replace(phrase, _GAP.sub(b" ", phrase))
    return b"|||".join(fields)


def read_table_lines(table: StrPath, *, reordering: bool = False) -> Iterator[TableLines]:
    """Read and check the lines of a table; yield them in blocks.

    Args:
        reordering: whether this is a reordering table.

    Raises:
        InputError: a line is malformed.
    """
    lines, scores = 0, 0
    for block in read_table_blocks(table):
        text, bounds = np.frombuffer(block, np.uint8), np.zeros((block.count(b"\n"), FIELDS, 2), np.int64)
        scores, bad = split_table_lines(text, reordering, POW10, scores, bounds)
        if bad >= 0:
            refuse_line(block.split(b"\n")[bad], table, lines + bad + 1, scores or None, reordering=reordering)
        yield TableLines(text, bounds, scores)
        lines += len(bounds)


def refuse_line(line: bytes, path: StrPath, number: int, n_scores: int | None, *, reordering: bool) -> NoReturn:
    """Raise the error for a line that ``rnnsmt.base.kernels.table_lines`` has rejected.

    Args:
        line: the line without newline.
        path, number: file and line number for the error message.
        n_scores: required number of scores; None if any positive number is valid.
        reordering: whether this is a line of a reordering table.
    """
    fields = [field.strip(BLANKS) for field in line.split(b"|||")]
    what = "probabilities" if reordering else "scores"
    counted = [numbers(np.array(bytearray(field)), 0, len(field), POW10, np.empty(0)) for field in fields]
    if len(fields) < 3:
        problem = f"{len(fields)} field(s) between |||, at least 3 are required"
    elif not fields[SOURCE]:
        problem = "the source phrase is empty"
    elif not fields[TARGET]:
        problem = "the target phrase is empty"
    elif counted[SCORES] < 0:
        problem = f"'{_shown(fields[SCORES])}' are not {what} (finite and not negative)"
    elif counted[SCORES] == 0 or n_scores not in (None, counted[SCORES]):
        problem = f"the third field has {counted[SCORES]} numbers, expected: {n_scores or 'at least 1'}"
    elif not reordering and len(fields) > COUNTS and counted[COUNTS] < 0:
        problem = f"'{_shown(fields[COUNTS])}' are not counts (finite and not negative)"
    else:
        problem = f"'{_shown(fields[LINKS])}' are not links i-j between words of the phrases"
    raise InputError(f"{path}, line {number}: {problem}; create the table again")


def _shown(field: bytes) -> str:
    return field[:60].decode("utf-8", "replace")
