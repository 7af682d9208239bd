"""The training examples of one window of the random order in memory, while the next window is read.

Examples in random order lie on different pages of the mapped files. Each window is read in the background in ascending
order, a few examples at a time, after which the pages are unmapped (``rnnsmt.networks.data.read_apart``): memory does
not depend on the size of the files.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Examples = TypeVar("Examples")


class ReadAhead(Generic[Examples]):
    """The examples of a window in memory.

    Attributes:
        index: the indices of the examples of the window, ascending.
    """

    def __init__(self, read: Callable[[NDArray[np.int64]], Examples]) -> None:
        """Begin without a window.

        Args:
            read: reads examples, given their indices [K], distinct and ascending; example k of its result is the k-th.
                It is called in a thread, by one thread at a time.
        """
        self._read = read
        self._thread = ThreadPoolExecutor(1, "read-ahead")
        self.index: NDArray[np.int64] = np.zeros(0, np.int64)
        self._window: Future[Examples] | None = None
        self._next: tuple[NDArray[np.int64], Future[Examples] | None] = self.index, None

    def take(self, index: NDArray[np.int64]) -> tuple[Examples, NDArray[np.int64]]:
        """Replace the window by the examples ``index`` [K], in any order; wait until they are read.

        Returns:
            The examples of the window, and the places [K] of ``index`` among them.
        """
        self.index, self._window = self._begin(index)
        return self.of(index)

    def read_ahead(self, index: NDArray[np.int64]) -> None:
        """Begin to read the examples of the next window."""
        self._next = self._begin(index)

    def of(self, index: NDArray[np.int64]) -> tuple[Examples, NDArray[np.int64]]:
        """Return examples that contain ``index`` [K], and the places of ``index`` among them.

        These are the examples of the window, or, if some of ``index`` are not in it, those that are read now.
        """
        if self._window is not None:
            places = np.searchsorted(self.index, index)
            if np.array_equal(self.index.take(places, mode="clip"), index):
                return self._window.result(), places
        distinct, places = np.unique(index, return_inverse=True)
        return self._thread.submit(self._read, distinct).result(), places

    def _begin(self, index: NDArray[np.int64]) -> tuple[NDArray[np.int64], Future[Examples]]:
        """Begin to read examples, unless they are those of this window or the next one."""
        index = np.sort(index)
        for known, read in ((self.index, self._window), self._next):
            if read is not None and np.array_equal(known, index):
                return known, read
        return index, self._thread.submit(self._read, index)
