"""Text to word numbers, compiled."""

import numpy as np

from rnnsmt.kernels.decorator import kernel
from rnnsmt.kernels.strings import intern


@kernel()
def number_words(block, table, ids, lengths):
    """Number the words of a block of whole lines: what stands between blanks, and only they.

    Args:
        block: uint8 [bytes], ends with a newline.
        table: ``InternTable`` with room for the words of the block.
        ids: int32 [at least half of the bytes], receives the numbers of the words, line by line.
        lengths: int32 [lines], receives the number of words of every line.
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
