"""Lines of an ARPA file as bytes, compiled: formatting millions of numbers in Python would take minutes."""

import numpy as np

from rnnsmt.compiled import kernel


@kernel()
def _put_log(value, out, at):
    """Write a number <= 0 rounded to six decimals, without trailing zeros; return the next position."""
    micro = np.int64(np.rint(-value * 1e6))
    if micro <= 0:
        out[at] = 48
        return at + 1
    out[at] = 45
    at += 1
    whole = micro // 1000000
    rest = micro % 1000000
    width = 1
    power = 10
    while whole >= power:
        width += 1
        power *= 10
    for i in range(width):
        out[at + width - 1 - i] = 48 + whole % 10
        whole //= 10
    at += width
    if rest == 0:
        return at
    out[at] = 46
    digits = 6
    while rest % 10 == 0:
        rest //= 10
        digits -= 1
    for i in range(digits):
        out[at + digits - i] = 48 + rest % 10
        rest //= 10
    return at + digits + 1


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
        at = _put_log(logs[i], out, at)
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
            at = _put_log(backoffs[i], out, at + 1)
        out[at] = 10
        at += 1
    return at
