"""Lines of ARPA files as bytes, compiled: parsing and formatting millions of numbers in Python would take minutes."""

from rnnsmt.kernels.decorator import kernel
from rnnsmt.kernels.numbers import put_logarithm
from rnnsmt.kernels.strings import find, hash_bytes, intern, parse_float


@kernel()
def parse_section(  # noqa: PLR0911, PLR0912
    buffer, begin, end, order, table, pow10, words, probs, backoffs, filled
):
    """Parse n-gram lines from ``begin``; returns (position, n-grams filled, error code).

    Stops at an empty line, at a line that starts with a backslash, when the arrays are full, at ``end`` or at an error.
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
        if not value <= 0.0:
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
                if number != filled:
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
    count = 0
    for position in range(begin, end):
        if buffer[position] == 10:
            count += 1
    return count


@kernel()
def format_ngrams(words, logs, backoffs, starts, pool, out):
    """Write ``log10 p TAB words [TAB backoff] NEWLINE`` per n-gram.

    Args:
        words: int32 [n, order]; logs: float64 [n]; backoffs: float64 [n], or empty for the highest order.
        starts: int64 [words + 1], pool: uint8: word ``i`` is ``pool[starts[i]:starts[i + 1]]``.
        out: uint8, large enough: per line 2 * 16 bytes and its words.

    Returns:
        How many bytes were written.
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
        at -= 1
        if len(backoffs):
            out[at] = 9
            at = put_logarithm(out, at + 1, backoffs[i])
        out[at] = 10
        at += 1
    return at
