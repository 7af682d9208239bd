"""Selection of the n best scores of an array, in linear time."""

from rnnsmt.base.kernels.decorator import INNER, UNCOUNTED, kernel


@kernel(**INNER, **UNCOUNTED)
def nth_best(values, count, n):
    """Return the n-th largest of the first ``count`` values by quickselect, which reorders the values."""
    low, high = 0, count - 1
    while low < high:
        pivot = values[(low + high) >> 1]
        left, right = low, high
        while left <= right:
            while values[left] > pivot:
                left += 1
            while values[right] < pivot:
                right -= 1
            if left <= right:
                values[left], values[right] = values[right], values[left]
                left += 1
                right -= 1
        if n - 1 <= right:
            high = right
        elif n - 1 >= left:
            low = left
        else:
            break
    return values[n - 1]


@kernel(**INNER, **UNCOUNTED)
def last_place(values, count, n):
    """Return the n-th largest of ``count`` values, and how often it occurs among the n largest; count >= n >= 1."""
    lowest = nth_best(values, count, n)
    for i in range(count):
        n -= values[i] > lowest
    return lowest, n
