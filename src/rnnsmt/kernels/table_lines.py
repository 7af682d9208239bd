"""The lines of Moses' phrase tables and reordering tables, split and checked by compiled code.

A line is fields between ``|||``; blanks (space, tab, carriage return) around a field are no part of it and separate the
numbers and links inside one. Source and target phrase come first and are never empty; their words are separated by
spaces. Whoever reads a table splits every line with ``split_line`` and checks those that it uses with
``check_phrase_line`` or ``check_reordering_line``. They accept what ``rnnsmt.phrases.table`` accepts of UTF-8 text;
it also says what is wrong with a line that they refuse.
"""

from typing import Any

import numpy as np

from rnnsmt.kernels.decorator import INNER, kernel
from rnnsmt.kernels.strings import parse_float

SOURCE, TARGET, SCORES, LINKS, COUNTS = 0, 1, 2, 3, 4

FIELDS = 6
"""Fields whose bounds are needed: those above, and whether there is more."""

MALFORMED = -1

_BAR, _SPACE, _TAB, _RETURN, _DASH, _POINT = 124, 32, 9, 13, 45, 46


@kernel(inline="always")
def _blank(byte: Any) -> Any:
    return byte in (_SPACE, _TAB, _RETURN)


@kernel(**INNER)
def split_line(buffer: Any, begin: Any, end: Any, bounds: Any) -> Any:
    """Split the line ``buffer[begin:end]``; fill ``bounds`` int64 [FIELDS, 2] with where each field begins and ends.

    Returns:
        The number of fields, at most FIELDS; MALFORMED where there are fewer than three or a phrase is empty.
    """
    count, start, position = 0, begin, begin
    while count < bounds.shape[0]:
        while position < end and buffer[position] != _BAR:
            position += 1
        at_end = position + 2 >= end
        if at_end:
            position = end
        elif buffer[position + 1] != _BAR or buffer[position + 2] != _BAR:
            position += 1
            continue
        left, right = start, position
        while left < right and _blank(buffer[left]):
            left += 1
        while right > left and _blank(buffer[right - 1]):
            right -= 1
        bounds[count, 0] = left
        bounds[count, 1] = right
        count += 1
        if at_end:
            break
        position += 3
        start = position
    if count < 3 or bounds[SOURCE, 0] == bounds[SOURCE, 1] or bounds[TARGET, 0] == bounds[TARGET, 1]:
        return MALFORMED
    return count


@kernel(**INNER)
def _numbers(buffer: Any, begin: Any, end: Any, pow10: Any, out: Any) -> Any:
    """How many numbers, none negative, a field holds; the first of them go to ``out``. MALFORMED: one is none."""
    count, position = 0, begin
    while True:
        while position < end and _blank(buffer[position]):
            position += 1
        if position == end:
            return count
        first, digits, points = position, 0, 0
        while position < end and not _blank(buffer[position]):
            if 48 <= buffer[position] <= 57:
                digits += 1
            elif buffer[position] == _POINT:
                points += 1
            position += 1
        length = position - first
        plain = digits + points == length and 0 < digits < 300 and points < 2  # surely a number, and a finite one
        if count < out.shape[0] or not plain:
            value = parse_float(buffer, first, position, pow10)
            if not value >= 0.0:
                return MALFORMED
            if count < out.shape[0]:
                out[count] = value
        count += 1


@kernel(**INNER)
def _words(buffer: Any, begin: Any, end: Any) -> Any:
    words, inside = 0, False
    for position in range(begin, end):
        if buffer[position] == _SPACE:
            inside = False
        elif not inside:
            inside = True
            words += 1
    return words


@kernel(**INNER)
def _digits(buffer: Any, position: Any, end: Any) -> Any:
    """The number of 1 to 9 digits at ``position``, MALFORMED where there is none, and the place after it."""
    value, first = np.int64(0), position
    while position < end and 48 <= buffer[position] <= 57:
        value = value * 10 + np.int64(buffer[position]) - 48
        position += 1
    return (value if 0 < position - first < 10 else np.int64(MALFORMED)), position


@kernel(**INNER)
def _links_fit(buffer: Any, bounds: Any) -> Any:
    """Whether the fourth field holds links i-j between words of the phrases and nothing else."""
    sources = _words(buffer, bounds[SOURCE, 0], bounds[SOURCE, 1])
    targets = _words(buffer, bounds[TARGET, 0], bounds[TARGET, 1])
    position, end = bounds[LINKS, 0], bounds[LINKS, 1]
    while position < end:
        if _blank(buffer[position]):
            position += 1
            continue
        source, position = _digits(buffer, position, end)
        if source < 0 or source >= sources or position == end or buffer[position] != _DASH:
            return False
        target, position = _digits(buffer, position + 1, end)
        if target < 0 or target >= targets or (position < end and not _blank(buffer[position])):
            return False
    return True


@kernel(**INNER)
def check_phrase_line(buffer: Any, bounds: Any, fields: Any, pow10: Any, scores: Any) -> Any:
    """Check the numbers and links of a phrase-table line.

    Args:
        bounds, fields: of ``split_line``.
        pow10: ``rnnsmt.kernels.strings.POW10``.
        scores: float64 [n], filled with the first n scores; n may be 0.

    Returns:
        How many scores the line has, MALFORMED where there is none, a score or count is no number from 0 on, or a link
        is not i-j between words of the phrases.
    """
    count = _numbers(buffer, bounds[SCORES, 0], bounds[SCORES, 1], pow10, scores)
    if count <= 0:
        return MALFORMED
    if fields > LINKS and not _links_fit(buffer, bounds):
        return MALFORMED
    if fields > COUNTS and _numbers(buffer, bounds[COUNTS, 0], bounds[COUNTS, 1], pow10, scores[:0]) < 0:
        return MALFORMED
    return count


@kernel(**INNER)
def check_reordering_line(buffer: Any, bounds: Any, fields: Any, pow10: Any, probabilities: Any) -> Any:
    """Check a reordering-table line: three fields, the third with numbers from 0 on; as ``check_phrase_line``."""
    count = _numbers(buffer, bounds[SCORES, 0], bounds[SCORES, 1], pow10, probabilities)
    return count if fields == 3 and count > 0 else MALFORMED


@kernel()
def split_phrase_lines(block: Any, pow10: Any, expected: Any, bounds: Any) -> Any:
    """Split and check whole lines of a phrase table.

    Args:
        block: uint8, lines with their newline.
        expected: how many scores a line must have; 0: as many as the first one.
        bounds: int64 [lines, 3, 2], filled with where source, target and scores begin and end.

    Returns:
        The number of scores of a line, and the first line (from 0) that is refused, -1 where there is none.
    """
    one, nothing = np.empty((FIELDS, 2), np.int64), np.empty(0)
    begin, line = 0, 0
    while begin < block.size:
        end = begin
        while block[end] != 10:
            end += 1
        fields = split_line(block, begin, end, one)
        count = MALFORMED
        if fields != MALFORMED:
            count = check_phrase_line(block, one, fields, pow10, nothing)
        if expected == 0 and count > 0:
            expected = count
        if count != expected or count == MALFORMED:
            return expected, line
        for field in range(bounds.shape[1]):
            bounds[line, field, 0], bounds[line, field, 1] = one[field, 0], one[field, 1]
        begin = end + 1
        line += 1
    return expected, -1
