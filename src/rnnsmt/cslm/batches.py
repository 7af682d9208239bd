"""Minibatches of n-grams: every n-gram once per epoch, in random order."""

from typing import Any

import numpy as np

from rnnsmt.networks.batches import WINDOW, Index, permuted


class NGramBatches:
    """An endless sequence of minibatches, as positions in a text: each n-gram once per epoch, in random order.

    The order is computed for about ``WINDOW`` n-grams (complete minibatches) at a time.
    """

    def __init__(self, n: int, batch: int, seed: int, held_out: Index) -> None:
        """Begin with the first epoch.

        Args:
            n: number of n-grams of the text.
            batch: number of n-grams of a minibatch.
            seed: seed of the order.
            held_out: positions of the held-out n-grams, ascending.
        """
        self.n, self.batch, self.seed = n - len(held_out), batch, seed
        # number of n-grams that are not held out before each held-out one, ascending
        self._before = held_out - np.arange(len(held_out))
        self.window = max(WINDOW // batch, 1) * batch
        self.epoch, self.position = 0, 0
        self._first = -1
        self._order = np.zeros(0, np.int64)

    @property
    def updates(self) -> int:
        """Return the number of minibatches of an epoch."""
        return -(-self.n // self.batch)

    def __next__(self) -> Index:
        """Return the next minibatch, positions in the text; the last one of an epoch may be smaller."""
        first = self.position - self.position % self.window
        if first != self._first:
            positions = np.arange(first, min(first + self.window, self.n))
            self._order, self._first = permuted(positions, self.n, [self.seed, 2, self.epoch]), first
        begin = self.position - first
        places = self._order[begin : begin + self.batch]
        self.position += len(places)
        if self.position == self.n:
            self.epoch, self.position, self._first = self.epoch + 1, 0, -1
        # the k-th n-gram (from 0) that is not held out comes after all held-out ones with at most k such before them
        return places + np.searchsorted(self._before, places, side="right")

    def state(self) -> dict[str, Any]:
        """Return the position in the sequence, for a checkpoint."""
        return {"epoch": self.epoch, "position": self.position}

    def restore(self, state: dict[str, Any]) -> None:
        """Resume at a position that ``state`` returned."""
        self.epoch, self.position, self._first = state["epoch"], state["position"], -1
