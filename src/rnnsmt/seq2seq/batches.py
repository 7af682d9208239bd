"""Minibatches of sentence pairs of similar lengths; each pair once per epoch."""

import numpy as np
import torch
from torch import Tensor

from rnnsmt.base.io import InputError
from rnnsmt.networks.batches import WINDOW, Index, WindowBatches
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


class SentenceBatches(WindowBatches):
    """Minibatches of sentence pairs of similar lengths; ``size`` is the number of pairs of an epoch."""

    def __init__(self, pairs: SentencePairs, batch: int, seed: int, held_out: Index) -> None:
        """Begin with the first epoch.

        Args:
            pairs: all pairs.
            batch: number of pairs of a minibatch; one minibatch of a window may have fewer.
            seed: seed of the order.
            held_out: indices of held-out pairs, ascending.

        Raises:
            InputError: no pairs are left for training.
        """
        super().__init__(len(pairs) - len(held_out), seed)
        self.pairs, self.batch = pairs, batch
        if self.size <= 0:
            raise InputError(f"{pairs.directory}: no pairs are left for training; give more text, or --held-out 0")
        kept = np.ones(len(pairs), bool)
        kept[held_out] = False
        self._kept = np.flatnonzero(kept)

    @property
    def updates(self) -> int:
        """Return the number of minibatches of an epoch."""
        last = self.size - (self.windows - 1) * WINDOW
        return (self.windows - 1) * -(-WINDOW // self.batch) + -(-last // self.batch)

    def form(self, order: Index) -> list[Index]:
        """Form the minibatches of the current window by length."""
        return by_length(self.pairs, self._kept[order], self.batch)
