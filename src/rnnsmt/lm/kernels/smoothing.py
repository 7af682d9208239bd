"""Modified Kneser-Ney sums over flat columns, compiled (Chen and Goodman 1999, section 3)."""

import numpy as np

from rnnsmt.kernels.decorator import kernel


@kernel()
def add_contexts(context, count, occurrences, threshold, discounts, low, denominator, mass):
    """Add adjusted counts and discounts to their contexts ``low <= context < low + len(mass)``.

    Of an n-gram that is pruned the whole count goes to the mass.

    Args:
        context: uint32 [n]; count: uint32 [n], adjusted; occurrences: uint32 [n], above ``threshold`` where it is kept.
        discounts: float64 [4] for counts 0, 1, 2, 3 and more.
        denominator: float64 [contexts]; mass: float64 [contexts]; both added to.
    """
    for i in range(len(context)):
        at = np.int64(context[i]) - low
        if 0 <= at < len(mass):
            denominator[at] += count[i]
            if occurrences[i] > threshold:
                mass[at] += discounts[min(count[i], np.uint32(3))]
            else:
                mass[at] += count[i]


@kernel()
def discounted(context, count, discounts, low, denominator, gamma, share, weight):
    """For n-grams with a context in the slice: (count - discount) / denominator and the interpolation weight.

    Args:
        denominator, gamma: float64 and float32 [contexts of the slice, from ``low``].
        share, weight: float64 [n], written where the context lies in the slice.
    """
    for i in range(len(context)):
        at = np.int64(context[i]) - low
        if 0 <= at < len(gamma):
            share[i] = (count[i] - discounts[min(count[i], np.uint32(3))]) / denominator[at]
            weight[i] = gamma[at]
