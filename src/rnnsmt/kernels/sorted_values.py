"""Search in sorted values."""

from typing import Any

from rnnsmt.kernels.decorator import INNER, kernel


@kernel(**INNER)
def lower_bound(values: Any, low: Any, high: Any, wanted: Any) -> Any:
    """The first place from ``low`` on whose value is not below ``wanted``; ``high`` where there is none before it.

    values: those from ``low`` to before ``high`` ascend.
    """
    while low < high:
        middle = (low + high) // 2
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low
