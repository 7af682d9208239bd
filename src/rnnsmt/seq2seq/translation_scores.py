"""Computation of ln p of given translations with LSTMs, for parallel texts and n-best lists with common prefixes.

The translations of a sentence form a prefix tree (trie) of words. The encoder reads each source once; the decoder
proceeds from the root to the leaves, all nodes of one depth together, so every distinct prefix is computed once.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from rnnsmt.networks.data import NULL, split
from rnnsmt.networks.scoring import Block
from rnnsmt.seq2seq.model import Ids, Steps, TrainedSeq2Seq

NODES = 8192
"""Maximum number of translations that are scored together, exceeded only by a single sentence with more."""


class Scorer:
    """Scorer of translations with an ensemble: the sum over the words of ln of the mean p of its networks."""

    def __init__(self, ensemble: Sequence[TrainedSeq2Seq]) -> None:
        self.ensemble = ensemble
        self.steps = [Steps(network) for network in ensemble]

    @torch.inference_mode()
    def score(self, sources: Sequence[Ids], lists: Sequence[Sequence[Ids]]) -> list[NDArray[np.float64]]:
        """Compute ln p of the translations of every source, including EOS; all are given as ids with EOS."""
        log_p = [np.zeros(len(translations)) for translations in lists]
        for begin, end in _chunks(lists):
            scores = self._score(sources[begin:end], lists[begin:end])
            ends = np.cumsum([len(translations) for translations in lists[begin:end]])[:-1]
            log_p[begin:end] = np.split(scores, ends)
        return log_p

    def _score(self, sources: Sequence[Ids], lists: Sequence[Sequence[Ids]]) -> NDArray[np.float64]:
        """Score the translations of all lists, one after the other, as one batch."""
        tree = _Tree(lists)
        totals = np.zeros(len(tree.words))
        states = [steps.encode(sources) for steps in self.steps]
        for level in tree.levels():
            logs = []
            for number, steps in enumerate(self.steps):
                g, states[number] = steps.step(level.reads, level.parents, states[number])
                logs.append(steps.log_p(g, level.edge_nodes, level.edge_words))
            log_p = np.logaddexp.reduce(logs) - np.log(len(logs)) if len(logs) > 1 else logs[0]
            totals[level.rows] += log_p[level.edge_of_row]
        scores = np.empty(len(totals))
        scores[tree.order] = totals
        return scores


class _Level(NamedTuple):
    """The nodes of one depth, i.e. the distinct prefixes of one length; all arrays are int64.

    Attributes:
        parents: [nodes], the parents as indices in the previous level; at depth 0, the sentences.
        reads: [nodes], the last word of each prefix; at depth 0, EOS, which the decoder reads first.
        edge_nodes, edge_words: [edges], the distinct (node, next word).
        rows: [rows], the translations that have a next word.
        edge_of_row: [rows], the edge of each of these translations.
    """

    parents: NDArray[np.int64]
    reads: NDArray[np.int64]
    edge_nodes: NDArray[np.int64]
    edge_words: NDArray[np.int64]
    rows: NDArray[np.int64]
    edge_of_row: NDArray[np.int64]


class _Tree:
    """The translations of some sentences, sorted so that those with a common prefix are adjacent."""

    def __init__(self, lists: Sequence[Sequence[Ids]]) -> None:
        """Sort the translations by sentence and words; ``order``: their original indices; ``words``: padded with 0."""
        every = [ids for translations in lists for ids in translations]
        owners = np.repeat(np.arange(len(lists)), [len(translations) for translations in lists])
        words = np.zeros((len(every), max(map(len, every), default=0)), np.int64)
        for row, ids in enumerate(every):
            words[row, : len(ids)] = ids
        # the last key of lexsort is the primary one
        self.order = np.lexsort((*words.T[::-1], owners))
        self.words, self.owners = words[self.order], owners[self.order]

    def levels(self) -> Iterator[_Level]:
        """Yield the levels from the root on."""
        # rows: translations not yet ended; node_of: the node of each in the previous level; begins: whether it is the
        # first row of its node
        rows = np.arange(len(self.words))
        node_of = self.owners.copy()
        begins = np.diff(node_of, prepend=-1) > 0
        eos = int(self.words[0, np.count_nonzero(self.words[0]) - 1]) if len(rows) else 0
        for depth in range(self.words.shape[1]):
            # the nodes of a depth are numbered in the order of the rows
            first = rows[begins[rows]]
            parents = node_of[first]
            reads = self.words[first, depth - 1] if depth else np.full(len(first), eos)
            nodes = np.cumsum(begins[rows]) - 1
            following = self.words[rows, depth]
            new = np.concatenate([[True], (np.diff(nodes) > 0) | (np.diff(following) != 0)])
            edges = np.cumsum(new) - 1
            yield _Level(parents, reads, nodes[new], following[new], rows, edges)
            goes_on = (
                self.words[rows, depth + 1] != NULL if depth + 1 < self.words.shape[1] else np.zeros(len(rows), bool)
            )
            begins = np.zeros(len(self.words), bool)
            begins[rows[new]] = True
            node_of = np.zeros(len(self.words), np.int64)
            node_of[rows] = nodes
            rows = rows[goes_on]
            if not len(rows):
                return


def _chunks(lists: Sequence[Sequence[Ids]]) -> Iterator[tuple[int, int]]:
    """Yield ranges of sentences with at most ``NODES`` translations, or a single sentence with more."""
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
