"""Kernels that parse alignment lines (Pharaoh format ``i-j``: source-target, from 0)."""

from typing import Any

import numpy as np

from rnnsmt.base.kernels.decorator import kernel

LINK_ERRORS = {
    1: "not a list of links i-j",
    2: "a link leads out of the sentence",
}
"""Messages of the problems that ``parse_links`` returns."""


@kernel()
def _count_dashes(text: Any) -> int:
    """Return the number of dashes, an upper bound of the number of links."""
    dashes = 0
    for byte in text:
        if byte == 45:
            dashes += 1
    return dashes


@kernel()
def parse_links(text: Any, source_lengths: Any, target_lengths: Any) -> Any:
    """Parse the links of S sentences.

    Args:
        text: uint8, S lines, each with its newline.
        source_lengths, target_lengths: int64 [S], number of words of each sentence.

    Returns:
        Links int32 [L, 2], sorted by (target, source) in a sentence, without duplicates; offsets int64 [S + 1]; the
        number of repeated links; the row of the first invalid line, and its problem (0: none, otherwise a key of
        ``LINK_ERRORS``).
    """
    sentences = source_lengths.shape[0]
    links = np.empty((_count_dashes(text), 2), np.int32)
    offsets = np.zeros(sentences + 1, np.int64)
    filled, repeated, at = 0, 0, 0
    for row in range(sentences):
        begin = filled
        while text[at] != 10:
            while text[at] == 32 or text[at] == 9 or text[at] == 13:
                at += 1
            if text[at] == 10:
                break
            left, right, digits = 0, 0, 0
            # at most seven digits: no overflow, and longer numbers are rejected by the next check
            while 48 <= text[at] <= 57 and digits < 7:
                left = left * 10 + (text[at] - 48)
                at += 1
                digits += 1
            if digits == 0 or text[at] != 45:
                return links, offsets, repeated, row, 1
            at += 1
            digits = 0
            while 48 <= text[at] <= 57 and digits < 7:
                right = right * 10 + (text[at] - 48)
                at += 1
                digits += 1
            if digits == 0 or not (text[at] == 32 or text[at] == 10 or text[at] == 9 or text[at] == 13):
                return links, offsets, repeated, row, 1
            if left >= source_lengths[row] or right >= target_lengths[row]:
                return links, offsets, repeated, row, 2
            # insertion sort from the end, because aligners write nearly sorted lines
            place = filled
            while place > begin and (
                links[place - 1, 1] > right or (links[place - 1, 1] == right and links[place - 1, 0] > left)
            ):
                place -= 1
            if place > begin and links[place - 1, 1] == right and links[place - 1, 0] == left:
                repeated += 1
                continue
            for moved in range(filled, place, -1):
                links[moved, 0] = links[moved - 1, 0]
                links[moved, 1] = links[moved - 1, 1]
            links[place, 0] = left
            links[place, 1] = right
            filled += 1
        at += 1
        offsets[row + 1] = filled
    return links[:filled].copy(), offsets, repeated, -1, 0
