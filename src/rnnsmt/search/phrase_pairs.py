"""Phrase pairs of Moses' phrase table and reordering table, read into flat arrays, and the phrase pairs of a text.

A line of a phrase table is ``source ||| target ||| scores ||| alignment ||| counts |||``, a line of a reordering table
``source ||| target ||| six probabilities``. Scores are converted to natural logarithms, floored at ``LOG_FLOOR`` as in
Moses. The alignment is read only for models that need affiliations: each target word is affiliated with one source word
of the phrase (``rnnsmt.nnjm.examples``). In a pair without links, or a table without alignments, target word j is
affiliated with source word j, or with the last source word if there are fewer.

``TranslationOptions`` contains the phrase pairs of a text, independent of weights; ``translation_options.look_up``
returns it.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rnnsmt.base.arrays import concatenated_ranges
from rnnsmt.base.errors import InputError
from rnnsmt.base.kernels.strings import POW10, Interner
from rnnsmt.base.progress import say, warn
from rnnsmt.base.reading import words_of
from rnnsmt.formats.phrase_table import read_table_blocks, refuse_line
from rnnsmt.phrases.pairs import PhraseIds
from rnnsmt.phrases.table import PhraseTable, ReorderingTable, index_of, log_scores_of, no_reordering
from rnnsmt.search.kernels import tables as kernels
from rnnsmt.search.source_text import sentence_bytes

MAX_SOURCE_PHRASE = 20
"""Maximum length in words of a source phrase that is looked up in a sentence (Moses' max-phrase-length)."""

FEW_PAIRS = 10
"""If there are fewer phrase pairs, it is no error if all of them are missing from the reordering table."""


class Affiliations(NamedTuple):
    """The source words with which the target words of phrase pairs are affiliated.

    Attributes:
        bounds: ``int64`` [pairs + 1]; the target words of pair p are bounds[p]..bounds[p + 1] - 1 in ``places``.
        places: ``int8`` [target words of all pairs], 0-based positions in the source phrase.
    """

    bounds: np.ndarray
    places: np.ndarray


class TableText(NamedTuple):
    """The pairs of a phrase table as text, sorted by source phrase.

    Attributes:
        sources, targets: the distinct source phrases and target phrases.
        source_of, target_of: ``int32`` [pairs], ids of the phrases of each pair; pairs are sorted by source id, then in
            file order.
        log_scores: ``float64`` [pairs, columns].
        counts: ``float32`` [pairs], how often each pair was extracted; 0 if the table has no counts.
        affiliations: affiliations of the pairs; None if they were not read.
    """

    sources: Interner
    targets: Interner
    source_of: np.ndarray
    target_of: np.ndarray
    log_scores: np.ndarray
    counts: np.ndarray
    affiliations: Affiliations | None

    def table(self, reordering: ReorderingTable | None = None) -> PhraseTable:
        """Return the table of these pairs, in which words are ids.

        Args:
            reordering: the reordering scores of the pairs; None if there is no reordering model.
        """
        (source_words, sources), (target_words, targets) = _split(self.sources), _split(self.targets)
        first = np.zeros(len(self.sources) + 1, np.int64)
        np.cumsum(np.bincount(self.source_of, minlength=len(self.sources)), out=first[1:])
        return PhraseTable(
            source_words,
            target_words.strings(),
            sources,
            first,
            targets.select(self.target_of),
            self.log_scores,
            no_reordering(len(self.target_of)) if reordering is None else reordering,
            None if self.affiliations is None else self.affiliations.places,
            self.counts,
            index_of(sources),
        )


def _split(phrases: Interner) -> tuple[Interner, PhraseIds]:
    """Return the distinct words of phrases, and the phrases as ids ``int32`` of these words."""
    arena, offsets, count = phrases.table.arena, phrases.table.offsets, len(phrases)
    most = phrases.arena_used // 2 + count + 1  # a phrase of n words has at least 2 n - 1 bytes
    words = Interner(1 << 12, 1 << 16)
    words.reserve(most, phrases.arena_used + 1)
    ids, bounds = np.empty(most, np.int32), np.zeros(count + 1, np.int64)
    filled = kernels.split_words(arena, offsets, count, words.table, ids, bounds)
    return words, PhraseIds(ids[:filled].copy(), bounds)


def wanted_keys(sentences: list[str]) -> np.ndarray:
    """Return the set of hashes of all n-grams of the sentences that could be source phrases.

    The set is an open-addressing hash table, ``uint64`` [a power of two], at most half full; free slots contain 0.
    """
    buffer, begins, ends = sentence_bytes(words_of(" ".join(sentences)))
    bounds = np.cumsum([0, *(len(words_of(sentence)) for sentence in sentences)])
    slots = np.zeros(1 << max(16, int(bounds[-1] * 8).bit_length()), np.uint64)
    while not kernels.add_ngram_keys(slots, buffer, begins, ends, bounds, MAX_SOURCE_PHRASE):
        slots = np.zeros(len(slots) * 2, np.uint64)
    return slots


def load_phrase_table(path: Path, columns: int, sentences: list[str] | None, links: bool = False) -> TableText:
    """Read a phrase table, or only the lines whose source phrase occurs in ``sentences``.

    Args:
        columns: number of scores per line.
        sentences: tokenised sentences; None: read all lines.
        links: whether to read ``TableText.affiliations``.

    Raises:
        InputError: a line is malformed or has another number of scores.
    """
    keys = np.zeros(1, np.uint64) if sentences is None else wanted_keys(sentences)  # one slot: keep every line
    sources, targets = Interner(1 << 12, 1 << 16), Interner(1 << 12, 1 << 16)
    source_of, target_of = np.zeros(1 << 12, np.int32), np.zeros(1 << 12, np.int32)
    scores, counts = np.zeros((1 << 12, columns), np.float64), np.zeros(1 << 12, np.float32)
    affiliated = (np.zeros((1 << 12) + 1, np.int64), np.zeros(1 << 14, np.int8)) if links else None
    filled, number = 0, 1
    for block in read_table_blocks(path):
        lines = block.count(b"\n")
        rows = filled + lines
        arrays = source_of, target_of, scores, counts
        source_of, target_of, scores, counts = (_with_room(array, rows) for array in arrays)
        sources.reserve(lines, len(block))
        targets.reserve(lines, len(block))
        if affiliated is not None:
            begins, places = affiliated
            affiliated = _with_room(begins, rows + 1), _with_room(places, int(begins[filled]) + len(block))
        filled, read, code = kernels.phrase_lines(
            np.frombuffer(block, np.uint8), keys, sources.table, targets.table, POW10, source_of, target_of, scores,
            counts, affiliated, filled,
        )  # fmt: skip
        if code:
            _refuse(block, int(read), path, number, code, columns, reordering=False)
        number += lines
    if number == 1:
        warn(f"{path}: contains no phrase pairs; all words remain untranslated")
    trimmed = None
    if affiliated is not None:
        begins, places = affiliated
        trimmed = Affiliations(begins[: filled + 1], places[: begins[filled]])
    read = source_of[:filled], target_of[:filled], scores[:filled], counts[:filled]
    return _grouped(sources, targets, *read, trimmed)


def _refuse(block: bytes, line: int, path: Path, first: int, code: int, columns: int, *, reordering: bool) -> None:
    """Raise an ``InputError`` for an invalid line of a block.

    Args:
        line: 0-based number of the line in the block.
        first: 1-based number in the file of the first line of the block.
        code: return code of the kernel, ``COLUMNS`` or ``REFUSED``.
    """
    if code == kernels.REFUSED:
        refuse_line(block.split(b"\n", line + 1)[line], path, first + line, None, reordering=reordering)
    raise InputError(
        f"{path}, line {first + line}: does not have the {columns} scores that the moses.ini specifies; "
        "create the table again or correct the moses.ini"
    )


def _with_room(array: np.ndarray, size: int) -> np.ndarray:
    """Return the array, enlarged by doubling to at least ``size`` rows."""
    while len(array) < size:
        array = np.concatenate([array, np.zeros_like(array)])
    return array


def _grouped(
    sources: Interner,
    targets: Interner,
    source_of: np.ndarray,
    target_of: np.ndarray,
    scores: np.ndarray,
    counts: np.ndarray,
    affiliations: Affiliations | None,
) -> TableText:
    order = np.argsort(source_of, kind="stable")
    if affiliations is not None:
        bounds = affiliations.bounds
        lengths = np.diff(bounds)[order]
        places = affiliations.places[concatenated_ranges(bounds[order], lengths)]
        affiliations = Affiliations(np.concatenate([[0], np.cumsum(lengths)]), places)
    numbers = source_of[order], target_of[order], log_scores_of(scores[order]), counts[order]
    return TableText(sources, targets, *numbers, affiliations)


def load_reordering_table(path: Path, table: TableText, columns: int) -> ReorderingTable:
    """Read the reordering scores of the pairs of a phrase table.

    All scores of pairs that are missing from the file are 0, as in Moses; the number of these pairs is logged.

    Args:
        columns: number of scores per line.

    Raises:
        InputError: a line is malformed or has another number of scores, or all pairs are missing.
    """
    # distinct (source, target), ascending: a pair that occurs in several lines of the phrase table is looked up once
    keys = (table.source_of.astype(np.int64) << 32) | table.target_of
    pairs, row_of = np.unique(keys, return_inverse=True)
    probabilities = np.ones((len(pairs), columns), np.float64)
    present = np.zeros(len(pairs), np.uint8)
    number = 1
    for block in read_table_blocks(path):
        buffer = np.frombuffer(block, np.uint8)
        lines, code = kernels.reordering_lines(
            buffer, table.sources.table, table.targets.table, pairs, POW10, probabilities, present
        )
        if code:
            _refuse(block, int(lines), path, number, code, columns, reordering=True)
        number += int(lines)
    logs = log_scores_of(probabilities)
    logs[present == 0] = 0.0
    _tell_missing(path, int((present[row_of] == 0).sum()), len(row_of), number - 1)
    return ReorderingTable(logs, row_of.reshape(-1).astype(np.int32))


def _tell_missing(path: Path, missing: int, pairs: int, lines: int) -> None:
    if missing == pairs >= FEW_PAIRS and lines:
        raise InputError(
            f"{path}: has none of the {pairs:,} phrase pairs that match the input; the reordering table must be "
            "computed from the same text and alignment as the phrase table"
        )
    if missing:
        say(f"{path}: {missing:,} of {pairs:,} phrase pairs are missing; their reordering scores are 0")


class TargetPhrases(NamedTuple):
    """Target phrases as words, with their LM scores in the empty context.

    Attributes:
        bounds: ``int64`` [phrases + 1]; the words of phrase p are bounds[p]..bounds[p + 1] - 1 in the other arrays.
        words: ``int32`` [words], target vocabulary ids.
        lm_words: ``int32`` [LMs, words], word ids of the LMs.
        alone_state: ``int32`` [LMs, words], LM state after each word, from the empty context.
        alone_rest: ``float64`` [LMs, words], natural-log LM score of the words after each word, from the empty context.
        alone_total: ``float64`` [LMs, phrases], natural-log LM score of the whole phrase, from the empty context.
    """

    bounds: np.ndarray
    words: np.ndarray
    lm_words: np.ndarray
    alone_state: np.ndarray
    alone_rest: np.ndarray
    alone_total: np.ndarray


class TranslationOptions(NamedTuple):
    """Phrase pairs for sentences, independent of weights: pairs of the model, and pairs for unknown words.

    Attributes:
        spans: for each sentence ``int32`` [words, longest], source phrase by first word and length - 1; -1 for none.
            The numbers of source phrases are those of ``source_of``, not those of the table.
        words: target vocabulary, including the unknown words.
        targets: target phrases of the pairs, including the unknown words.
        source_of, target_of: ``int32`` [rows], phrases of the pairs; pairs are sorted by source phrase.
        static: ``float64`` [rows, F], features that depend only on the pair.
        reordering: ``float64`` [n, 8], backward scores by orientation, then forward scores; pairs with the same scores
            share a row.
        forward_class: ``int32`` [n], number of the forward scores in each row of ``reordering``; rows with equal
            forward scores have the same number, and the last number is the largest.
        reordering_of: ``int32`` [rows], row of each pair in ``reordering`` and ``forward_class``.
        longest: number of words of the longest source phrase.
        sources: number of source phrases, including unknown words.
        known: number of pairs of the model, which precede the pairs for unknown words.
        unknown: words that have no single-word translation.
        affiliations: affiliations of the pairs; None if the model does not need them. Words that are passed through are
            affiliated with their source word.
        prepared: for each neural feature of the model, the result of ``NeuralFeature.prepare`` for these pairs.
    """

    spans: list[np.ndarray]
    words: list[str]
    targets: TargetPhrases
    source_of: np.ndarray
    target_of: np.ndarray
    static: np.ndarray
    reordering: np.ndarray
    forward_class: np.ndarray
    reordering_of: np.ndarray
    longest: int
    sources: int
    known: int
    unknown: list[str]
    affiliations: Affiliations | None
    prepared: list[Any]

    def target_text(self, row: int) -> str:
        """Return the target phrase of a pair as text."""
        begin, end = self.targets.bounds[self.target_of[row] :][:2]
        return " ".join(self.words[word] for word in self.targets.words[begin:end])

    def find(self, source: int, target: np.ndarray) -> int:
        """Return the row of the pair of a source phrase and the target words ``target`` (``int32``); -1 for none."""
        if source < 0:
            return -1
        # with values of another type, numpy would convert the whole array in every call
        begin, end = np.searchsorted(self.source_of, np.array([source, source + 1], self.source_of.dtype))
        phrases = self.target_of[begin:end]
        starts = self.targets.bounds[phrases]
        rows = np.flatnonzero(self.targets.bounds[phrases + 1] - starts == len(target))
        for position, word in enumerate(target):
            rows = rows[self.targets.words[starts[rows] + position] == word]
        return int(begin + rows[0]) if len(rows) else -1
