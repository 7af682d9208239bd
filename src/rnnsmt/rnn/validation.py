"""The likelihood of held-out pairs by a network and by a unigram model."""

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
"""Number of pairs that are evaluated at a time."""


class Likelihood(NamedTuple):
    """Mean log p(y | x), natural logarithm, per pair and per target word, with EOS counted as a word."""

    per_pair: float
    per_word: float


class HeldOutPairs:
    """Held-out pairs, in groups of equal lengths; every process holds its part of them."""

    def __init__(self, pairs: Pairs, index: Index, place: Place) -> None:
        self.place = place
        groups = group_by_length(pairs, index)
        pieces = [group[begin : begin + ROWS] for group in groups for begin in range(0, len(group), ROWS)]
        self.pieces = [pair_tensors(pairs, piece, place.device) for piece in pieces[place.rank :: place.processes]]
        self.pairs = len(index)
        self.words = int(pairs.sides[1].lengths(index).sum())

    @torch.no_grad()
    def measure(self, model: RNNEncoderDecoder) -> Likelihood:
        """Compute the likelihood by the network, in float32 whatever precision the training uses."""
        total = torch.zeros((), dtype=torch.float64, device=self.place.device)
        with full_precision():
            for source, target in self.pieces:
                lengths = [torch.full((side.shape[1],), len(side), device=side.device) for side in (source, target)]
                total += model.log_probability(source.t(), lengths[0], target.t(), lengths[1]).double().sum()
        value = float(self.place.sum(total))
        return Likelihood(value / max(self.pairs, 1), value / max(self.words, 1))


def unigram_likelihood(pairs: Pairs, held_out: Index, frequencies: NDArray[np.int64]) -> Likelihood:
    """Compute the likelihood of held-out pairs by the relative frequencies of target words and EOS, with add-one
    smoothing.

    frequencies: [classes], in the training pairs (``rnnsmt.rnn.pairs.word_frequencies``).
    """
    words = pairs.sides[1].joined(held_out)
    logs = np.log((frequencies + 1) / (frequencies + 1).sum())
    total = float(logs[words].sum())
    return Likelihood(total / max(len(held_out), 1), total / max(len(words), 1))
