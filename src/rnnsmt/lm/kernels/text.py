"""Text to word numbers: an open-addressing hash table over a pool of bytes, compiled.

Words are runs of bytes other than NUL, tab, newline, carriage return and space, which are lmplz's separators: other
Unicode spaces are part of a word.
"""

import numpy as np

from rnnsmt.kernels.decorator import kernel

UNK, BOS, EOS = 0, 1, 2
"""The numbers of ``<unk>``, ``<s>`` and ``</s>``, KenLM's own."""

SEPARATOR = np.zeros(256, np.bool_)

SEPARATOR[[0, 9, 10, 13, 32]] = True

FNV_OFFSET = np.uint64(14695981039346656037)

FNV_PRIME = np.uint64(1099511628211)


@kernel()
def number_words(block, closed, table, hashes, starts, pool, words, out):  # noqa: PLR0912, PLR0915
    """Number the words of a block of whole lines.

    Args:
        block: uint8 [bytes], ends with a newline.
        closed: True: a word that is not in the table becomes ``<unk>``; False: it gets the next number.
        table: int32 [power of two], word number + 1 or 0; at most half full at the end of the block.
        hashes: uint64 [capacity]; starts: int64 [capacity + 1], word ``i`` is ``pool[starts[i]:starts[i + 1]]``.
        pool: uint8 [capacity in bytes]; words: how many words there are.
        out: int32 [at least 2 * bytes + 1], receives ``<s> w1 ... wn </s>`` of every line.

    Returns:
        (words, numbers written, line of a reserved word counted from 0 or -1, that word's number)
    """
    mask = np.uint64(len(table) - 1)
    written = 0
    line = 0
    begin = True
    i = 0
    while i < len(block):
        byte = block[i]
        if begin:
            out[written] = 1
            written += 1
            begin = False
        if byte == 10:
            out[written] = 2
            written += 1
            line += 1
            begin = True
            i += 1
            continue
        if SEPARATOR[byte]:
            i += 1
            continue
        first = i
        value = FNV_OFFSET
        while not SEPARATOR[byte]:
            value = (value ^ np.uint64(byte)) * FNV_PRIME
            i += 1
            byte = block[i]
        value ^= value >> np.uint64(32)
        length = i - first
        slot = value & mask
        number = -1
        while table[slot] != 0:
            candidate = table[slot] - 1
            at = starts[candidate]
            if hashes[candidate] == value and starts[candidate + 1] - at == length:
                same = True
                for j in range(length):
                    if pool[at + j] != block[first + j]:
                        same = False
                        break
                if same:
                    number = candidate
                    break
            slot = (slot + np.uint64(1)) & mask
        if number < 0 and closed:
            number = 0
        elif number < 0:
            number = words
            table[slot] = number + 1
            hashes[number] = value
            at = starts[number]
            for j in range(length):
                pool[at + j] = block[first + j]
            starts[number + 1] = at + length
            words += 1
        elif number <= 2:
            return words, written, line, number
        out[written] = number
        written += 1
    return words, written, -1, 0


@kernel()
def fill_table(hashes, first, words, table):
    """Enter the words ``first <= i < words`` by their hashes into a table that has room for them."""
    mask = np.uint64(len(table) - 1)
    for number in range(first, words):
        slot = hashes[number] & mask
        while table[slot] != 0:
            slot = (slot + np.uint64(1)) & mask
        table[slot] = number + 1


@kernel()
def hash_bytes(word):
    """The hash of one word, uint8 [bytes]."""
    value = FNV_OFFSET
    for byte in word:
        value = (value ^ np.uint64(byte)) * FNV_PRIME
    return value ^ (value >> np.uint64(32))
