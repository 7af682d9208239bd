"""The minibatches of phrase pairs: each once an epoch, or as often as it was extracted, in random order, unpadded.

The pairs of a minibatch have the same number of source words and of target words, unless they are drawn at random.
"""

from collections import deque
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rnnsmt.io import InputError
from rnnsmt.networks.batches import WINDOW, Index, permuted
from rnnsmt.rnn.pairs import Pairs


def pair_tensors(pairs: Pairs, index: Index, device: torch.device | str = "cpu") -> tuple[Tensor, Tensor]:
    """Pairs of equal lengths as ids with EOS: source [N, B], target [T, B]; one copy to a device for both."""
    found = []
    for side in pairs.sides:
        begin = np.asarray(side.offsets[index])
        length = int(side.offsets[index[0] + 1] - begin[0])
        places = begin[None, :] + np.arange(length)[:, None]
        found.append(side.words[places].astype(np.int64))
    source, target = torch.from_numpy(np.concatenate(found)).to(device, non_blocking=True).split([*map(len, found)])
    return source, target


def group_by_length(pairs: Pairs, index: Index) -> list[Index]:
    """Split pairs by their numbers of source and target words; the order within a group is kept."""
    source, target = (side.lengths(index) for side in pairs.sides)
    kind = source * (int(target.max(initial=0)) + 1) + target
    order = np.argsort(kind, kind="stable")
    borders = np.flatnonzero(np.diff(kind[order])) + 1
    return [part for part in np.split(index[order], borders) if len(part)]


class PairBatches:
    """An endless sequence of minibatches of pair numbers.

    Of every ``WINDOW`` pairs minibatches are formed; what is left over waits for the next window.
    """

    def __init__(
        self,
        pairs: Pairs,
        batch: int,
        seed: int,
        untrained: Index,
        counts: NDArray[np.int32] | None = None,
        same_lengths: bool = True,
    ) -> None:
        """batch: pairs of a minibatch; those at the end of an epoch may have fewer. untrained: those that never come,
        ascending. counts: how often each pair comes in an epoch; none: once. same_lengths: of the pairs of a minibatch.

        Raises:
            InputError: no pair is left.
        """
        self.pairs, self.batch, self.seed, self.untrained = pairs, batch, seed, untrained
        self.same_lengths = same_lengths
        self._ends = None if counts is None else np.cumsum(counts, dtype=np.int64)
        self.size = len(pairs) if self._ends is None else int(self._ends[-1])
        """Pairs of an epoch, those that never come among them."""
        self.trained = self.size - len(untrained) if counts is None else self.size - int(counts[untrained].sum())
        """Pairs of an epoch that are trained on."""
        if self.trained <= 0:
            raise InputError(
                f"{pairs.folder}: no pair is left to train on; give more text, or neither --held-out nor --leave-out"
            )
        self.windows = -(-self.size // WINDOW)
        self.epoch, self.window, self.taken = 0, 0, 0
        self.waiting: Index = np.zeros(0, np.int64)
        """Pairs that were left over when this window began."""
        self._ready: deque[Index] | None = None
        self._left = self.waiting

    def __iter__(self) -> "PairBatches":
        return self

    def __next__(self) -> Index:
        """The next minibatch: pair numbers."""
        if self._ready is None:
            self._fill()
        while not self._ready:
            self.window, self.taken, self.waiting = self.window + 1, 0, self._left
            if self.window == self.windows:
                self.epoch, self.window = self.epoch + 1, 0
            self._fill()
        self.taken += 1
        return self._ready.popleft()

    def _fill(self) -> None:
        """Form the minibatches of the current window, without the ones that were taken already."""
        positions = np.arange(self.window * WINDOW, min((self.window + 1) * WINDOW, self.size))
        index = permuted(positions, self.size, [self.seed, 2, self.epoch])
        if self._ends is not None:
            index = np.searchsorted(self._ends, index, "right")
        if len(self.untrained):
            place = np.minimum(np.searchsorted(self.untrained, index), len(self.untrained) - 1)
            index = index[self.untrained[place] != index]
        last = self.window + 1 == self.windows
        ready, left = [], [np.zeros(0, np.int64)]
        index = np.concatenate([self.waiting, index])
        for group in group_by_length(self.pairs, index) if self.same_lengths else [index]:
            whole = len(group) if last else len(group) - len(group) % self.batch
            ready += [group[begin : begin + self.batch] for begin in range(0, whole, self.batch)]
            left.append(group[whole:])
        order = np.random.default_rng([self.seed, 3, self.epoch, self.window]).permutation(len(ready))
        self._ready = deque(ready[i] for i in order[self.taken :])
        self._left = np.concatenate(left)

    def state(self) -> dict[str, Any]:
        """Where the sequence is."""
        waiting = torch.from_numpy(self.waiting.copy())
        return {"epoch": self.epoch, "window": self.window, "taken": self.taken, "waiting": waiting}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on where ``state`` was taken."""
        self.epoch, self.window, self.taken = state["epoch"], state["window"], state["taken"]
        self.waiting = state["waiting"].cpu().numpy()
        self._ready = None

    def updates(self, epochs: float) -> int:
        """About how many minibatches there are in so many epochs: as if all were whole."""
        return max(round(epochs * self.trained / self.batch), 1)
