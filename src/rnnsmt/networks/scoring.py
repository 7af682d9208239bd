"""Addition of the scores of a network, ln p of whole translations, to n-best lists as a feature."""

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
"""Number of lines of n-best lists that are read together; all lines of a sentence are read together."""


def scored_alike(
    nbest: Sequence[str], outputs: Sequence[str], **given: Sequence[Any]
) -> list[tuple[tuple[Any, ...], list[str], list[str]]]:
    """Group n-best lists by the values of options on which their scores depend.

    Args:
        outputs: the output file of each list.
        given: for each of these options, one value for all lists or one value for each list.

    Returns:
        For each group: the values of the options, the lists, and their output files; sorted by the values.

    Raises:
        InputError: the numbers of lists, output files and values do not agree.
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

    Several lists, e.g. of several tuning runs, are read in parallel, so that a translation that occurs in more than one
    of them is scored once.

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
    """Line of an n-best list: number of the sentence, index of the list (``place``), fields, and translation."""

    sentence: int
    place: int
    fields: list[str]
    text: str


def _entries(path: str, place: int, sentences: int | None, feature: str) -> Iterator[_Entry]:
    """Yield the entries of an n-best list, which must be sorted by sentence."""
    for sentence, fields in lines_without(feature, path, sentences):
        yield _Entry(sentence, place, fields, text_of(fields[1]))


def _blocks(entries: Iterable[_Entry]) -> Iterator[list[tuple[int, list[_Entry]]]]:
    """Yield blocks of whole sentences with their entries; a block ends when it has at least ``LINES`` entries."""
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
