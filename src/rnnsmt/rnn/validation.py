"""The likelihood of held-out pairs, and what a unigram model gives them."""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from rnnsmt.networks.batches import Index
from rnnsmt.networks.devices import Place, full_precision
from rnnsmt.networks.sequences import count_ids
from rnnsmt.rnn.batches import group_by_length, pair_tensors
from rnnsmt.rnn.model import RNNEncoderDecoder
from rnnsmt.rnn.pairs import Pairs, word_frequencies

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


def unigram_likelihood(pairs: Pairs, held_out: Index, untrained: Index | None = None) -> Likelihood:
    """Held-out pairs under the relative frequencies of the words (and EOS) of all others, one added to each.

    untrained: all that are not among the others; none: the held-out pairs.
    """
    side = pairs.sides[1]
    classes = len(pairs.vocabularies[1])
    own = _words_of(pairs, held_out)
    rest = count_ids(side.words, classes) - (own if untrained is None else _words_of(pairs, untrained)) + 1
    total = float(own @ np.log(rest / rest.sum()))
    return Likelihood(total / max(len(held_out), 1), total / max(int(own.sum()), 1))


def _words_of(pairs: Pairs, index: Index) -> NDArray[np.int64]:
    """How often each class is a target word of these pairs."""
    times = np.zeros(len(pairs), np.int32)
    times[index] = 1
    return word_frequencies(pairs, times)
