"""Fill-up of a phrase table and its reordering table with pairs of another phrase table (Bisazza et al. 2011).

Pairs of the table are unchanged. Pairs that it does not contain are added with the scores of the other table. An
additional last column distinguishes them, so that tuning determines a penalty for added pairs.
"""

import heapq
import math
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import TypeVar

from rnnsmt.base.io import InputError
from rnnsmt.base.parallel_gzip import atomic_blocks
from rnnsmt.phrases.table import (
    PhraseEntry,
    ReorderingEntry,
    format_phrase_line,
    format_reordering_line,
    line_order,
    read_phrase_table,
    read_reordering_table,
    rewritten_tables,
)

OWN, FILLED = 1.0, math.e
"""Values of the last column; the sum of its logarithm over a translation is the number of added pairs."""

NO_EVIDENCE = [1 / 3] * 6
"""Probabilities of a pair that was never extracted, after the additive smoothing of a reordering table."""

Entry = TypeVar("Entry", PhraseEntry, ReorderingEntry)


def fill_up_tables(
    phrase_table: str, reordering_table: str, more: str, output_dir: str, threads: int = 1
) -> dict[str, object]:
    """Write both tables, with the pairs of the phrase table ``more``, to ``output_dir``, under the same names.

    All tables must be sorted as by Moses, and are streamed. ``more`` has the same number of scores as the phrase table.

    Returns:
        The statistics of the stage.

    Raises:
        InputError: a table is missing, malformed, empty or unsorted, has a different number of scores, or would be
            overwritten.
    """
    outputs = rewritten_tables(phrase_table, reordering_table, output_dir, more)
    first = next(read_phrase_table(phrase_table), None)
    if first is None:
        raise InputError(f"{phrase_table}: the table is empty; create it again")
    scores = len(first.scores)
    lines, filled = 0, 0
    with atomic_blocks(outputs[0], threads) as phrase_out, atomic_blocks(outputs[1], threads) as reordering_out:
        original, added = (_in_order(read_phrase_table(path, scores), path) for path in (phrase_table, more))
        for entry, is_new in _merged(original, added):
            entry.scores.append(FILLED if is_new else OWN)
            phrase_out.write(f"{format_phrase_line(entry)}\n".encode())
            lines += 1
            filled += is_new
        known = _in_order(read_reordering_table(reordering_table, len(NO_EVIDENCE)), reordering_table)
        pairs = (ReorderingEntry(entry.source, entry.target, NO_EVIDENCE) for entry in read_phrase_table(more))
        for line, _ in _merged(known, _in_order(pairs, more)):
            reordering_out.write(f"{format_reordering_line(line)}\n".encode())
    return {"lines": lines, "filled in": filled, "scores of a line": scores + 1}


def _merged(
    original: Iterable[tuple[bytes, Entry]], more: Iterable[tuple[bytes, Entry]]
) -> Iterator[tuple[Entry, bool]]:
    """Merge two sorted tables; yield each entry, and whether only ``more`` contains the pair.

    For a pair of both tables, the entry is that of ``original``.
    """
    before = b""
    for key, is_new, entry in heapq.merge(
        ((key, False, entry) for key, entry in original),
        ((key, True, entry) for key, entry in more),
        key=itemgetter(0, 1),
    ):
        if key != before:
            yield entry, is_new
        before = key


def _in_order(entries: Iterable[Entry], path: str) -> Iterator[tuple[bytes, Entry]]:
    """Yield (sort key, entry) and check the order.

    Raises:
        InputError: the entries are not sorted.
    """
    before = b""
    for entry in entries:
        key = line_order(entry)
        if key <= before:
            raise InputError(f"{path}: '{entry.source} ||| {entry.target}' is out of order; sort it with LC_ALL=C sort")
        before = key
        yield key, entry
