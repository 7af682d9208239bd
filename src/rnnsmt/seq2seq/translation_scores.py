"""Computation of ln p of existing translations with LSTMs, for parallel texts and for n-best lists.

The translations of a sentence form a prefix tree (trie) of words. The encoder reads each source sentence once. The
decoder proceeds from the root to the leaves, computing all nodes of one depth together, so that every distinct prefix
is computed once.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from rnnsmt.networks.data import split
from rnnsmt.networks.network import Block
from rnnsmt.networks.prefix_tree import prefix_levels
from rnnsmt.seq2seq.model import Ids, Steps, TrainedSeq2Seq

NODES = 8192
"""Maximum number of translations that are scored together, unless a single sentence has more translations."""


class Scorer:
    """Scorer of translations with an ensemble; the probability of a word is the mean over the networks."""

    def __init__(self, ensemble: Sequence[TrainedSeq2Seq]) -> None:
        self.ensemble = ensemble
        self.steps = [Steps(network) for network in ensemble]

    @torch.inference_mode()
    def score(self, sources: Sequence[Ids], lists: Sequence[Sequence[Ids]]) -> list[NDArray[np.float64]]:
        """Compute ln p, including EOS, of the translations of every source; sentences are given as ids with EOS."""
        log_p = [np.zeros(len(translations)) for translations in lists]
        for begin, end in _chunks(lists):
            scores = self._score(sources[begin:end], lists[begin:end])
            ends = np.cumsum([len(translations) for translations in lists[begin:end]])[:-1]
            log_p[begin:end] = np.split(scores, ends)
        return log_p

    def _score(self, sources: Sequence[Ids], lists: Sequence[Sequence[Ids]]) -> NDArray[np.float64]:
        """Compute ln p of the translations of all lists, one list after the other, as one batch."""
        owners = np.repeat(np.arange(len(lists)), [len(translations) for translations in lists])
        every = [ids for translations in lists for ids in translations]
        lengths = np.array([len(ids) for ids in every], np.int64)
        words = np.concatenate([np.zeros(0, np.int64), *every]).astype(np.int64)
        ends = np.cumsum(lengths)
        begins, inside = ends - lengths, np.ones(len(words), bool)
        inside[ends - 1] = False  # EOS is predicted but never read
        classes = int(words.max(initial=0)) + 1
        scores = np.zeros(len(every))
        states = [steps.encode(sources) for steps in self.steps]
        for depth, level in enumerate(prefix_levels(words[inside], lengths - 1, owners)):
            read = level.words if depth else np.full(len(level.words), self.ensemble[0].target.eos)
            following = words[begins[level.phrases] + depth]
            # the distinct (node, next word), as one integer
            edges, edge_of = np.unique(level.nodes * classes + following, return_inverse=True)
            logs = []
            for number, steps in enumerate(self.steps):
                g, states[number] = steps.step(read, level.parents, states[number])
                logs.append(steps.log_p(g, edges // classes, edges % classes))
            log_p = np.logaddexp.reduce(logs) - np.log(len(logs)) if len(logs) > 1 else logs[0]
            scores[level.phrases] += log_p[edge_of]
        return scores


def _chunks(lists: Sequence[Sequence[Ids]]) -> Iterator[tuple[int, int]]:
    """Yield ranges of sentences with at most ``NODES`` translations, or of a single sentence with more."""
    begin, number = 0, 0
    for end, translations in enumerate(lists):
        if number and number + len(translations) > NODES:
            yield begin, end
            begin, number = end, 0
        number += len(translations)
    if begin < len(lists):
        yield begin, len(lists)


def scores_of_block(scorer: Scorer, sources: Sequence[str], block: Block) -> list[float]:
    """Compute ln p of the translations of some sentences of a text, for ``add_to_nbest``."""
    network = scorer.ensemble[0]
    ids = [network.source.ids(split(sources[sentence]), eos=True) for sentence, _ in block]
    lists = [[network.target.ids(split(text), eos=True) for text in texts] for _, texts in block]
    scores: list[float] = np.concatenate(scorer.score(ids, lists)).tolist()
    return scores
