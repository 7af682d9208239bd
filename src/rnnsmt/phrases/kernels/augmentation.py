"""Compiled insertion of further scores into the lines of a phrase table."""

from typing import Any

from rnnsmt.kernels.decorator import kernel
from rnnsmt.kernels.numbers import NUMBER_BYTES, put_number

_BAR, _BLANK, _NEWLINE = 124, 32, 10


@kernel()
def insert_scores(block: Any, columns: Any, expected: int, out: Any) -> Any:
    """Copy whole lines with further numbers behind the scores of each.

    Args:
        block: uint8, lines with their newline.
        columns: float64 [lines, C], what ``put_number`` can write.
        expected: how many scores a line must have; 0: as many as the first one.
        out: uint8, with room for everything.

    Returns:
        The bytes written, the number of scores of a line, and the first line (from 0) that has another number of scores
        or fewer than three fields; -1 where there is none.
    """
    at, line, begin = 0, 0, 0
    while begin < block.size:
        end = begin
        fields, scores, place, last = 0, 0, -1, begin
        before = _BLANK
        while block[end] != _NEWLINE:
            byte = block[end]
            if byte == _BAR and fields < 3 and block[end + 1] == _BAR and block[end + 2] == _BAR:
                fields += 1
                if fields == 3:
                    place = last
                end += 3
                before = _BLANK
                continue
            if byte not in (_BLANK, 13, 9):
                if fields == 2 and before == _BLANK:
                    scores += 1
                last = end + 1
                before = 0
            else:
                before = _BLANK
            end += 1
        if fields == 2:
            place = last
        if expected == 0:
            expected = scores
        if place < 0 or scores != expected or scores == 0:
            return at, expected, line
        out[at : at + place - begin] = block[begin:place]
        at += place - begin
        for column in range(columns.shape[1]):
            out[at] = _BLANK
            at = put_number(out, at + 1, columns[line, column])
        out[at : at + end + 1 - place] = block[place : end + 1]
        at += end + 1 - place
        begin = end + 1
        line += 1
    return at, expected, -1


def room(block_bytes: int, lines: int, columns: int) -> int:
    """The most bytes that ``insert_scores`` writes."""
    return block_bytes + lines * columns * (NUMBER_BYTES + 1)
