"""Sums and searches in flat arrays: fixed-point accumulators of fractional counts, binary search.

A fractional count is stored as an integer in units of 1 / ``ONE``. Integer addition is associative, so that the
sentences of a corpus can be distributed over threads and machines in any way with the same result. An accumulator can
hold counts up to 2^31.
"""

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from rnnsmt.base.kernels.decorator import INNER, kernel

ONE = 2.0**32
"""Integer representation of an expected count of 1."""


@intrinsic
def _add_atomically(_typing, array, index, amount):
    """Add ``amount`` to ``array[index]`` (int64 [n]) atomically; several threads may update the same element."""
    signature = types.void(array, index, amount)

    def generate(context, builder, _signature, arguments):
        data = make_array(array)(context, builder, arguments[0])
        place = cgutils.get_item_pointer(context, builder, array, data, [arguments[1]])
        # "monotonic" is relaxed ordering: only the sum matters, not the order of the additions
        builder.atomic_rmw("add", place, arguments[2], "monotonic")
        return ir.Constant(ir.IntType(8).as_pointer(), None)  # numba's representation of None

    return signature, generate


@kernel()
def add_count(counts, index, amount):
    """Add a fractional count, which may be negative, to ``counts[index]`` (int64 [n]); thread-safe."""
    _add_atomically(counts, np.int64(index), np.int64(np.rint(amount * ONE)))  # type: ignore[call-arg]


@kernel()
def add_counts(counts, amounts):
    """Add ``amounts`` (float64 [n]) to all elements of ``counts`` (int64 [n]); thread-safe."""
    for index in range(len(amounts)):
        if amounts[index] != 0.0:
            add_count(counts, index, amounts[index])


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
