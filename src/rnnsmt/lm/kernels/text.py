"""Kernel that converts text to word numbers.

Words are sequences of bytes other than NUL, tab, newline, carriage return and space, the separators of lmplz: other
Unicode spaces are part of a word.
"""

import numpy as np

from rnnsmt.base.kernels.decorator import kernel
from rnnsmt.base.kernels.strings import find, hash_bytes, intern

UNK, BOS, EOS = 0, 1, 2
"""Numbers of ``<unk>``, ``<s>`` and ``</s>``, as in KenLM."""

SEPARATOR = np.zeros(256, np.bool_)
"""Whether a byte separates words, bool [256]."""

SEPARATOR[[0, 9, 10, 13, 32]] = True


@kernel()
def number_words(block, closed, table, out):
    """Convert a block of whole lines to word numbers.

    Args:
        block: uint8 [bytes], ends with a newline.
        closed: whether words that are not in the table become ``<unk>``; otherwise, they are added.
        table: vocabulary, ``InternTable``; if open, it must have capacity for the words of the block.
        out: int32 [at least 2 * bytes + 1], filled with ``<s> w1 ... wn </s>`` of every line.

    Returns:
        The number of elements written, the line of a reserved word (from 0) or -1, and the number of this word.
    """
    written = 0
    line = 0
    begin = True
    i = 0
    while i < len(block):
        if begin:
            out[written] = BOS
            written += 1
            begin = False
        if block[i] == 10:
            out[written] = EOS
            written += 1
            line += 1
            begin = True
            i += 1
            continue
        if SEPARATOR[block[i]]:
            i += 1
            continue
        first = i
        while not SEPARATOR[block[i]]:
            i += 1
        if closed:  # noqa: SIM108
            number = find(table, block, first, i, hash_bytes(block, first, i))
        else:
            number = intern(table, block, first, i)
        if number < 0:
            number = UNK
        elif number <= EOS:
            return written, line, number
        out[written] = number
        written += 1
    return written, -1, 0
