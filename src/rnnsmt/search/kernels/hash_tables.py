"""Hash tables of the search, which use the probing of ``base.kernels.probing``.

There are two kinds of hash tables. A table of *rows* numbers the distinct rows of an array in the order of their first
appearance; it grows with the array. A *stamped* table finds items of the stack that is being filled. Its slots contain
the stamp of the pass over the items in which they were filled, so the table need not be cleared between passes.

The numbers depend only on the order in which rows or items are added, not on the hash function or on the number of
slots.
"""

import numpy as np

from rnnsmt.base.kernels.decorator import INNER, UNCOUNTED, kernel
from rnnsmt.base.kernels.numbers import GOLDEN_RATIO, mix
from rnnsmt.base.kernels.probing import first_slot, free_slot, next_slot

FREE = -1
"""Content of free slots of a table of rows."""

SLOT = np.dtype([("high", np.uint64), ("low", np.uint64), ("stamp", np.int32), ("item", np.int32)])
"""Slot of a stamped table: the key (``high``, ``low``) and the index of an item. The slot is occupied only if ``stamp``
is that of the current pass."""


def power_of_two(size: int) -> int:
    """Return the smallest power of two that is at least ``size``, and at least 2."""
    return 1 << max(size - 1, 1).bit_length()


def new_table(items: int) -> np.ndarray:
    """Allocate the slots of a stamped table for up to ``items`` items per pass, ``SLOT`` [a power of two]."""
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
    """Find the row that the caller has written after the rows in use; add it to the rows in use if it is new.

    Args:
        rows: integers [more than ``counts[used]``, n].
        slots: ``int32`` [a power of two, at least twice the number of rows]; free slots contain ``FREE``.
        counts: ``int64``; ``counts[used]`` is the number of rows in use, which is increased if the row is new.
        used: index in ``counts``.

    Returns:
        The number ``int32`` of the equal row in use, or of the new row.
    """
    new = counts[used]
    slot = first_slot(slots, _hash_row(rows, new))
    while slots[slot] != FREE:
        known = slots[slot]
        same = True
        for column in range(rows.shape[1]):
            same = same and rows[known, column] == rows[new, column]
        if same:
            return np.int32(known)
        slot = next_slot(slots, slot)
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
    """Return the index of the item with a key; if there is none, add an item with the index ``new``.

    Args:
        slots: ``SLOT``, from ``new_table``.
        stamp: stamp of the current pass, not 0.
        high, low: ``uint64``, the key.
    """
    at = first_slot(slots, mix(high * GOLDEN_RATIO ^ low))
    slot = slots[at]
    while slot.stamp == stamp:
        if slot.high == high and slot.low == low:
            return np.int64(slot.item)
        at = next_slot(slots, at)
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
