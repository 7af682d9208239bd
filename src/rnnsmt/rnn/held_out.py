"""Held-out phrase pairs: which they are, and their likelihood by a network and by a unigram model."""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from rnnsmt.networks.batches import Index, draw_held_out
from rnnsmt.networks.devices import DeviceSetup, full_precision
from rnnsmt.rnn.batches import group_by_length, pair_tensors
from rnnsmt.rnn.model import RNNEncoderDecoder
from rnnsmt.rnn.pairs import Pairs
from rnnsmt.rnn.settings import RnnSettings

ROWS = 256
"""Number of pairs that are evaluated at a time."""


class PairSplit(NamedTuple):
    """Which pairs are held out, evaluated, and not trained on, as ascending indices.

    Attributes:
        held_out: all held-out pairs: drawn from the table, and of held-out sentences.
        of_sentences: the pairs that only occur in held-out sentences; empty if there are none or too many.
        evaluated: the pairs by which networks are compared: of held-out sentences, if there are any.
        overlapping: if so, the drawn pairs, which overlap with trained ones and are evaluated too; else None.
        untrained: the pairs that are not trained on.
    """

    held_out: Index
    of_sentences: Index
    evaluated: Index
    overlapping: Index | None
    untrained: Index


def split_pairs(pairs: Pairs, settings: RnnSettings, seed: int, left_out: Index) -> PairSplit:
    """Choose the held-out pairs. left_out: further pairs that are not trained on, nor evaluated if drawn."""
    drawn = draw_held_out(len(pairs), settings.held_out_of(len(pairs)), seed)
    of_sentences = pairs.held_out if settings.held_out else pairs.held_out[:0]
    if 2 * len(np.union1d(drawn, of_sentences)) > len(pairs):
        # a tiny corpus: most of its pairs would be held out
        of_sentences = pairs.held_out[:0]
    held_out = np.union1d(drawn, of_sentences)
    untrained = np.union1d(held_out, left_out)
    if not len(of_sentences):
        return PairSplit(held_out, of_sentences, drawn, None, untrained)
    measured = draw_held_out(len(of_sentences), settings.measured(len(of_sentences)), seed)
    return PairSplit(held_out, of_sentences, of_sentences[measured], np.setdiff1d(drawn, left_out), untrained)


class Likelihood(NamedTuple):
    """Mean log p(y | x), natural logarithm, per pair and per target word, with EOS counted as a word."""

    per_pair: float
    per_word: float


class HeldOutPairs:
    """Held-out pairs, in groups of equal lengths; every process holds its part of them."""

    def __init__(self, pairs: Pairs, index: Index, setup: DeviceSetup) -> None:
        self.setup = setup
        groups = group_by_length(pairs, index)
        pieces = [group[begin : begin + ROWS] for group in groups for begin in range(0, len(group), ROWS)]
        self.pieces = [pair_tensors(pairs, piece, setup.device) for piece in pieces[setup.rank :: setup.processes]]
        self.pairs = len(index)
        self.words = int(pairs.sides[1].lengths(index).sum())

    @torch.no_grad()
    def measure(self, model: RNNEncoderDecoder) -> Likelihood:
        """Compute the likelihood by the network, in float32 whatever precision the training uses."""
        total = torch.zeros((), dtype=torch.float64, device=self.setup.device)
        with full_precision():
            for source, target in self.pieces:
                lengths = [torch.full((side.shape[1],), len(side), device=side.device) for side in (source, target)]
                total += model.log_probability(source.t(), lengths[0], target.t(), lengths[1]).double().sum()
        value = float(self.setup.sum(total))
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
