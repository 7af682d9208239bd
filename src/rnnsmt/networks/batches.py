"""Minibatches of training examples in random order.

The random order depends only on the seed. Only a part of it is in memory at any time.

* ``ShuffledBatches``: a minibatch consists of consecutive examples of the random order.
* ``SortedBatches``: the examples of several consecutive minibatches are sorted by length and divided again.
* ``WindowBatches``: base class; a subclass forms minibatches of the examples of a window of the random order.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rnnsmt.networks.read_ahead import ReadAhead

Index = NDArray[np.int64]
"""Indices of examples: of phrase or sentence pairs, or of positions in a text."""

WINDOW = 1 << 15
"""Number of examples in a window: consecutive examples of the random order that are in memory together."""


def draw_held_out(n: int, number: int, seed: int) -> Index:
    """Draw ``number`` of ``n`` examples to be held out from training; return their indices, ascending."""
    return np.sort(np.random.default_rng([seed, 1]).choice(n, number, replace=False, shuffle=False)).astype(np.int64)


def permuted(positions: Index, n: int, key: list[int]) -> Index:
    """Return the values at the given positions of a pseudo-random permutation of 0 .. n-1 that ``key`` selects.

    A Feistel cipher of four rounds permutes all b-bit numbers, where b is the smallest even number of bits in which n-1
    can be written. A value of n or more is encrypted again until it is below n ("cycle walking"), which gives a
    permutation of 0 .. n-1. No array of size n is required.
    """
    half = max((max(n - 1, 1).bit_length() + 1) // 2, 1)
    mask = np.uint64((1 << half) - 1)
    keys = np.random.SeedSequence(key).generate_state(4, np.uint64)
    result = positions.astype(np.uint64)
    outside = np.ones(len(result), bool)
    while outside.any():
        left, right = result[outside] >> np.uint64(half), result[outside] & mask
        for round_key in keys:
            left, right = right, left ^ (_mixed(right, round_key) & mask)
        result[outside] = (left << np.uint64(half)) | right
        outside[outside] = result[outside] >= n
    return result.astype(np.int64)


def _mixed(value: NDArray[np.uint64], key: np.uint64) -> NDArray[np.uint64]:
    """Return the round function of the cipher: multiply and shift twice, so that every bit affects every bit."""
    value = (value ^ key) * np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return value ^ (value >> np.uint64(32))


def without(held_out: Index) -> Callable[[Index], Index]:
    """Return a function that maps k to the k-th example (0-based) that is not held out, for an array of k.

    held_out: indices of the held-out examples, ascending.
    """
    # number of examples that are not held out before each held-out one, ascending
    before = held_out - np.arange(len(held_out))
    # the k-th example follows every held-out example that is preceded by at most k examples that are not held out
    return lambda places: places + np.searchsorted(before, places, side="right")


class ShuffledBatches:
    """Endless sequence of minibatches of examples in random order; each example occurs once per epoch.

    The random order is computed for a window of about ``WINDOW`` examples at a time, a whole number of minibatches.
    """

    def __init__(self, n: int, batch: int, seed: int, held_out: Index, examples: ReadAhead[Any] | None = None) -> None:
        """Begin with the first epoch.

        Args:
            n: number of examples, for instance the n-grams of a text.
            batch: number of examples of a minibatch.
            held_out: indices of the held-out examples, ascending.
            examples: reads the examples of the current window and, ahead of time, those of the next one.
        """
        self.n, self.batch, self.seed, self.examples = n - len(held_out), batch, seed, examples
        self._kept = without(held_out)
        self.window = max(WINDOW // batch, 1) * batch
        self.epoch, self.position = 0, 0
        self._first = -1
        self._order = np.zeros(0, np.int64)

    @property
    def updates(self) -> int:
        """Return the number of minibatches of an epoch."""
        return -(-self.n // self.batch)

    def __next__(self) -> Index:
        """Return the indices of the examples of the next minibatch; the last one of an epoch may be smaller."""
        first = self.position - self.position % self.window
        if first != self._first:
            self._order, self._first = self._window(self.epoch, first), first
            if self.examples is not None:
                self.examples.take(self._order)
                following = first + self.window
                self.examples.read_ahead(
                    self._window(self.epoch, following) if following < self.n else self._window(self.epoch + 1, 0)
                )
        begin = self.position - first
        index = self._order[begin : begin + self.batch]
        self.position += len(index)
        if self.position == self.n:
            self.epoch, self.position, self._first = self.epoch + 1, 0, -1
        return index

    def _window(self, epoch: int, first: int) -> Index:
        """Return the indices, in random order, of the examples of the window that begins at the position ``first``."""
        positions = np.arange(first, min(first + self.window, self.n))
        return self._kept(permuted(positions, self.n, [self.seed, 2, epoch]))

    def state(self) -> dict[str, Any]:
        """Return the position in the sequence, for a checkpoint."""
        return {"epoch": self.epoch, "position": self.position}

    def restore(self, state: dict[str, Any]) -> None:
        """Resume at a position that ``state`` returned."""
        self.epoch, self.position, self._first = state["epoch"], state["position"], -1


SORTED_TOGETHER = 10
"""Number of minibatches of ``SortedBatches`` that are sorted together: ``sort_k_batches`` in the authors' code."""


