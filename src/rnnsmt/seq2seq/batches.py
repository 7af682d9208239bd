"""Minibatches of sentence pairs of similar lengths; each pair once per epoch."""

from collections import deque
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rnnsmt.base.io import InputError
from rnnsmt.networks.batches import WINDOW, Index, permuted
from rnnsmt.seq2seq.sentences import SentencePairs, as_read, padded


def pair_tensors(pairs: SentencePairs, index: Index, order: str, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return pairs as int64 ids with EOS, padded with 0: source [N, B] in reading order, target [T, B]."""
    source, target = pairs.sides
    found = padded([as_read(source.phrase(i), order) for i in index]), padded([target.phrase(i) for i in index])
    return torch.from_numpy(found[0]).to(device), torch.from_numpy(found[1]).to(device)


def by_length(pairs: SentencePairs, index: Index, batch: int) -> list[Index]:
    """Sort pairs by source length, then target length, and split them into parts of ``batch``."""
    source, target = (side.lengths(index) for side in pairs.sides)
    index = index[np.lexsort((target, source))]
    return [index[begin : begin + batch] for begin in range(0, len(index), batch)]


class SentenceBatches:
    """An endless sequence of minibatches, as indices of pairs.

    Minibatches are formed by length from windows of ``WINDOW`` consecutive pairs of the random order, and shuffled.
    """

    def __init__(self, pairs: SentencePairs, batch: int, seed: int, held_out: Index) -> None:
        """Begin with the first epoch.

        Args:
            pairs: all pairs.
            batch: number of pairs of a minibatch; one minibatch of a window may have fewer.
            seed: seed of the order.
            held_out: indices of held-out pairs, ascending.

        Raises:
            InputError: no pair is left to train on.
        """
        self.pairs, self.batch, self.seed = pairs, batch, seed
        self.size = len(pairs) - len(held_out)
        """Number of pairs of an epoch."""
        if self.size <= 0:
            raise InputError(f"{pairs.folder}: no pairs are left for training; give more text, or --held-out 0")
        kept = np.ones(len(pairs), bool)
        kept[held_out] = False
        self._kept = np.flatnonzero(kept)
        self.windows = -(-self.size // WINDOW)
        self.epoch, self.window, self.taken = 0, 0, 0
        self._ready: deque[Index] | None = None

    @property
    def updates(self) -> int:
        """Return the number of minibatches of an epoch."""
        last = self.size - (self.windows - 1) * WINDOW
        return (self.windows - 1) * -(-WINDOW // self.batch) + -(-last // self.batch)

    def __iter__(self) -> "SentenceBatches":
        return self

    def __next__(self) -> Index:
        """Return the next minibatch, indices of pairs."""
        if self._ready is None:
            self._fill()
        if not self._ready:
            self.window, self.taken = self.window + 1, 0
            if self.window == self.windows:
                self.epoch, self.window = self.epoch + 1, 0
            self._fill()
        assert self._ready
        self.taken += 1
        return self._ready.popleft()

    def _fill(self) -> None:
        """Form the minibatches of the current window, except the first ``taken`` ones."""
        positions = np.arange(self.window * WINDOW, min((self.window + 1) * WINDOW, self.size))
        index = self._kept[permuted(positions, self.size, [self.seed, 2, self.epoch])]
        ready = by_length(self.pairs, index, self.batch)
        order = np.random.default_rng([self.seed, 3, self.epoch, self.window]).permutation(len(ready))
        self._ready = deque(ready[i] for i in order[self.taken :])

    def state(self) -> dict[str, Any]:
        """Return the position in the sequence, for a checkpoint."""
        return {"epoch": self.epoch, "window": self.window, "taken": self.taken}

    def restore(self, state: dict[str, Any]) -> None:
        """Resume at a position that ``state`` returned."""
        self.epoch, self.window, self.taken = state["epoch"], state["window"], state["taken"]
        self._ready = None
