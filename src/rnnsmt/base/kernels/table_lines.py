"""Splitting and checking of lines of Moses' phrase tables and reordering tables.

Fields are separated by ``|||``. Blanks (space, tab, carriage return) around a field are not part of it; within a field
they separate numbers and links. Source and target phrase come first and must not be empty; their words are separated by
single spaces, as in the blocks of ``rnnsmt.formats.phrase_table.read_table_blocks``. Readers split every line with
``split_line`` and check the lines that they use with ``check_phrase_line`` or ``check_reordering_line``.
``rnnsmt.formats.phrase_table.refuse_line`` explains why a line is rejected.
"""

from typing import Any

import numpy as np

from rnnsmt.base.kernels.decorator import INNER, kernel
from rnnsmt.base.kernels.strings import parse_float

SOURCE, TARGET, SCORES, LINKS, COUNTS = 0, 1, 2, 3, 4

FIELDS = 5
"""Maximum number of fields that are split."""

MALFORMED = -1
"""Return value for a rejected line, field or number."""

_BAR, _SPACE, _TAB, _RETURN, _DASH, _POINT = 124, 32, 9, 13, 45, 46


@kernel(inline="always")
def _blank(byte: Any) -> Any:
    return byte in (_SPACE, _TAB, _RETURN)


@kernel(**INNER)
def split_line(buffer: Any, begin: Any, end: Any, bounds: Any) -> Any:
    """Split the line ``buffer[begin:end]`` into fields.

    Args:
        buffer: uint8, text.
        begin, end: range of the line, without its newline.
        bounds: int64 [FIELDS, 2], written: begin and end of each field without surrounding blanks.

    Returns:
        Number of fields, at most FIELDS; MALFORMED if there are fewer than three fields or if a phrase is empty.
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


@kernel()
def numbers(buffer: Any, begin: Any, end: Any, pow10: Any, out: Any) -> Any:
    """Count the finite non-negative numbers in ``buffer[begin:end]`` and write the first ones to ``out``, float64.

    Returns:
        Number of numbers; MALFORMED if the text contains anything else.
    """
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
        # a plain decimal number is finite, so it is parsed only if its value is required
        plain = digits + points == length and 0 < digits < 300 and points < 2
        if count < out.shape[0] or not plain:
            value = parse_float(buffer, first, position, pow10)
            if not value >= 0.0:  # also true for NaN
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
    """Parse 1 to 9 digits at ``position``; return the number, or MALFORMED, and the position after it."""
    value, first = np.int64(0), position
    while position < end and 48 <= buffer[position] <= 57:
        value = value * 10 + np.int64(buffer[position]) - 48
        position += 1
    return (value if 0 < position - first < 10 else np.int64(MALFORMED)), position


@kernel(**INNER)
def _links_fit(buffer: Any, bounds: Any) -> Any:
    """Return whether the fourth field consists of links i-j, where i and j are positions in the two phrases."""
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
def read_links(buffer: Any, bounds: Any, fields: Any, links: Any) -> Any:
    """Read the links of a phrase-table line that ``check_phrase_line`` has accepted.

    Args:
        buffer: uint8, text.
        bounds, fields: results of ``split_line``.
        links: int32 [2, at least n], written: source positions (row 0) and target positions (row 1) of the n distinct
            links, sorted by target position, then source position. A field of b bytes has at most (b + 1) // 4 links.

    Returns:
        Number of links, number of source words, and number of target words.
    """
    sources = _words(buffer, bounds[SOURCE, 0], bounds[SOURCE, 1])
    targets = _words(buffer, bounds[TARGET, 0], bounds[TARGET, 1])
    count = 0
    position, end = bounds[LINKS, 0], bounds[LINKS, 1]
    while fields > LINKS and position < end:
        if _blank(buffer[position]):
            position += 1
            continue
        source, position = _digits(buffer, position, end)
        target, position = _digits(buffer, position + 1, end)
        # insertion sort: a phrase pair has few links, mostly in order
        index = count
        while index > 0 and (links[1, index - 1], links[0, index - 1]) > (target, source):
            index -= 1
        if index > 0 and links[1, index - 1] == target and links[0, index - 1] == source:
            continue
        for other in range(count, index, -1):
            links[0, other], links[1, other] = links[0, other - 1], links[1, other - 1]
        links[0, index], links[1, index] = source, target
        count += 1
    return count, sources, targets


@kernel(**INNER)
def check_phrase_line(buffer: Any, bounds: Any, fields: Any, pow10: Any, scores: Any, counts: Any) -> Any:
    """Check the numbers and links of a phrase-table line.

    Args:
        buffer: uint8, text.
        bounds, fields: results of ``split_line``.
        pow10: ``rnnsmt.base.kernels.strings.POW10``.
        scores, counts: float64 [n], written: the first n scores, and the first n counts if there are any; n may be 0.

    Returns:
        Number of scores; MALFORMED if there are no scores, if a score or count is not a non-negative number, or if a
        link is not of the form i-j, where i and j are positions in the phrases.
    """
    count = numbers(buffer, bounds[SCORES, 0], bounds[SCORES, 1], pow10, scores)
    if count <= 0:
        return MALFORMED
    if fields > LINKS and not _links_fit(buffer, bounds):
        return MALFORMED
    if fields > COUNTS and numbers(buffer, bounds[COUNTS, 0], bounds[COUNTS, 1], pow10, counts) < 0:
        return MALFORMED
    return count


@kernel(**INNER)
def check_reordering_line(buffer: Any, bounds: Any, pow10: Any, probabilities: Any) -> Any:
    """Check that the third field of a reordering-table line consists of non-negative numbers.

    As in Moses, further fields are ignored. Arguments and result are as in ``check_phrase_line``.
    """
    count = numbers(buffer, bounds[SCORES, 0], bounds[SCORES, 1], pow10, probabilities)
    return count if count > 0 else MALFORMED


@kernel()
def split_table_lines(block: Any, reordering: bool, pow10: Any, expected: Any, bounds: Any) -> Any:
    """Split and check whole lines of a phrase table or reordering table.

    Args:
        block: uint8, lines with their newlines.
        reordering: whether these are lines of a reordering table.
        pow10: ``rnnsmt.base.kernels.strings.POW10``.
        expected: required number of scores per line, or 0 if all lines must have as many as the first line.
        bounds: int64 [lines, FIELDS, 2], filled with begin and end of each field; must be 0, which missing fields keep.

    Returns:
        Number of scores per line, and the index of the first rejected line, or -1 if no line is rejected.
    """
    nothing = np.empty(0)
    begin = 0
    for line in range(bounds.shape[0]):
        end = begin
        while block[end] != 10:
            end += 1
        fields = split_line(block, begin, end, bounds[line])
        count = MALFORMED
        if fields != MALFORMED:
            if reordering:
                count = check_reordering_line(block, bounds[line], pow10, nothing)
            else:
                count = check_phrase_line(block, bounds[line], fields, pow10, nothing, nothing)
        if expected == 0 and count > 0:
            expected = count
        if count != expected or count == MALFORMED:
            return expected, line
        begin = end + 1
    return expected, -1