class SortedBatches:
    """Endless sequence of minibatches of examples of similar length, as in the code of the paper's authors.

    Each example occurs once per epoch. The examples of ``SORTED_TOGETHER`` minibatches are drawn in random order,
    sorted by length and divided into minibatches, the shortest examples first. At the end of an epoch there may be
    fewer examples.
    """

    def __init__(
        self,
        n: int,
        batch: int,
        seed: int,
        held_out: Index,
        lengths: Callable[[Index], Index],
        examples: ReadAhead[Any] | None = None,
    ) -> None:
        """Begin with the first epoch.

        Args:
            n, held_out, examples: as in ``ShuffledBatches``.
            batch: number of examples of a minibatch; the last one of an epoch may be smaller.
            lengths: function that returns the lengths of examples of the current window.
        """
        self.batch, self.lengths = batch, lengths
        self._drawn = ShuffledBatches(n, SORTED_TOGETHER * batch, seed, held_out, examples)
        self._begin, self.taken = self._drawn.state(), 0
        self._ready: deque[Index] = deque()

    def __next__(self) -> Index:
        """Return the indices of the examples of the next minibatch."""
        if not self._ready:
            self._begin, self.taken = self._drawn.state(), 0
            self._fill()
        self.taken += 1
        return self._ready.popleft()

    def _fill(self) -> None:
        """Draw and sort the examples of the next minibatches; skip the first ``taken`` minibatches."""
        drawn = next(self._drawn)
        drawn = drawn[np.argsort(self.lengths(drawn), kind="stable")]
        begins = range(self.taken * self.batch, len(drawn), self.batch)
        self._ready = deque(drawn[begin : begin + self.batch] for begin in begins)

    def state(self) -> dict[str, Any]:
        """Return the position in the sequence, for a checkpoint."""
        return {**self._begin, "taken": self.taken}

    def restore(self, state: dict[str, Any]) -> None:
        """Resume at a position that ``state`` returned."""
        self._begin, self.taken = {name: state[name] for name in ("epoch", "position")}, state["taken"]
        self._drawn.restore(self._begin)
        self._fill()


class WindowBatches(ABC):
    """Endless sequence of minibatches that are formed from one window of ``WINDOW`` examples at a time.

    A subclass forms the minibatches of a window, for instance of examples of equal lengths. They are then shuffled.

    Attributes:
        size: number of examples of an epoch.
        windows: number of windows of an epoch.
        epoch, window: indices of the current epoch and of the current window in it.
        taken: number of minibatches of the current window that have been returned.
    """

    def __init__(self, size: int, seed: int) -> None:
        """Begin with the first epoch of ``size`` examples."""
        self.size, self.seed = size, seed
        self.windows = -(-size // WINDOW)
        self.epoch, self.window, self.taken = 0, 0, 0
        self._ready: deque[Index] | None = None

    @abstractmethod
    def form(self, order: Index) -> list[Index]:
        """Form the minibatches of the current window.

        order: the numbers of its examples, from 0 to ``size`` - 1, in random order.
        """

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Index:
        """Return the indices of the examples of the next minibatch."""
        if self._ready is None:
            self._fill()
        while not self._ready:
            self.next_window()
            self._fill()
        self.taken += 1
        return self._ready.popleft()

    def next_window(self) -> None:
        """Go to the next window, which may be in the next epoch."""
        self.epoch, self.window = divmod(self.epoch * self.windows + self.window + 1, self.windows)
        self.taken = 0

    def order(self, after: int = 0) -> Index:
        """Return the numbers of the examples of a window, from 0 to ``size`` - 1, in random order.

        after: 0 for the current window, 1 for the next one, and so on.
        """
        epoch, window = divmod(self.epoch * self.windows + self.window + after, self.windows)
        positions = np.arange(window * WINDOW, min((window + 1) * WINDOW, self.size))
        return permuted(positions, self.size, [self.seed, 2, epoch])

    def _fill(self) -> None:
        """Form and shuffle the minibatches of the current window; skip the first ``taken`` minibatches."""
        ready = self.form(self.order())
        order = np.random.default_rng([self.seed, 3, self.epoch, self.window]).permutation(len(ready))
        self._ready = deque(ready[i] for i in order[self.taken :])

    def state(self) -> dict[str, Any]:
        """Return the position in the sequence, for a checkpoint."""
        return {"epoch": self.epoch, "window": self.window, "taken": self.taken}

    def restore(self, state: dict[str, Any]) -> None:
        """Resume at a position that ``state`` returned."""
        self.epoch, self.window, self.taken = state["epoch"], state["window"], state["taken"]
        self._ready = None
