"""A binary heap over an array of (key, item) records, largest key first."""

from numba import njit


@njit(cache=True, nogil=True, forceinline=True)
def push(heap, size, key, item):
    """Add an entry; returns the new size."""
    place = size
    while place > 0:
        parent = (place - 1) >> 1
        above = heap[parent]
        if above.key >= key:
            break
        heap[place].key = above.key
        heap[place].item = above.item
        place = parent
    heap[place].key = key
    heap[place].item = item
    return size + 1


@njit(cache=True, nogil=True, forceinline=True)
def sift(heap, size, place, key, item):
    """Put an entry at ``place`` and let it sink to where it belongs."""
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and heap[child + 1].key > heap[child].key:
            child += 1
        below = heap[child]
        if below.key <= key:
            break
        heap[place].key = below.key
        heap[place].item = below.item
        place = child
    heap[place].key = key
    heap[place].item = item


@njit(cache=True, nogil=True, forceinline=True)
def drop(heap, size):
    """Remove the largest entry (read it at 0 before); returns the new size."""
    size -= 1
    if size > 0:
        sift(heap, size, 0, heap[size].key, heap[size].item)
    return size


@njit(cache=True, nogil=True, forceinline=True)
def heapify(heap, size):
    """Turn the first ``size`` entries into a heap."""
    for place in range((size >> 1) - 1, -1, -1):
        sift(heap, size, place, heap[place].key, heap[place].item)
