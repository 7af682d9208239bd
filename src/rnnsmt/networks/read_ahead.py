"""Training examples of the current window of the random order in memory, while those of the next window are read.

Examples in random order lie on different pages of the memory-mapped files. Each window is read in the background in
ascending order, a few examples at a time, and the pages are unmapped after each of these reads
(``rnnsmt.networks.data.read_apart``). The memory used therefore does not depend on the size of the files.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Examples = TypeVar("Examples")


class ReadAhead(Generic[Examples]):
    """The examples of the current window in memory.

    Attributes:
        index: the indices of these examples, ascending.
    """

    def __init__(self, read: Callable[[NDArray[np.int64]], Examples]) -> None:
        """Begin without a window.

        Args:
            read: function that takes distinct, ascending indices [K] and returns the K examples in this order. It is
                called in a background thread, one call at a time.
        """
        self._read = read
        self._thread = ThreadPoolExecutor(1, "read-ahead")
        self.index: NDArray[np.int64] = np.zeros(0, np.int64)
        self._window: Future[Examples] | None = None
        self._next: tuple[NDArray[np.int64], Future[Examples] | None] = self.index, None

    def take(self, index: NDArray[np.int64]) -> tuple[Examples, NDArray[np.int64]]:
        """Replace the window by the examples ``index`` [K], in any order; wait until they are read.

        Returns:
            The examples of the window, and the position [K] of each of ``index`` among them.
        """
        self.index, self._window = self._begin(index)
        return self.of(index)

    def read_ahead(self, index: NDArray[np.int64]) -> None:
        """Begin to read the examples of the next window."""
        self._next = self._begin(index)

    def of(self, index: NDArray[np.int64]) -> tuple[Examples, NDArray[np.int64]]:
        """Return examples that include those of ``index`` [K], and the position [K] of each of ``index`` among them.

        These are the examples of the window; if it lacks some of ``index``, exactly the examples ``index`` are read.
        """
        if self._window is not None:
            places = np.searchsorted(self.index, index)
            if np.array_equal(self.index.take(places, mode="clip"), index):
                return self._window.result(), places
        distinct, places = np.unique(index, return_inverse=True)
        return self._thread.submit(self._read, distinct).result(), places

    def _begin(self, index: NDArray[np.int64]) -> tuple[NDArray[np.int64], Future[Examples]]:
        """Begin to read examples, unless they are exactly the examples of the current window or of the next one."""
        index = np.sort(index)
        for known, read in ((self.index, self._window), self._next):
            if read is not None and np.array_equal(known, index):
                return known, read
        return index, self._thread.submit(self._read, index)
