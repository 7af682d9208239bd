"""ln p of given translations by LSTMs: of lines, and of n-best lists, whose translations share what they begin with.

The translations of a sentence are a tree of words. The encoder reads a source once, the decoder goes from the root to
the leaves, all words at the same depth together, and every different beginning is computed once.
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import groupby, islice
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from rnnsmt.io import InputError, atomic_text, read_lines, words_of
from rnnsmt.moses.nbest import fields_of, with_feature
from rnnsmt.networks.vocabulary import NULL, split
from rnnsmt.progress import track
from rnnsmt.seq2seq.model import TrainedSeq2Seq
from rnnsmt.seq2seq.steps import Ids, Steps

NODES = 8192
"""Beginnings that are computed together, at most but for those of one sentence."""


class Scorer:
    """An ensemble that scores translations: ln of the mean of its networks' p of every word."""

    def __init__(self, ensemble: Sequence[TrainedSeq2Seq]) -> None:
        self.ensemble = ensemble
        self.steps = [Steps(one) for one in ensemble]

    @torch.inference_mode()
    def score(self, sources: Sequence[Ids], lists: Sequence[Sequence[Ids]]) -> list[NDArray[np.float64]]:
        """ln p of the translations of every source, EOS included; all of ids with EOS."""
        found = [np.zeros(len(translations)) for translations in lists]
        for begin, end in _chunks(lists):
            scores = self._score(sources[begin:end], lists[begin:end])
            ends = np.cumsum([len(translations) for translations in lists[begin:end]])[:-1]
            found[begin:end] = np.split(scores, ends)
        return found

    def _score(self, sources: Sequence[Ids], lists: Sequence[Sequence[Ids]]) -> NDArray[np.float64]:
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
    """All beginnings of one length.

    parents: int64 [nodes], their places among those of the length before, at first the sentences; reads: int64
    [nodes], their last words, EOS at first. edge_nodes, edge_words: int64 [edges], what may follow them. rows,
    edge_of_row: int64, the translations that go on here, and which of these words theirs is.
    """

    parents: NDArray[np.int64]
    reads: NDArray[np.int64]
    edge_nodes: NDArray[np.int64]
    edge_words: NDArray[np.int64]
    rows: NDArray[np.int64]
    edge_of_row: NDArray[np.int64]


class _Tree:
    """The translations of some sentences, sorted so that equal beginnings lie together."""

    def __init__(self, lists: Sequence[Sequence[Ids]]) -> None:
        every = [ids for translations in lists for ids in translations]
        owners = np.repeat(np.arange(len(lists)), [len(translations) for translations in lists])
        words = np.zeros((len(every), max(map(len, every), default=0)), np.int64)
        for row, ids in enumerate(every):
            words[row, : len(ids)] = ids
        self.order = np.lexsort((*words.T[::-1], owners))
        self.words, self.owners = words[self.order], owners[self.order]

    def levels(self) -> Iterator[_Level]:
        rows = np.arange(len(self.words))
        node_of = self.owners.copy()
        begins = np.diff(node_of, prepend=-1) > 0
        eos = int(self.words[0, np.count_nonzero(self.words[0]) - 1]) if len(rows) else 0
        for depth in range(self.words.shape[1]):
            # the nodes of this depth are numbered anew, in the order of the rows
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
    """Ranges of sentences with up to ``NODES`` translations, or one of more."""
    begin, number = 0, 0
    for end, translations in enumerate(lists):
        if number and number + len(translations) > NODES:
            yield begin, end
            begin, number = end, 0
        number += len(translations)
    if begin < len(lists):
        yield begin, len(lists)


SENTENCES = 64
"""Sources whose lists are read together."""


def add_to_nbest(
    scorer: Scorer, sources: Sequence[str], nbest: Sequence[str], outputs: Sequence[str], feature: str
) -> tuple[int, int]:
    """Copy n-best lists of one text with ln p of every translation as a feature behind the others.

    Several lists, of several runs of tuning, are read side by side: a translation that more than one of them has is
    scored once. How many entries they have in all, and how many were scored.

    Raises:
        InputError: a list that is empty, malformed or not in the order of the sentences, a sentence that the source
            does not have, or the feature is already there.
    """
    one = scorer.ensemble[0]
    entries = [0] * len(nbest)
    scored = 0
    streams = [_entries(path, place, len(sources), feature) for place, path in enumerate(nbest)]
    merged = track(heapq.merge(*streams, key=lambda entry: entry.sentence), "scoring", unit="translations")
    groups = groupby(merged, key=lambda entry: entry.sentence)
    with ExitStack() as stack:
        files = [stack.enter_context(atomic_text(path)) for path in outputs]
        while block := [(sentence, list(group)) for sentence, group in islice(groups, SENTENCES)]:
            distinct = [list(dict.fromkeys(entry.text for entry in group)) for _, group in block]
            ids = [one.source.ids(split(sources[sentence]), eos=True) for sentence, _ in block]
            lists = [[one.target.ids(split(text), eos=True) for text in texts] for texts in distinct]
            scores = scorer.score(ids, lists)
            for (_, group), texts, values in zip(block, distinct, scores, strict=True):
                score_of = dict(zip(texts, values.tolist(), strict=True))
                for entry in group:
                    files[entry.place].write(with_feature(entry.fields, feature, score_of[entry.text]) + "\n")
                    entries[entry.place] += 1
                scored += len(texts)
        for path, number in zip(nbest, entries, strict=True):
            if not number:
                raise InputError(f"{path}: is empty, an n-best list is needed")
    return sum(entries), scored


class _Entry(NamedTuple):
    """A line of the list with the number ``place``: its sentence, its fields, and its translation's words."""

    sentence: int
    place: int
    fields: list[str]
    text: str


def _entries(path: str, place: int, sentences: int, feature: str) -> Iterator[_Entry]:
    """The entries of a list, in the order of the sentences.

    Raises:
        InputError: see ``add_to_nbest``.
    """
    last = 0
    for number, line in enumerate(read_lines(path), 1):
        fields = fields_of(line, path, number)
        sentence = int(fields[0])
        if f"{feature}=" in fields[2].split():
            raise InputError(f"{path}, line {number}: has {feature}= already; give another --feature")
        if sentence >= sentences:
            raise InputError(f"{path}, line {number}: sentence {sentence} of {sentences}, which count from 0")
        if sentence < last:
            raise InputError(f"{path}, line {number}: sentence {sentence} after {last}; sort the list")
        last = sentence
        yield _Entry(sentence, place, fields, " ".join(words_of(fields[1])))


def line_scores(scorer: Scorer, lines: Iterable[tuple[str, ...]]) -> Iterator[float]:
    """ln p of the target lines given the source lines, EOS included, no normalisation by length."""
    stream = iter(lines)
    one = scorer.ensemble[0]
    while block := list(islice(stream, NODES)):
        sources = [one.source.ids(split(source), eos=True) for source, _ in block]
        targets = [[one.target.ids(split(target), eos=True)] for _, target in block]
        for scores in scorer.score(sources, targets):
            yield from scores.tolist()
