"""Kernels of modified Kneser-Ney smoothing on flat columns (Chen and Goodman 1999, section 3)."""

import numpy as np

from rnnsmt.base.kernels.decorator import kernel


@kernel()
def add_contexts(context, count, occurrences, threshold, discounts, low, denominator, mass):
    """Add adjusted counts and discounts to their contexts ``low <= context < low + len(mass)``.

    If an n-gram is pruned, its whole count is added to the mass, and not only the discount.

    Args:
        context: uint32 [n], context of each n-gram.
        count: uint32 [n], adjusted counts.
        occurrences: uint32 [n], above ``threshold`` for n-grams that are kept.
        threshold: pruning threshold.
        discounts: float64 [4], for counts 0, 1, 2, 3 or more.
        low: first context.
        denominator: float64 [contexts], sum of counts, updated.
        mass: float64 [contexts], sum of discounts, updated.
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
    """Compute (count - discount) / denominator and the interpolation weight of n-grams.

    Only n-grams whose context is in the slice are updated.

    Args:
        context: uint32 [n], context of each n-gram.
        count: uint32 [n], adjusted counts.
        discounts: float64 [4], for counts 0, 1, 2, 3 or more.
        low: first context of the slice.
        denominator: float64 [contexts of the slice], sum of counts.
        gamma: float32 [contexts of the slice], interpolation weights.
        share, weight: float64 [n], filled.
    """
    for i in range(len(context)):
        at = np.int64(context[i]) - low
        if 0 <= at < len(gamma):
            share[i] = (count[i] - discounts[min(count[i], np.uint32(3))]) / denominator[at]
            weight[i] = gamma[at]
