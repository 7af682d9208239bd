"""Training of an encoder-decoder on pairs of sequences: held-out pairs, their likelihood, and the unigram model.

The packages of the networks define the network, its minibatches and its gradient; the training loop is in
``rnnsmt.networks.training``.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from rnnsmt.networks.batches import Index, draw_held_out
from rnnsmt.networks.data import class_counts, unigram_log_p
from rnnsmt.networks.devices import DeviceSetup, full_precision
from rnnsmt.networks.draws import DROPOUT_ROWS, ClassSampler
from rnnsmt.networks.read_ahead import ReadAhead
from rnnsmt.networks.task import Task


class Likelihood(NamedTuple):
    """Mean log p(y | x), natural logarithm, per pair and per target word, with EOS counted as a word."""

    per_pair: float
    per_word: float


class PairTask(Task):
    """Training on pairs of sequences. The settings must have a method ``held_out_of``, the network ``log_probability``.

    Attributes:
        held_out: indices of the held-out pairs, ascending.
        held_out_words: number of target words of the held-out pairs, including EOS.
        loaded: the pairs of the current window of ``batches``.
        unigram: mean log p per target word of the held-out pairs under a unigram model.
    """

    examples = "pairs"
    settings: Any
    loaded: ReadAhead[Any]

    def __init__(self, pairs: Any, name: str, settings: Any, seed: int, setup: DeviceSetup) -> None:
        """Draw the held-out pairs, and count the target words of the others.

        name: name of the pairs in ``inputs``.
        """
        super().__init__(settings, seed, setup)
        self.pairs, self.inputs = pairs, {name: pairs.fingerprint}
        self.held_out = draw_held_out(len(pairs), settings.held_out_of(len(pairs)), seed)
        held_out_words = pairs.at(self.held_out).sides[1].joined(np.arange(len(self.held_out)))
        self.held_out_words = len(held_out_words)
        counts = class_counts(pairs.sides[1].blocks(), len(pairs.vocabularies[1]), held_out_words)
        self.unigram = unigram_log_p(held_out_words, counts)
        pairs.expect_random_access()
        if settings.sampled_classes:
            self.sampler = ClassSampler(counts, settings.sampled_classes, seed)
        self.grain = DROPOUT_ROWS if settings.dropout else 1

    def words(self, index: Index) -> int:
        pairs, places = self.loaded.of(index)
        return int(pairs.sides[1].lengths(places).sum())

    @torch.no_grad()
    def likelihood(self, batches: Sequence[tuple[Tensor, ...]]) -> Likelihood:
        """Compute the likelihood of the held-out pairs, in float32 regardless of the precision of training.

        batches: the held-out pairs; each batch is a tuple of arguments of ``log_probability``.
        """
        total = torch.zeros((), dtype=torch.float64, device=self.setup.device)
        with full_precision():
            for batch in batches:
                total += self.model.log_probability(*batch).double().sum()
        value = float(total)
        return Likelihood(value / max(len(self.held_out), 1), value / max(self.held_out_words, 1))
