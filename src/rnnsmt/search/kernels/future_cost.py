"""Future cost: optimistic estimate of the score of the uncovered words (Koehn 2010, section 6.2.4).

As in Moses, the estimate of a span is the maximum, over its segmentations, of the sum of phrase estimates, each with
the LM score of the phrase in the empty context; reordering scores are not included.
"""

import numpy as np

from rnnsmt.base.kernels.decorator import INNER, kernel

_ONE = np.uint64(1)


@kernel()
def future_costs(spans, ranked, work, window):
    """Compute the best estimate of every span of up to ``window`` words, and of every suffix of the sentence.

    Uncovered spans before the last covered word are shorter than the distortion limit; those after it are a suffix.

    Args:
        spans: ``int32`` [words, longest], source phrase by first word and length - 1, or -1.
        ranked: ``RankedOptions``; the first option of a source phrase has the best estimate.
        work: ``span_future`` (-inf for spans without a translation) and ``tail_future`` are filled.
        window: in words, at most 63.
    """
    count, longest = spans.shape
    work.tail_future[count] = 0.0
    # right to left: each span is a phrase at its start, followed by a span whose estimate is already final
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
    """Return the future cost of the uncovered words of a coverage."""
    total = 0.0
    position = gap
    while mask != np.uint64(0):  # alternate runs of uncovered (0) and covered (1) words; the first word is uncovered
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
    """Replace values [options, 4] by their running maximum from the last option of each source phrase to the first.

    Args:
        first: ``int64`` [sources + 1], range of options of each source phrase.
        values: ``float64`` [options, 4], changed in place.
    """
    for source in range(first.shape[0] - 1):
        for option in range(first[source + 1] - 2, first[source] - 1, -1):
            for turn in range(values.shape[1]):
                values[option, turn] = max(values[option, turn], values[option + 1, turn])
