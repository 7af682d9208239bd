"""The minibatches of n-grams: every n-gram once an epoch, in random order."""

from typing import Any

import numpy as np

from rnnsmt.networks.batches import WINDOW, Index, permuted


class NGramBatches:
    """An endless sequence of minibatches of places in a text: each n-gram once an epoch, in random order.

    The order of about ``WINDOW`` n-grams, whole minibatches, is computed at a time.
    """

    def __init__(self, n: int, batch: int, seed: int, held_out: Index) -> None:
        """n: n-grams of the text. held_out: ascending, not among the minibatches."""
        self.n, self.batch, self.seed = n - len(held_out), batch, seed
        self._before = held_out - np.arange(len(held_out))
        self.window = max(WINDOW // batch, 1) * batch
        self.epoch, self.position = 0, 0
        self._first = -1
        self._order = np.zeros(0, np.int64)

    @property
    def updates(self) -> int:
        """Minibatches of an epoch."""
        return -(-self.n // self.batch)

    def __next__(self) -> Index:
        """The next minibatch; the last one of an epoch may be smaller."""
        first = self.position - self.position % self.window
        if first != self._first:
            positions = np.arange(first, min(first + self.window, self.n))
            self._order, self._first = permuted(positions, self.n, [self.seed, 2, self.epoch]), first
        begin = self.position - first
        places = self._order[begin : begin + self.batch]
        self.position += len(places)
        if self.position == self.n:
            self.epoch, self.position, self._first = self.epoch + 1, 0, -1
        # the k-th n-gram that is not held out stands behind all held-out ones with no more than k others before them
        return places + np.searchsorted(self._before, places, side="right")

    def state(self) -> dict[str, Any]:
        """Where the sequence is."""
        return {"epoch": self.epoch, "position": self.position}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on where ``state`` was taken."""
        self.epoch, self.position, self._first = state["epoch"], state["position"], -1
