"""Held-out n-grams: their likelihood by a network and by a unigram model."""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from rnnsmt.cslm.model import FeedForwardLM
from rnnsmt.networks.batches import Index
from rnnsmt.networks.devices import DeviceSetup, full_precision
from rnnsmt.networks.id_directory import count_ids
from rnnsmt.networks.vocabulary import NULL, UNK

ClassCounts = NDArray[np.float64]
"""[classes], see ``class_counts``."""

ROWS = 256
"""Number of n-grams that are evaluated at a time."""


class NGramLikelihood(NamedTuple):
    """Mean ln p, by the exact softmax, and mean |ln Z|, Z being the sum of exp over the output units."""

    log_p: float
    log_sum: float


class HeldOutNGrams:
    """Held-out n-grams; every process holds its part of them.

    Attributes:
        number: number of n-grams.
        contexts, words: those of this process, ``ROWS`` at a time.
    """

    def __init__(self, ngrams: NDArray[np.int64], setup: DeviceSetup) -> None:
        """Load the n-grams [N, C + 1], whose last ids are predicted from the others, onto the device."""
        self.setup, self.number = setup, len(ngrams)
        own = torch.from_numpy(ngrams[setup.rank :: setup.processes]).to(setup.device)
        self.contexts, self.words = own[:, :-1].split(ROWS), own[:, -1].split(ROWS)

    @torch.no_grad()
    def measure(self, model: FeedForwardLM) -> NGramLikelihood:
        """Compute the likelihood by the network, in float32 whatever precision the training uses."""
        totals = torch.zeros(2, dtype=torch.float64, device=self.setup.device)
        with full_precision():
            for contexts, words in zip(self.contexts, self.words, strict=True):
                units = model.logits(contexts)
                log_sums = torch.logsumexp(units, 1)
                log_p = units.gather(1, words[:, None])[:, 0] - log_sums
                totals += torch.stack([log_p.double().sum(), log_sums.double().abs().sum()])
        log_p, log_sum = (self.setup.sum(totals) / max(self.number, 1)).tolist()
        return NGramLikelihood(log_p, log_sum)


def class_counts(words: NDArray[np.int32], classes: int, held_out: Index) -> ClassCounts:
    """Count how often every class is predicted in training, plus one, float64 [classes].

    Args:
        words: the ids of a text, which may be memory-mapped.
        classes: number of classes.
        held_out: positions in the text that are not trained on.
    """
    counts = count_ids(words, classes) - np.bincount(words[held_out], minlength=classes)
    return counts.astype(np.float64) + 1


def as_trained(ids: NDArray[np.int64], counts: ClassCounts) -> NDArray[np.int64]:
    """Replace the words that do not occur in training by UNK. counts: see ``class_counts``."""
    return np.where((counts[ids] == 1) & (ids != NULL), UNK, ids)


def unigram_log_p(words: NDArray[np.int64], counts: ClassCounts) -> float:
    """Compute the mean ln p of held-out words by relative class frequencies, over the events of the network."""
    logs = np.log(counts / counts.sum())
    return float(logs[as_trained(words, counts)].sum() / max(len(words), 1))
