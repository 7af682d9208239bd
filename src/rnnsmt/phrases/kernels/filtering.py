"""Kernel that selects the lines of a table with wanted source phrases."""

from typing import Any

import numpy as np

from rnnsmt.base.kernels.decorator import kernel
from rnnsmt.base.kernels.strings import find, hash_bytes
from rnnsmt.base.kernels.table_lines import (
    FIELDS,
    MALFORMED,
    SOURCE,
    check_phrase_line,
    check_reordering_line,
    split_line,
)


@kernel()
def keep_lines(block: Any, phrases: Any, reordering: bool, pow10: Any, expected: Any, out: Any, numbers: Any) -> Any:
    """Copy the lines whose source phrase is wanted.

    Args:
        block: uint8, lines with their newline.
        phrases: wanted source phrases, ``rnnsmt.base.kernels.strings.InternTable``.
        reordering: whether these are lines of a reordering table.
        pow10: ``rnnsmt.base.kernels.strings.POW10``.
        expected: number of scores of a line; 0: that of the first line that is kept.
        out: uint8, of the size of the block, filled.
        numbers: int64 [lines], filled with the numbers of the lines that are kept, from 0.

    Returns:
        Number of bytes written, number of lines kept, number of scores of a line, and the first line (from 0) that is
        rejected, or -1. Lines that are not kept only need three fields and two non-empty phrases.
    """
    bounds, nothing = np.empty((FIELDS, 2), np.int64), np.empty(0)
    begin, line, at, kept = 0, 0, 0, 0
    while begin < block.size:
        end = begin
        while block[end] != 10:
            end += 1
        fields = split_line(block, begin, end, bounds)
        if fields == MALFORMED:
            return at, kept, expected, line
        left, right = bounds[SOURCE, 0], bounds[SOURCE, 1]
        if find(phrases, block, left, right, hash_bytes(block, left, right)) >= 0:
            if reordering:
                count = check_reordering_line(block, bounds, fields, pow10, nothing)
            else:
                count = check_phrase_line(block, bounds, fields, pow10, nothing)
            if expected == 0 and count > 0:
                expected = count
            if count != expected or count == MALFORMED:
                return at, kept, expected, line
            for position in range(begin, end + 1):
                out[at] = block[position]
                at += 1
            numbers[kept] = line
            kept += 1
        begin = end + 1
        line += 1
    return at, kept, expected, -1
