"""Sums of fractional counts that do not depend on the order of their terms.

A count is an integer, in units of 1 / ``ONE``: integers add up to the same sum in any order, so that threads and
machines may share the sentences of a corpus as they like. A count of one cell may reach 2^31.
"""

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from rnnsmt.kernels.decorator import kernel

ONE = 2.0**32
"""What an expected count of 1 is."""


@intrinsic
def _add_atomically(_typing, array, index, amount):
    """``array[index] += amount`` for int64 [n], whole even where other threads add to the same element."""
    signature = types.void(array, index, amount)

    def generate(context, builder, _signature, arguments):
        data = make_array(array)(context, builder, arguments[0])
        place = cgutils.get_item_pointer(context, builder, array, data, [arguments[1]])
        builder.atomic_rmw("add", place, arguments[2], "monotonic")
        return ir.Constant(ir.IntType(8).as_pointer(), None)

    return signature, generate


@kernel()
def add_count(counts, index, amount):
    """Add a fractional count, also below 0, to ``counts`` [n], int64; several threads may do so at the same time."""
    _add_atomically(counts, np.int64(index), np.int64(np.rint(amount * ONE)))  # type: ignore[call-arg]


@kernel()
def add_counts(counts, amounts):
    """``add_count`` of ``amounts`` [n], float64, to all elements."""
    for index in range(len(amounts)):
        if amounts[index] != 0.0:
            add_count(counts, index, amounts[index])
