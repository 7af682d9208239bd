"""Binary search in sorted arrays."""

from typing import Any

from rnnsmt.base.kernels.decorator import INNER, kernel


@kernel(**INNER)
def lower_bound(values: Any, low: Any, high: Any, wanted: Any) -> Any:
    """Return the first index from ``low`` on whose value is at least ``wanted``, or ``high`` if there is none.

    Args:
        values: array, ascending between ``low`` and ``high``.
        low, high: range of the search, ``high`` excluded.
        wanted: value to search for.
    """
    while low < high:
        middle = (low + high) // 2
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low
