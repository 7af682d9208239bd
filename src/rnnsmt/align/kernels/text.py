"""Kernel that converts text to word ids."""

import numpy as np

from rnnsmt.base.kernels.decorator import kernel
from rnnsmt.base.kernels.strings import intern


@kernel()
def number_words(block, table, ids, lengths):
    """Assign ids to the words of a block of whole lines; words are separated by spaces only.

    Args:
        block: uint8 [bytes], ends with a newline.
        table: ``InternTable`` with capacity for the words of the block; new words are added.
        ids: int32 [at least half of the bytes], filled with the ids of the words, line by line.
        lengths: int32 [lines], filled with the number of words of every line.
    """
    written, before, line, i = 0, 0, 0, 0
    while i < len(block):
        if block[i] == 10:
            lengths[line] = written - before
            before = written
            line += 1
        elif block[i] != 32:
            first = i
            while block[i] != 32 and block[i] != 10:
                i += 1
            ids[written] = np.int32(intern(table, block, first, i))
            written += 1
            continue
        i += 1
