"""Kernels that insert additional scores into the lines of a phrase table."""

from typing import Any

from rnnsmt.base.kernels.decorator import INNER, kernel
from rnnsmt.base.kernels.numbers import NUMBER_BYTES, put_number
from rnnsmt.base.kernels.table_lines import SCORES

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
        bounds: int64 [lines, 3, 2], as filled by ``split_phrase_lines``.
        columns: float64 [lines, C], in the range of ``put_number``.
        out: uint8, at least ``room`` bytes, filled.
    """
    at, begin = 0, 0
    for line in range(bounds.shape[0]):
        place = bounds[line, SCORES, 1]
        end = place
        while block[end] != _NEWLINE:
            end += 1
        at = _copy(block, begin, place, out, at)
        for column in range(columns.shape[1]):
            out[at] = _BLANK
            at = put_number(out, at + 1, columns[line, column])
        at = _copy(block, place, end + 1, out, at)
        begin = end + 1
    return at


def room(block_bytes: int, lines: int, columns: int) -> int:
    """Return the maximum number of bytes that ``insert_scores`` writes."""
    return block_bytes + lines * columns * (NUMBER_BYTES + 1)
