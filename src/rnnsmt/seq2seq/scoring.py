"""ln p of given translations by LSTMs: of lines, and of n-best lists, whose translations share what they begin with.

The translations of a sentence are a tree of words. The encoder reads a source once, the decoder goes from the root to
the leaves, all words at the same depth together, and every different beginning is computed once.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import groupby, islice
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from rnnsmt.io import InputError, atomic_text, read_lines
from rnnsmt.moses.nbest import fields_of, with_feature
from rnnsmt.networks.vocabulary import NULL, split
from rnnsmt.progress import track
from rnnsmt.seq2seq.model import Trained
from rnnsmt.seq2seq.steps import Ids, Steps

NODES = 8192
"""Beginnings that are computed together, at most but for those of one sentence."""


class Scorer:
    """An ensemble that scores translations: ln of the mean of its networks' p of every word."""

    def __init__(self, ensemble: Sequence[Trained]) -> None:
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


class Rescored(NamedTuple):
    """translations: lines of all lists. distinct: pairs of a sentence and a translation, which were scored."""

    translations: int
    distinct: int


def add_to_nbest(
    scorer: Scorer, sources: Sequence[Sequence[str]], nbests: Sequence[str], outputs: Sequence[str], feature: str
) -> Rescored:
    """Copy n-best lists with ln p of every translation as a feature behind the others.

    Lists of the same text are read side by side, and a translation of a sentence is scored once for all of them. All
    outputs are written, or none.

    sources: the sentences that each list has translations of. nbests, outputs: files, one a list.

    Raises:
        InputError: as many sources, lists and outputs are not given; a list is empty, malformed,
            has a sentence that its source does not have, or has the feature already.
    """
    if not len(sources) == len(nbests) == len(outputs):
        raise InputError(
            f"{len(nbests)} n-best lists but {len(outputs)} outputs and {len(sources)} sources; each list needs one"
        )
    translations = distinct = 0
    with ExitStack() as stack:
        files = [stack.enter_context(atomic_text(output)) for output in outputs]
        for members in _of_the_same_text(sources):
            text = sources[members[0]]
            streams = [_groups(nbests[member], len(text), feature) for member in members]
            sentences = iter(track(_side_by_side(streams), "scoring", len(text), "sentences"))
            while block := list(islice(sentences, SENTENCES)):
                for (_, groups), scores in zip(block, _scores_of(scorer, text, block), strict=True):
                    distinct += len(scores)
                    for member, group in groups.items():
                        translations += len(group)
                        out = files[members[member]]
                        for fields in group:
                            out.write(with_feature(fields, feature, scores[fields[1]]) + "\n")
    return Rescored(translations, distinct)


Group = list[list[str]]
"""The fields of the lines of one sentence."""


def _of_the_same_text(sources: Sequence[Sequence[str]]) -> list[list[int]]:
    """The places of sources, those that are equal together."""
    found: list[list[int]] = []
    for place, source in enumerate(sources):
        for members in found:
            if sources[members[0]] is source or list(sources[members[0]]) == list(source):
                members.append(place)
                break
        else:
            found.append([place])
    return found


def _scores_of(
    scorer: Scorer, text: Sequence[str], block: Sequence[tuple[int, dict[int, Group]]]
) -> list[dict[str, float]]:
    """ln p of every different translation of some sentences, by the text of the field that it is."""
    one = scorer.ensemble[0]
    fields_of_all = [
        list(dict.fromkeys(fields[1] for group in groups.values() for fields in group)) for _, groups in block
    ]
    ids = [one.source.ids(split(text[sentence]), eos=True) for sentence, _ in block]
    lists = [[one.target.ids(split(field), eos=True) for field in fields] for fields in fields_of_all]
    found = scorer.score(ids, lists)
    return [
        dict(zip(fields, scores.tolist(), strict=True)) for fields, scores in zip(fields_of_all, found, strict=True)
    ]


def _side_by_side(streams: Sequence[Iterator[tuple[int, Group]]]) -> Iterator[tuple[int, dict[int, Group]]]:
    """Sentences, each with the groups of those lists that have come to it: list -> group.

    In every list the groups keep their order. Where all are in ascending order, each sentence comes once.
    """
    heads = [next(stream, None) for stream in streams]
    while numbers := [head[0] for head in heads if head]:
        sentence = min(numbers)
        found = {}
        for place, head in enumerate(heads):
            if head and head[0] == sentence:
                found[place] = head[1]
                heads[place] = next(streams[place], None)
        yield sentence, found


def _groups(path: str, sentences: int, feature: str) -> Iterator[tuple[int, Group]]:
    """The entries of an n-best list, those of a sentence that follow each other together, and its number.

    Raises:
        InputError: see ``add_to_nbest``.
    """
    empty = True
    for sentence, entries in groupby(_entries(path, sentences, feature), key=lambda entry: entry[0]):
        empty = False
        yield sentence, [fields for _, fields in entries]
    if empty:
        raise InputError(f"{path}: is empty, an n-best list is needed")


def _entries(path: str, sentences: int, feature: str) -> Iterator[tuple[int, list[str]]]:
    """The fields of every entry and its sentence.

    Raises:
        InputError: see ``add_to_nbest``.
    """
    for number, line in enumerate(read_lines(path), 1):
        fields = fields_of(line, path, number)
        if f"{feature}=" in fields[2].split():
            raise InputError(f"{path}, line {number}: has {feature}= already; give another --feature")
        if int(fields[0]) >= sentences:
            raise InputError(f"{path}, line {number}: sentence {fields[0].strip()} of {sentences}, which count from 0")
        yield int(fields[0]), fields


def line_scores(scorer: Scorer, lines: Iterable[tuple[str, ...]]) -> Iterator[float]:
    """ln p of the target lines given the source lines, EOS included, no normalisation by length."""
    stream = iter(lines)
    one = scorer.ensemble[0]
    while block := list(islice(stream, NODES)):
        sources = [one.source.ids(split(source), eos=True) for source, _ in block]
        targets = [[one.target.ids(split(target), eos=True)] for _, target in block]
        for scores in scorer.score(sources, targets):
            yield from scores.tolist()
