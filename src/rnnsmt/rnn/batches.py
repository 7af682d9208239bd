"""Minibatches of phrase pairs in random order, without padding; each pair once per epoch, or as often as extracted.

The pairs of a minibatch have equal numbers of source words and equal numbers of target words, unless batching is
random.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rnnsmt.base.io import InputError
from rnnsmt.networks.batches import Index, WindowBatches
from rnnsmt.rnn.pairs import Pairs


def pair_tensors(pairs: Pairs, index: Index, device: torch.device | str = "cpu") -> tuple[Tensor, Tensor]:
    """Return pairs of equal lengths as int64 ids with EOS, source [N, B] and target [T, B]; one copy to the device."""
    found = []
    for side in pairs.sides:
        begin = np.asarray(side.offsets[index])
        length = int(side.offsets[index[0] + 1] - begin[0])
        places = begin[None, :] + np.arange(length)[:, None]
        found.append(side.words[places].astype(np.int64))
    source, target = torch.from_numpy(np.concatenate(found)).to(device, non_blocking=True).split([*map(len, found)])
    return source, target


def group_by_length(pairs: Pairs, index: Index) -> list[Index]:
    """Group pairs by their numbers of source and target words; the order within a group is kept."""
    source, target = (side.lengths(index) for side in pairs.sides)
    # (source length, target length) as one integer
    kind = source * (int(target.max(initial=0)) + 1) + target
    order = np.argsort(kind, kind="stable")
    borders = np.flatnonzero(np.diff(kind[order])) + 1
    return [part for part in np.split(index[order], borders) if len(part)]


class PairBatches(WindowBatches):
    """Minibatches of phrase pairs.

    The pairs of incomplete minibatches are carried over to the next window, except at the end of an epoch.

    Attributes:
        size: number of occurrences of pairs in an epoch, including excluded ones.
        trained: the same without excluded ones.
        waiting: pairs carried over from the previous window.
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
        """Begin with the first epoch.

        Args:
            pairs: all pairs.
            batch: number of pairs of a minibatch; at the end of an epoch there may be fewer.
            seed: seed of the order.
            untrained: indices of excluded pairs, ascending.
            counts: [pairs], occurrences of each pair per epoch; None: once.
            same_lengths: the pairs of a minibatch have equal lengths.

        Raises:
            InputError: no pair is left to train on.
        """
        self._ends = None if counts is None else np.cumsum(counts, dtype=np.int64)
        super().__init__(len(pairs) if self._ends is None else int(self._ends[-1]), seed)
        self.pairs, self.batch, self.untrained, self.same_lengths = pairs, batch, untrained, same_lengths
        self.trained = self.size - len(untrained) if counts is None else self.size - int(counts[untrained].sum())
        if self.trained <= 0:
            raise InputError(
                f"{pairs.directory}: no pairs are left for training; give more text, or omit --held-out and --leave-out"
            )
        self.waiting: Index = np.zeros(0, np.int64)
        self._left = self.waiting

    def next_window(self) -> None:
        """Go to the next window with the pairs that the current one has left."""
        super().next_window()
        self.waiting = self._left

    def form(self, order: Index) -> list[Index]:
        """Form the minibatches of the current window by length, or of any pairs; keep what is left over."""
        index = order
        if self._ends is not None:
            # number of an occurrence -> pair
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
        self._left = np.concatenate(left)
        return ready

    def state(self) -> dict[str, Any]:
        """Return the position in the sequence, for a checkpoint."""
        return super().state() | {"waiting": torch.from_numpy(self.waiting.copy())}

    def restore(self, state: dict[str, Any]) -> None:
        """Resume at a position that ``state`` returned."""
        super().restore(state)
        self.waiting = state["waiting"].cpu().numpy()

    def updates(self, epochs: float) -> int:
        """Return the approximate number of minibatches of ``epochs`` epochs, as if all were complete."""
        return max(round(epochs * self.trained / self.batch), 1)
