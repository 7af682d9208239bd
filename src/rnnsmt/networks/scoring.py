"""Scores of a network, ln p of whole translations, as a feature of n-best lists."""

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import groupby
from typing import Any, NamedTuple

from rnnsmt.base.errors import InputError
from rnnsmt.base.options import option
from rnnsmt.base.progress import track
from rnnsmt.base.writing import atomic_text
from rnnsmt.formats.nbest import lines_without, text_of, with_feature
from rnnsmt.networks.network import Block

LINES = 20_000
"""Number of lines of n-best lists that are read together; a sentence is not split."""


def scored_alike(
    nbest: Sequence[str], outputs: Sequence[str], **given: Sequence[Any]
) -> list[tuple[tuple[Any, ...], list[str], list[str]]]:
    """Group n-best lists by what their scores depend on.

    Args:
        outputs: the output file of each list.
        given: the values of each option on which the scores depend, one for all lists or one for each.

    Returns:
        A value of each option, the lists that have them and their output files, in the order of the values.
    """
    number = len(nbest)
    if len(outputs) != number:
        raise InputError(f"got {number} --nbest files but {len(outputs)} --output files; the numbers must be equal")
    groups: dict[tuple[Any, ...], tuple[list[str], list[str]]] = {}
    for name, values in given.items():
        if len(values) not in (1, number):
            raise InputError(f"{option(name)}: specify one, or one for each of the {number} n-best lists")
    for n in range(number):
        lists, files = groups.setdefault(tuple(values[n % len(values)] for values in given.values()), ([], []))
        lists.append(nbest[n])
        files.append(outputs[n])
    return [(key, *groups[key]) for key in sorted(groups)]


def add_to_nbest(
    scores: Callable[[Block], Iterable[float]],
    nbest: Sequence[str],
    outputs: Sequence[str],
    feature: str,
    sentences: int | None = None,
) -> dict[str, int]:
    """Copy n-best lists of one text with ln p of every translation appended as a feature.

    Several lists, e.g. of several tuning runs, are read in parallel: a translation that occurs in more than one of them
    is scored once.

    Args:
        scores: function that computes ln p of all translations of a block, one after the other.
        outputs: the output file of each list.
        sentences: number of lines of the source text, if the scores depend on it.

    Returns:
        The total number of translations, and the number of those that were scored.
    """
    numbers, scored = [0] * len(nbest), 0
    streams = [_entries(path, place, sentences, feature) for place, path in enumerate(nbest)]
    merged = track(heapq.merge(*streams, key=lambda entry: entry.sentence), "scoring", unit="translations")
    with ExitStack() as stack:
        files = [stack.enter_context(atomic_text(path)) for path in outputs]
        for block in _blocks(merged):
            distinct = [(sentence, list(dict.fromkeys(entry.text for entry in group))) for sentence, group in block]
            values = iter(scores(distinct))
            for (_, group), (_, texts) in zip(block, distinct, strict=True):
                score_of = {text: next(values) for text in texts}
                for entry in group:
                    files[entry.place].write(with_feature(entry.fields, feature, score_of[entry.text]) + "\n")
                    numbers[entry.place] += 1
                scored += len(texts)
        for path, number in zip(nbest, numbers, strict=True):
            if not number:
                raise InputError(f"{path}: the n-best list is empty")
    return {"translations": sum(numbers), "scored": scored}


class _Entry(NamedTuple):
    """A line of an n-best list: sentence, index of the list (``place``), fields, and words of the translation."""

    sentence: int
    place: int
    fields: list[str]
    text: str


def _entries(path: str, place: int, sentences: int | None, feature: str) -> Iterator[_Entry]:
    """Yield the entries of a list, which must be sorted by sentence."""
    for sentence, fields in lines_without(feature, path, sentences):
        yield _Entry(sentence, place, fields, text_of(fields[1]))


def _blocks(entries: Iterable[_Entry]) -> Iterator[list[tuple[int, list[_Entry]]]]:
    """Yield sentences with their entries, ``LINES`` entries or a few more at a time."""
    block: list[tuple[int, list[_Entry]]] = []
    size = 0
    for sentence, group in groupby(entries, key=lambda entry: entry.sentence):
        block.append((sentence, list(group)))
        size += len(block[-1][1])
        if size >= LINES:
            yield block
            block, size = [], 0
    if block:
        yield block
