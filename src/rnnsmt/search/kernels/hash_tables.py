"""Hash tables of the search, see ``base.kernels.key_table``.

There are two kinds. A table of *rows* numbers the rows of an array in the order of their first appearance; it grows
with the array. A table *of the stack* finds items of the stack that is being filled: its slots contain the number of
the stack, so it need not be cleared between stacks.

Numbers do not depend on the hash function or on the number of slots, only on the order of the requests.
"""

import numpy as np

from rnnsmt.base.kernels.decorator import INNER, UNCOUNTED, kernel
from rnnsmt.base.kernels.key_table import free_slot
from rnnsmt.base.kernels.numbers import GOLDEN_RATIO, mix

FREE = -1
"""Content of free slots of a table of rows."""

SLOT = np.dtype([("high", np.uint64), ("low", np.uint64), ("stamp", np.int32), ("item", np.int32)])
"""Slot of a table of the stack: key and index of an item; occupied only if ``stamp`` is the number of this stack."""


def power_of_two(size: int) -> int:
    """Return the smallest power of two that is at least ``size``, and at least 2."""
    return 1 << max(size - 1, 1).bit_length()


def new_table(items: int) -> np.ndarray:
    """Allocate the slots of a table for so many items per stack, ``SLOT`` [a power of two]."""
    return np.zeros(power_of_two(2 * items), SLOT)


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def _hash_row(rows, number):
    """Return the hash ``uint64`` of a row."""
    hashed = np.uint64(0)
    for column in range(rows.shape[1]):
        hashed = mix(hashed ^ np.uint64(rows[number, column]))
    return hashed


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def number_row(rows, slots, counts, used):
    """Assign a number to the row that the caller has written behind the rows in use.

    Args:
        rows: integers [more than ``counts[used]``, n].
        slots: ``int32`` [a power of two, at least twice the number of rows], ``FREE`` in free slots.
        counts: ``int64``; ``counts[used]`` is the number of rows in use, and is increased if the row is new.
        used: index in ``counts``.

    Returns:
        The number ``int32`` of the row in use that is equal to it; its own if there is none.
    """
    new = counts[used]
    last = np.int64(slots.shape[0] - 1)
    slot = np.int64(_hash_row(rows, new) & np.uint64(last))
    while slots[slot] != FREE:
        known = slots[slot]
        same = True
        for column in range(rows.shape[1]):
            same = same and rows[known, column] == rows[new, column]
        if same:
            return np.int32(known)
        slot = (slot + 1) & last
    slots[slot] = new
    counts[used] = new + 1
    return np.int32(new)


@kernel(**UNCOUNTED)
def enter_rows(rows, slots, count):
    """Enter the first ``count`` rows, which are distinct, into an empty table."""
    for number in range(count):
        slots[free_slot(slots, _hash_row(rows, number), FREE)] = number


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def find_item(slots, stamp, high, low, new):
    """Return the index of the item with a key; if there is none, add the item ``new``.

    Args:
        slots: ``SLOT``, of ``new_table``.
        stamp: number of the stack.
        high, low: ``uint64``, the key.
    """
    last = np.int64(slots.shape[0] - 1)
    at = np.int64(mix(high * GOLDEN_RATIO ^ low) & np.uint64(last))
    slot = slots[at]
    while slot.stamp == stamp:
        if slot.high == high and slot.low == low:
            return np.int64(slot.item)
        at = (at + 1) & last
        slot = slots[at]
    slot.stamp = stamp
    slot.item = new
    slot.high = high
    slot.low = low
    return np.int64(new)


@kernel(inline="always")
def pair(first, second):
    """Return two non-negative 32-bit numbers as one ``uint64``, half of a key."""
    return (np.uint64(first) << np.uint64(32)) | np.uint64(second)
