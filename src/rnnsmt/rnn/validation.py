"""The likelihood of held-out pairs, and what a unigram model gives them."""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from rnnsmt.networks.batches import Index
from rnnsmt.networks.devices import Place, full_precision
from rnnsmt.rnn.batches import group_by_length, pair_tensors
from rnnsmt.rnn.model import RNNEncoderDecoder
from rnnsmt.rnn.pairs import Pairs

ROWS = 256
"""Pairs that are measured at a time."""


class Likelihood(NamedTuple):
    """Mean log p(y | x), natural logarithm: of a pair, and of a target word, every EOS counted as one."""

    per_pair: float
    per_word: float


class HeldOutPairs:
    """Pairs that are not trained on."""

    def __init__(self, pairs: Pairs, index: Index, place: Place) -> None:
        self.place = place
        groups = group_by_length(pairs, index)
        pieces = [group[begin : begin + ROWS] for group in groups for begin in range(0, len(group), ROWS)]
        self.pieces = [pair_tensors(pairs, piece, place.device) for piece in pieces[place.rank :: place.processes]]
        self.pairs = len(index)
        self.words = int(pairs.sides[1].lengths(index).sum())

    @torch.no_grad()
    def measure(self, model: RNNEncoderDecoder) -> Likelihood:
        """The likelihood by the network, in plain float32 products whatever the training uses."""
        total = torch.zeros((), dtype=torch.float64, device=self.place.device)
        with full_precision():
            for source, target in self.pieces:
                lengths = [torch.full((side.shape[1],), len(side), device=side.device) for side in (source, target)]
                total += model.log_probability(source.t(), lengths[0], target.t(), lengths[1]).double().sum()
        value = float(self.place.sum(total))
        return Likelihood(value / max(self.pairs, 1), value / max(self.words, 1))


def unigram_likelihood(pairs: Pairs, held_out: Index, frequencies: NDArray[np.int64]) -> Likelihood:
    """Held-out pairs under the relative frequencies of target words (and EOS), one added to each.

    frequencies: of every class, in what is trained on (``rnnsmt.rnn.pairs.word_frequencies``).
    """
    words = pairs.sides[1].joined(held_out)
    logs = np.log((frequencies + 1) / (frequencies + 1).sum())
    total = float(logs[words].sum())
    return Likelihood(total / max(len(held_out), 1), total / max(len(words), 1))
