"""Hash tables with open addressing and linear probing; the number of slots is a power of two.

A table of integer keys holds the keys. A table of other things, such as strings or rows of an array, holds their
numbers; what is equal is a matter of the thing, so only the search for a free slot is here. (The table of an n-gram LM,
``rnnsmt.lm.automaton``, has any number of slots.)
"""

import numpy as np

from rnnsmt.base.kernels.decorator import INNER, UNCOUNTED, kernel
from rnnsmt.base.kernels.numbers import mix


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def find_slot(keys, key, free):
    """Return the slot of a key, or the free slot in which to insert it.

    Args:
        keys: [power of two], ``int64`` or ``uint64``, at least one slot is free.
        key: of the type of ``keys``.
        free: content of free slots, which is no key.
    """
    mask = np.int64(keys.shape[0] - 1)
    slot = np.int64(mix(np.uint64(key))) & mask
    while keys[slot] != key and keys[slot] != free:
        slot = (slot + 1) & mask
    return slot


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def free_slot(slots, hashed, free):
    """Return the slot in which to insert a thing that is not in a table.

    Args:
        slots: [power of two], at least one is free.
        hashed: ``uint64``, the hash of the thing.
        free: content of free slots.
    """
    mask = np.int64(slots.shape[0] - 1)
    slot = np.int64(hashed & np.uint64(mask))
    while slots[slot] != free:
        slot = (slot + 1) & mask
    return slot
