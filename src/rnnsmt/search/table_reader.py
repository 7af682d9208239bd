"""Reading phrase tables and reordering tables in Moses' text form into flat arrays.

A phrase-table line is ``source ||| target ||| scores ||| alignment ||| counts |||``, a reordering-table line
``source ||| target ||| six probabilities``. Scores become natural logarithms, floored at ``LOG_FLOOR`` as in Moses.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rnnsmt.io import InputError, check_utf8, read_line_blocks, words_of
from rnnsmt.kernels.strings import POW10, Interner
from rnnsmt.phrases.table import refuse_line
from rnnsmt.progress import say
from rnnsmt.search.kernels import tables as kernels
from rnnsmt.search.source_text import sentence_bytes

LOG_FLOOR = -100.0


MAX_SOURCE_PHRASE = 20
"""Longest source phrase, in words, that is looked for in a sentence (Moses' max-phrase-length)."""

FEW_PAIRS = 10
"""Fewer phrase pairs than this may be missing from a reordering table by chance."""


@dataclass
class PhraseTable:
    """The phrase pairs of a model, grouped by source phrase.

    Attributes:
        sources: whole source phrases.
        targets: whole target phrases.
        source_of, target_of: ``int32`` [pairs], ids; pairs are sorted by source id, within it in file order.
        log_scores: ``float64`` [pairs, columns]; of several tables, those of all, 0 in those that a pair is not from.
        table_of: ``int8`` [pairs], which of the tables a pair is from.
        first: ``int64`` [sources + 1], pairs of source s are first[s]..first[s + 1].
        longest_source: words of the longest source phrase.
    """

    sources: Interner
    targets: Interner
    source_of: np.ndarray
    target_of: np.ndarray
    log_scores: np.ndarray
    table_of: np.ndarray
    first: np.ndarray
    longest_source: int


class ReorderingTable(NamedTuple):
    """The reordering scores of phrase pairs.

    Attributes:
        log_scores: ``float64`` [rows, columns], natural logarithms.
        row_of: ``int32`` [pairs], the row of every pair of a ``PhraseTable``.
    """

    log_scores: np.ndarray
    row_of: np.ndarray


class TargetPhrases(NamedTuple):
    """Target phrases as words and what the LM says about them alone.

    Attributes:
        bounds: ``int64`` [phrases + 1] into the others.
        words: ``int32``, target vocabulary ids.
        lm_words: ``int32`` [LMs, words], LM ids.
        alone_state: ``int32`` [LMs, words], LM state after each word in the empty context.
        alone_rest: ``float64`` [LMs, words], natural-log LM score of the words after this one, in the empty context.
        alone_total: ``float64`` [LMs, phrases], natural-log LM score of the whole phrase in the empty context.
        neural_words: ``int32``, classes of the neural LM; empty without one.
    """

    bounds: np.ndarray
    words: np.ndarray
    lm_words: np.ndarray
    alone_state: np.ndarray
    alone_rest: np.ndarray
    alone_total: np.ndarray
    neural_words: np.ndarray


def wanted_keys(sentences: list[str]) -> np.ndarray:
    """The set of hashes of all word sequences of the sentences that could be source phrases."""
    buffer, begins, ends = sentence_bytes(" ".join(sentences))
    counts = [len(words_of(sentence)) for sentence in sentences]
    slots = np.zeros(1 << max(16, (sum(counts) * 8).bit_length()), np.uint64)
    used, start = 0, 0
    done: list[tuple[int, int]] = []
    for count in counts:
        while (used + count * MAX_SOURCE_PHRASE) * 2 > len(slots):
            slots, used = np.zeros(len(slots) * 2, np.uint64), 0
            for a, b in done:
                used += int(kernels.add_ngram_keys(slots, buffer, begins, ends, a, b, MAX_SOURCE_PHRASE))
        used += int(kernels.add_ngram_keys(slots, buffer, begins, ends, start, start + count, MAX_SOURCE_PHRASE))
        done.append((start, start + count))
        start += count
    return slots


def load_phrase_tables(tables: Sequence[tuple[Path, int]], sentences: list[str] | None) -> PhraseTable:
    """Read phrase tables; only lines whose source phrase occurs in ``sentences`` where they are given.

    tables: files and how many scores they have. A pair that several of them have is there as often.

    Raises:
        InputError: missing or damaged file; a line with another number of scores than its table has, with a score that
            is NaN, infinite or negative, or with too few fields.
    """
    wanted = np.zeros(1, np.uint64) if sentences is None else wanted_keys(sentences)
    sources, targets = Interner(1 << 12, 1 << 16), Interner(1 << 12, 1 << 16)
    parts = [_pairs(path, columns, wanted, sources, targets) for path, columns in tables]
    scores, at = np.ones((sum(len(own) for *_, own in parts), sum(columns for _, columns in tables))), [0, 0]
    for *_, own in parts:
        to = [at[0] + own.shape[0], at[1] + own.shape[1]]
        scores[at[0] : to[0], at[1] : to[1]] = own
        at = to
    table_of = np.repeat(np.arange(len(parts), dtype=np.int8), [len(own) for *_, own in parts])
    source_of, target_of = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
    return _grouped(sources, targets, source_of, target_of, scores, table_of)


def _pairs(
    path: Path, columns: int, wanted: np.ndarray, sources: Interner, targets: Interner
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The pairs of a table: ``int32`` [pairs] ids of their phrases, ``float64`` [pairs, columns] probabilities."""
    source_of, target_of = np.zeros(1 << 12, np.int32), np.zeros(1 << 12, np.int32)
    scores = np.zeros((1 << 12, columns), np.float64)
    filled, number = 0, 1
    for block in read_line_blocks(path):
        check_utf8(block, path, number - 1)
        buffer, position, code = np.frombuffer(block, np.uint8), 0, kernels.FULL
        while code == kernels.FULL:
            position, filled, lines, code = kernels.phrase_lines(
                buffer, position, wanted, sources.table, targets.table, POW10, source_of, target_of, scores, filled
            )
            number += int(lines)
            if code == kernels.FULL:
                if filled == len(source_of):
                    source_of, target_of = _doubled(source_of), _doubled(target_of)
                    scores = _doubled(scores)
                longest = block.find(b"\n", position) - position
                sources.reserve(2, longest)
                targets.reserve(2, longest)
        if code:
            line = block[position:].split(b"\n", 1)[0]
            _refuse(line, path, number, code, columns, reordering=False)
    return source_of[:filled], target_of[:filled], scores[:filled]


def _refuse(line: bytes, path: Path, number: int, code: int, columns: int, *, reordering: bool) -> None:
    if code == kernels.REFUSED:
        refuse_line(line, path, number, None, reordering=reordering)
    raise InputError(
        f"{path}, line {number}: does not have the {columns} score columns that the moses.ini says; "
        "make the table again or correct the moses.ini"
    )


def _doubled(array: np.ndarray) -> np.ndarray:
    return np.concatenate([array, np.zeros_like(array)])


def _grouped(
    sources: Interner,
    targets: Interner,
    source_of: np.ndarray,
    target_of: np.ndarray,
    scores: np.ndarray,
    table_of: np.ndarray,
) -> PhraseTable:
    order = np.argsort(source_of, kind="stable")
    first = np.zeros(len(sources) + 1, np.int64)
    np.cumsum(np.bincount(source_of, minlength=len(sources)), out=first[1:])
    with np.errstate(divide="ignore"):
        logs = np.maximum(np.log(scores[order]), LOG_FLOOR)
    longest = max((phrase.count(b" ") + 1 for phrase in sources.strings()), default=1)
    return PhraseTable(sources, targets, source_of[order], target_of[order], logs, table_of[order], first, longest)


def load_reordering_table(path: Path, table: PhraseTable, columns: int) -> ReorderingTable:
    """The reordering scores of the pairs of a phrase table.

    Pairs that the file does not have get 0 everywhere, as in Moses; the log says how many these are.

    Raises:
        InputError: missing or damaged file, a malformed line of a pair in ``table``, or a file that has many pairs and
            none of ``table``.
    """
    keys = (table.source_of.astype(np.int64) << 32) | table.target_of
    pairs, row_of = np.unique(keys, return_inverse=True)
    probabilities = np.ones((len(pairs), columns), np.float64)
    found = np.zeros(len(pairs), np.uint8)
    number = 1
    for block in read_line_blocks(path):
        check_utf8(block, path, number - 1)
        buffer = np.frombuffer(block, np.uint8)
        lines, code = kernels.reordering_lines(
            buffer, table.sources.table, table.targets.table, pairs, POW10, probabilities, found
        )
        number += int(lines)
        if code:
            line = block.split(b"\n", int(lines) + 1)[int(lines)]
            _refuse(line, path, number, code, columns, reordering=True)
    with np.errstate(divide="ignore"):
        logs = np.maximum(np.log(probabilities), LOG_FLOOR)
    logs[found == 0] = 0.0
    _tell_missing(path, int((found[row_of] == 0).sum()), len(row_of), number - 1)
    return ReorderingTable(logs, row_of.reshape(-1).astype(np.int32))


def _tell_missing(path: Path, missing: int, pairs: int, lines: int) -> None:
    if missing == pairs >= FEW_PAIRS and lines:
        raise InputError(
            f"{path}: has none of the {pairs:,} phrase pairs that the input can use; the reordering table must be made "
            "of the same text and alignment as the phrase table"
        )
    if missing:
        say(f"{path}: {missing:,} of {pairs:,} phrase pairs are not there, their reordering scores are 0")
