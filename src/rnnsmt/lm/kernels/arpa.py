"""Kernels that parse and format lines of ARPA files; in Python, millions of numbers would take minutes."""

from rnnsmt.base.kernels.decorator import kernel
from rnnsmt.base.kernels.numbers import put_logarithm
from rnnsmt.base.kernels.strings import find, hash_bytes, intern, parse_float


@kernel()
def parse_section(  # noqa: PLR0911, PLR0912
    buffer, begin, end, order, table, pow10, words, probs, backoffs, filled
):
    """Parse n-gram lines.

    Parsing stops at an empty line, at a line that starts with a backslash, when the arrays are full, at ``end``, or at
    an error.

    Args:
        buffer: uint8, whole lines.
        begin, end: range of the lines.
        order: order of the n-grams.
        table: vocabulary, ``InternTable``; for order 1, words are added, and must get the number of their line.
        pow10: ``rnnsmt.base.kernels.strings.POW10``.
        words: int32 [count, order], filled with word ids.
        probs, backoffs: float32 [count], filled with log10 values.
        filled: number of n-grams that are already there.

    Returns:
        The index of the first line that was not parsed, the number of n-grams, and an error code (0: none, otherwise a
        key of ``_ERRORS`` in ``rnnsmt.lm.arpa``).
    """
    position = begin
    capacity = probs.shape[0]
    while position < end:
        stop = position
        while stop < end and buffer[stop] != 10:
            stop += 1
        last = stop
        if last > position and buffer[last - 1] == 13:
            last -= 1
        if last == position or buffer[position] == 92:
            return position, filled, 0
        if filled == capacity:
            return position, filled, 5
        tab = position
        while tab < last and buffer[tab] != 9 and buffer[tab] != 32:
            tab += 1
        if tab >= last:
            return position, filled, 1
        value = parse_float(buffer, position, tab, pow10)
        if not value <= 0.0:  # also true for NaN
            return position, filled, 2
        cursor = tab + 1
        for k in range(order):
            stop_word = cursor
            while stop_word < last and buffer[stop_word] != 32 and buffer[stop_word] != 9:
                stop_word += 1
            if stop_word == cursor:
                return position, filled, 5
            if order == 1:
                number = intern(table, buffer, cursor, stop_word)
                if number != filled:  # the word occurred before
                    return position, filled, 1
            else:
                number = find(table, buffer, cursor, stop_word, hash_bytes(buffer, cursor, stop_word))
                if number < 0:
                    return position, filled, 4
            words[filled, k] = number
            cursor = stop_word + 1
        probs[filled] = value
        backoffs[filled] = 0.0
        if cursor < last:
            if buffer[cursor - 1] != 9:
                return position, filled, 5
            weight = parse_float(buffer, cursor, last, pow10)
            if not (weight > -1e30 and weight < 1e30):
                return position, filled, 3
            backoffs[filled] = weight
        filled += 1
        position = stop + 1
    return position, filled, 0


@kernel()
def newlines(buffer, begin, end):
    """Return the number of newlines in ``buffer[begin:end]``."""
    count = 0
    for position in range(begin, end):
        if buffer[position] == 10:
            count += 1
    return count


@kernel()
def format_ngrams(words, logs, backoffs, starts, pool, out):
    """Write ``log10 p TAB words [TAB backoff] NEWLINE`` for every n-gram; return the number of bytes.

    Args:
        words: int32 [n, order].
        logs: float64 [n], log10 probabilities.
        backoffs: float64 [n], log10 back-off weights; empty for the highest order.
        starts, pool: int64 [words + 1] and uint8: word ``i`` is ``pool[starts[i]:starts[i + 1]]``.
        out: uint8, filled; per line, 2 * 16 bytes, the words and the separators must fit.
    """
    at = 0
    for i in range(words.shape[0]):
        at = put_logarithm(out, at, logs[i])
        out[at] = 9
        at += 1
        for k in range(words.shape[1]):
            word = words[i, k]
            for j in range(starts[word], starts[word + 1]):
                out[at] = pool[j]
                at += 1
            out[at] = 32
            at += 1
        at -= 1  # overwrite the last space
        if len(backoffs):
            out[at] = 9
            at = put_logarithm(out, at + 1, backoffs[i])
        out[at] = 10
        at += 1
    return at
