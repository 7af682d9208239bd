"""Text to word numbers, compiled.

Words are runs of bytes other than NUL, tab, newline, carriage return and space, which are lmplz's separators: other
Unicode spaces are part of a word.
"""

import numpy as np

from rnnsmt.kernels.decorator import kernel
from rnnsmt.kernels.strings import find, hash_bytes, intern

UNK, BOS, EOS = 0, 1, 2
"""The numbers of ``<unk>``, ``<s>`` and ``</s>``, KenLM's own."""

SEPARATOR = np.zeros(256, np.bool_)

SEPARATOR[[0, 9, 10, 13, 32]] = True


@kernel()
def number_words(block, closed, table, out):
    """Number the words of a block of whole lines.

    Args:
        block: uint8 [bytes], ends with a newline.
        closed: True: a word that is not in the table becomes ``<unk>``; False: it gets the next number.
        table: ``InternTable`` with room for the words of the block, if it is open.
        out: int32 [at least 2 * bytes + 1], receives ``<s> w1 ... wn </s>`` of every line.

    Returns:
        (numbers written, line of a reserved word counted from 0 or -1, that word's number)
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
