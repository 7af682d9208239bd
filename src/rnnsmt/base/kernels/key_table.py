"""Hash table of integer keys: open addressing with linear probing; the number of slots is a power of two."""

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
