"""Hash tables with open addressing and linear probing; the number of slots is a power of two.

A table of integer keys holds the keys. A table of other things, such as strings or rows of an array, holds their
numbers; its owner compares the things in the slots from ``first_slot`` on, one after the other. (The table of an n-gram
LM, ``rnnsmt.lm.automaton``, has any number of slots.)
"""

import numpy as np

from rnnsmt.base.kernels.decorator import INNER, UNCOUNTED, kernel
from rnnsmt.base.kernels.numbers import mix


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def first_slot(slots, hashed):
    """Return the slot at which the search for a thing begins, given its hash ``uint64``."""
    return np.int64(hashed & np.uint64(slots.shape[0] - 1))


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def next_slot(slots, slot):
    """Return the slot at which the search continues if a slot contains another thing."""
    return (slot + 1) & np.int64(slots.shape[0] - 1)


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def find_slot(keys, key, free):
    """Return the slot of a key, or the free slot in which to insert it.

    Args:
        keys: [power of two], ``int64`` or ``uint64``, at least one slot is free.
        key: of the type of ``keys``.
        free: content of free slots, which is no key.
    """
    slot = first_slot(keys, mix(np.uint64(key)))
    while keys[slot] != key and keys[slot] != free:
        slot = next_slot(keys, slot)
    return slot


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def free_slot(slots, hashed, free):
    """Return the slot in which to insert a thing that is not in a table.

    Args:
        slots: [power of two], at least one is free.
        hashed: ``uint64``, the hash of the thing.
        free: content of free slots.
    """
    slot = first_slot(slots, hashed)
    while slots[slot] != free:
        slot = next_slot(slots, slot)
    return slot
