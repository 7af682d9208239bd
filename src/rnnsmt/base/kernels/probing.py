"""Hash tables with open addressing and linear probing; the number of slots is a power of two.

In a table of integers, the slots contain the integers. In a table of other keys, such as strings or rows of an array,
the slots contain indices of the keys; the caller compares the key of each slot, from ``first_slot`` on. (The table of
an n-gram LM, ``rnnsmt.lm.automaton``, may have any number of slots.)
"""

import numpy as np

from rnnsmt.base.kernels.decorator import INNER, UNCOUNTED, kernel
from rnnsmt.base.kernels.numbers import mix


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def first_slot(slots, hashed):
    """Return the slot at which the search for a key begins; ``hashed`` is the hash of the key, ``uint64``."""
    return np.int64(hashed & np.uint64(slots.shape[0] - 1))


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def next_slot(slots, slot):
    """Return the slot at which the search continues if ``slot`` contains another key."""
    return (slot + 1) & np.int64(slots.shape[0] - 1)


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def find_slot(keys, key, free):
    """Return the slot of a key, or the free slot in which to insert it.

    Args:
        keys: ``int64`` or ``uint64`` [n], content of the slots; n is a power of two, and at least one slot is free.
        key: key of the same type.
        free: content of free slots; must not be a key.
    """
    slot = first_slot(keys, mix(np.uint64(key)))
    while keys[slot] != key and keys[slot] != free:
        slot = next_slot(keys, slot)
    return slot


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def free_slot(slots, hashed, free):
    """Return the slot in which to insert a key that is not in a table.

    Args:
        slots: integers [n], content of the slots; n is a power of two, and at least one slot is free.
        hashed: ``uint64``, hash of the key.
        free: content of free slots.
    """
    slot = first_slot(slots, hashed)
    while slots[slot] != free:
        slot = next_slot(slots, slot)
    return slot
