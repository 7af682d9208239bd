"""Future cost: what the open words of a sentence will cost at best, compiled (Koehn 2010, section 6.2.4).

As in Moses the estimate of a span is the best sum of phrase estimates, each with the LM score of the phrase alone;
reordering is not part of it.
"""

import numpy as np

from rnnsmt.kernels.decorator import INNER, kernel

_ONE = np.uint64(1)


@kernel()
def future_costs(spans, ranked, work, window):
    """Best estimate of every span up to ``window`` words and of every tail of the sentence."""
    count, longest = spans.shape
    work.tail_future[count] = 0.0
    for i in range(count - 1, -1, -1):
        best_tail = -np.inf
        for length in range(1, min(window, count - i) + 1):
            work.span_future[i, length] = -np.inf
        for length in range(1, min(longest, count - i) + 1):
            source = spans[i, length - 1]
            if source < 0 or ranked.first[source] == ranked.first[source + 1]:
                continue
            best = ranked.estimate[ranked.first[source]]
            best_tail = max(best_tail, best + work.tail_future[i + length])
            if length <= window:
                work.span_future[i, length] = max(work.span_future[i, length], best)
            for whole in range(length + 1, min(window, count - i) + 1):
                rest = work.span_future[i + length, whole - length]
                work.span_future[i, whole] = max(work.span_future[i, whole], best + rest)
        work.tail_future[i] = best_tail


@kernel(forceinline=True, **INNER)
def coverage_future(work, gap, mask):
    """Future cost of what a coverage leaves open."""
    total = 0.0
    position = gap
    while mask != np.uint64(0):
        run = 0
        while mask & _ONE == np.uint64(0):
            mask >>= _ONE
            run += 1
        if run > 0:
            total += work.span_future[position, run]
        position += run
        while mask & _ONE != np.uint64(0):
            mask >>= _ONE
            position += 1
    return total + work.tail_future[position]


@kernel()
def suffix_maxima(first, values):
    """Replace values [options, 4] by the maximum of themselves and what follows within each source phrase."""
    for source in range(first.shape[0] - 1):
        for option in range(first[source + 1] - 2, first[source] - 1, -1):
            for turn in range(values.shape[1]):
                values[option, turn] = max(values[option, turn], values[option + 1, turn])
