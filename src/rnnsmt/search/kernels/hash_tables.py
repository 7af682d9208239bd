"""Hash tables of the search: open addressing with linear probing; the number of slots is a power of two.

There are two kinds. A table of *rows* numbers the rows of an array in the order of their first appearance; it grows
with the array. A *stamped* table belongs to the stack that is being filled: its slots contain the number of the stack,
so it need not be cleared between stacks.

Numbers do not depend on the hash function or on the number of slots, only on the order of the requests.
"""

import numpy as np

from rnnsmt.base.kernels.decorator import INNER, UNCOUNTED, kernel
from rnnsmt.base.kernels.numbers import GOLDEN_RATIO, mix

FREE = -1
"""Content of free slots of a table of rows."""

SLOT = np.dtype([("high", np.uint64), ("low", np.uint64), ("stamp", np.int32), ("item", np.int32)])
"""Slot of a stamped table: a key of two 64-bit numbers, the stamp (the slot is occupied only if it is that of the
current stack), and the index of the item with this key."""


@kernel(**INNER, **UNCOUNTED)
def _first_slot(rows, number, slots):
    """Return the slot at which the search for a row begins."""
    key = np.uint64(0)
    for column in range(rows.shape[1]):
        key = mix(key ^ np.uint64(rows[number, column]))
    return np.int64(key & np.uint64(slots.shape[0] - 1))


@kernel(**INNER, **UNCOUNTED)
def number_row(rows, slots, counts, used):
    """Number the row that the caller has written behind the rows in use.

    Args:
        rows: ``int32`` [more than ``counts[used]``, n].
        slots: ``int32`` [a power of two, at least twice the number of rows], ``FREE`` in free slots.
        counts: ``int64``; ``counts[used]`` is the number of rows in use, and is increased if the row is new.
        used: index in ``counts``.

    Returns:
        The number ``int32`` of the row in use that is equal to it; its own if there is none.
    """
    new = counts[used]
    slot = _first_slot(rows, new, slots)
    while slots[slot] != FREE:
        known = slots[slot]
        same = True
        for column in range(rows.shape[1]):
            same = same and rows[known, column] == rows[new, column]
        if same:
            return np.int32(known)
        slot = (slot + 1) & (slots.shape[0] - 1)
    slots[slot] = new
    counts[used] = new + 1
    return np.int32(new)


@kernel(**UNCOUNTED)
def enter_rows(rows, slots, count):
    """Enter the first ``count`` rows, which are distinct, into an empty table."""
    for number in range(count):
        slot = _first_slot(rows, number, slots)
        while slots[slot] != FREE:
            slot = (slot + 1) & (slots.shape[0] - 1)
        slots[slot] = number


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def stamped_slot(slots, stamp, high, low, new):
    """Return the slot of a key in a stamped table; if there is none, add it with the item ``new``.

    Args:
        slots: ``SLOT`` [a power of two].
        stamp: number of the stack.
        high, low: ``uint64``, the key.
    """
    last = np.int64(slots.shape[0] - 1)
    slot = np.int64(mix(high * GOLDEN_RATIO ^ low) & np.uint64(last))
    while slots[slot].stamp == stamp:
        if slots[slot].high == high and slots[slot].low == low:
            return slot
        slot = (slot + 1) & last
    slots[slot].high = high
    slots[slot].low = low
    slots[slot].stamp = stamp
    slots[slot].item = new
    return slot


@kernel(inline="always")
def pair(first, second):
    """Return two non-negative 32-bit numbers as one ``uint64``, half of a key."""
    return (np.uint64(first) << np.uint64(32)) | np.uint64(second)
