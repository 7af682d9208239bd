"""Import of tables in Moses format as files of phrase pairs, scores and reordering scores.

The pairs are in the order of the lines. The links of a line are converted to affiliations
(``rnnsmt.align.affiliation``). If a line has no links, target word j is affiliated with source word j, or with the last
source word if there are fewer source words. Fields after the counts are ignored.
"""

import hashlib
import json
from contextlib import ExitStack
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from rnnsmt.align.affiliation import affiliate
from rnnsmt.base.array_file import ArrayWriter, write_arrays
from rnnsmt.base.errors import InputError
from rnnsmt.base.kernels.decimals import six_digits
from rnnsmt.base.kernels.decorator import INNER, kernel
from rnnsmt.base.kernels.strings import POW10, Interner, intern
from rnnsmt.base.kernels.table_lines import (
    COUNTS,
    FIELDS,
    LINKS,
    SCORES,
    SOURCE,
    TARGET,
    numbers,
    read_links,
)
from rnnsmt.base.paths import StrPath
from rnnsmt.base.progress import Meter
from rnnsmt.formats.phrase_table import TableLines, read_table_lines
from rnnsmt.phrases.column_files import AFFILIATIONS, COUNT_NAMES, ORIENTATIONS, SCORE_NAMES
from rnnsmt.phrases.pairs import PairsWriter, pair_types

LAST_PLACE = 127
"""Maximum affiliation, the maximum of ``int8``; longer source phrases are never looked up."""


def import_tables(
    phrase_table: StrPath,
    output: StrPath,
    output_scores: StrPath | None = None,
    reordering: tuple[StrPath, StrPath] | None = None,
) -> dict[str, object]:
    """Convert a phrase table, and optionally a reordering table, to files of phrase pairs and scores.

    Args:
        phrase_table: the phrase table.
        output: output file for the phrase pairs.
        output_scores: output file for the scores; None: no such file.
        reordering: reordering table, which must have the same pairs in the same order, and output file for its scores.

    Returns:
        The number of source phrases and the number of pairs.

    Raises:
        InputError: a table is empty or malformed, or the tables have different pairs.
    """
    vocabularies = [Interner(), Interner()]
    meter = Meter("reading the phrase table", unit="pairs")
    digest = hashlib.sha256()
    last = b""
    names: list[str] = []
    with ExitStack() as stack:
        scores: ArrayWriter | None = None
        store = PairsWriter(writer := stack.enter_context(write_arrays(output, pair_types([1 << 32, 1 << 32]))))
        for lines in read_table_lines(phrase_table):
            if output_scores is not None and scores is None:
                names = _names(lines.scores, SCORE_NAMES, "score")
                types: dict[str, DTypeLike] = {AFFILIATIONS: np.int8}
                types |= dict.fromkeys((*names, *COUNT_NAMES), np.float32)
                scores = stack.enter_context(write_arrays(output_scores, types))
            if scores is not None:
                _append_scores(scores, lines, names)
            last = _append_pairs(store, lines, vocabularies, last)
            digest.update(_pairs_text(lines))
            meter.add(len(lines.bounds))
        if not store.pairs:
            raise InputError(f"{phrase_table}: the table is empty; create it again")
        figures = store.finish(*(words.strings() for words in vocabularies))
        fingerprint = writer.entries["fingerprint"]
        if scores is not None:
            scores.entries |= {"pairs": fingerprint, "scores": json.dumps(names)}
        if reordering is not None:
            _import_reordering(*reordering, fingerprint, digest.hexdigest())
    return figures


def _names(number: int, usual: tuple[str, ...], other: str) -> list[str]:
    """Return names for the scores of a table: ``usual`` if their number is right, otherwise ``other`` with a number."""
    return list(usual) if number == len(usual) else [f"{other} {index + 1}" for index in range(number)]


def _append_pairs(store: PairsWriter, lines: TableLines, vocabularies: list[Interner], last: bytes) -> bytes:
    """Append the pairs of a block of lines to a file of phrase pairs.

    Args:
        store: writer of the file.
        lines: the lines.
        vocabularies: source and target words, to which new words are added.
        last: source phrase of the last line of the previous block; the first lines may have the same source phrase.

    Returns:
        The source phrase of the last line.
    """
    text, bounds, _ = lines
    sides = []
    for side, words in zip((SOURCE, TARGET), vocabularies, strict=True):
        words.reserve(len(text) // 2 + 1, len(text))
        ids, lengths = np.empty(len(text), np.uint32), np.empty(len(bounds), np.int64)
        filled = number_words_of_phrases(text, bounds, side, words.table, ids, lengths)
        sides.append((ids[:filled], lengths))
    begins = run_begins(text, bounds)
    first, final = (text[slice(*bounds[line, SOURCE])].tobytes() for line in (0, -1))
    begins[0] = first != last
    ids, lengths = sides[0]
    store.append(np.flatnonzero(begins), (ids[np.repeat(begins, lengths)], lengths[begins]), sides[1])
    return final


def _append_scores(out: ArrayWriter, lines: TableLines, names: list[str]) -> None:
    """Append the scores, counts and affiliations of a block of lines."""
    text, bounds, _ = lines
    scores, counts = np.empty((len(bounds), len(names))), np.zeros((len(bounds), len(COUNT_NAMES)))
    places = np.empty(len(text), np.int8)
    filled = parse_lines(text, bounds, POW10, scores, counts, places)
    for name, values in zip(names, six_digits(scores.T), strict=True):
        out.append(name, values)
    for name, values in zip(COUNT_NAMES, counts.T, strict=True):
        out.append(name, values)
    out.append(AFFILIATIONS, places[:filled])


def _pairs_text(lines: TableLines) -> bytes:
    """Return the source and target phrases of a block of lines as text, for comparing the pairs of two tables."""
    buffer = np.empty(len(lines.text) + 2 * len(lines.bounds), np.uint8)
    filled = put_pairs(lines.text, lines.bounds, buffer)
    return buffer[:filled].tobytes()


def _import_reordering(table: StrPath, output: StrPath, fingerprint: str, expected: str) -> None:
    """Write the scores of a reordering table.

    Args:
        table: the reordering table.
        output: output file.
        fingerprint: fingerprint of the phrase pairs.
        expected: SHA-256 of the text of the pairs in the phrase table.
    """
    digest = hashlib.sha256()
    with ExitStack() as stack:
        out: ArrayWriter | None = None
        for lines in read_table_lines(table, reordering=True):
            if out is None:
                names = _names(lines.scores, ORIENTATIONS, "reordering score")
                out = stack.enter_context(write_arrays(output, dict.fromkeys(names, np.float32)))
                out.entries |= {"pairs": fingerprint, "scores": json.dumps(names)}
            scores = np.empty((len(lines.bounds), len(names)))
            parse_scores(lines.text, lines.bounds, POW10, scores)
            for name, values in zip(names, six_digits(scores.T), strict=True):
                out.append(name, values)
            digest.update(_pairs_text(lines))
        if digest.hexdigest() != expected:  # checked inside the block, so that an output file is not created
            raise InputError(
                f"{table}: does not have the phrase pairs of the phrase table in the same order; both must be tables "
                "of one model, sorted (LC_ALL=C sort)"
            )


@kernel()
def parse_scores(block: Any, bounds: Any, pow10: Any, scores: Any) -> None:
    """Fill ``scores`` (float64 [lines, n]) with the first n scores of each line, which must have been checked."""
    for line in range(bounds.shape[0]):
        numbers(block, bounds[line, SCORES, 0], bounds[line, SCORES, 1], pow10, scores[line])


@kernel()
def parse_lines(block: Any, bounds: Any, pow10: Any, scores: Any, counts: Any, places: Any) -> int:
    """Parse lines of a phrase table that have been checked; return the number of target words.

    Args:
        block, bounds: lines and their fields, as in ``split_table_lines``.
        pow10: ``rnnsmt.base.kernels.strings.POW10``.
        scores: float64 [lines, n], filled.
        counts: float64 [lines, 3], filled; elements for counts that a line lacks are not changed.
        places: int8, filled with the affiliations of the target words of all lines.
    """
    filled = 0
    for line in range(bounds.shape[0]):
        numbers(block, bounds[line, SCORES, 0], bounds[line, SCORES, 1], pow10, scores[line])
        numbers(block, bounds[line, COUNTS, 0], bounds[line, COUNTS, 1], pow10, counts[line])
        filled = affiliate_line(block, bounds[line], FIELDS, filled, places)
    return filled


@kernel(**INNER)
def affiliate_line(buffer, bounds, number, begin, out):
    """Write the affiliations of the target words of a line to ``out`` from ``begin`` on; return the index after them.

    Args:
        buffer, bounds: text and fields of the line, as in ``split_line``; the line must have been checked.
        number: number of fields of the line.
    """
    has_links = number > LINKS
    size = (bounds[LINKS, 1] - bounds[LINKS, 0] + 1) // 4 if has_links else 0
    links = np.empty((2, size), np.int32)
    count, sources, targets = read_links(buffer, bounds, number, links)
    end = begin + targets
    if count == 0:
        for word in range(targets):
            out[begin + word] = min(word, sources - 1, LAST_PLACE)
        return end
    for link in range(count):
        links[0, link] = min(links[0, link], LAST_PLACE)
    affiliate(np.array([0, count]), links[0], links[1], np.array([begin, end]), out)
    return end


@kernel()
def put_pairs(block: Any, bounds: Any, out: Any) -> int:
    """Copy both phrases of every line to ``out``, with a newline after each phrase; return the number of bytes."""
    at = 0
    for line in range(bounds.shape[0]):
        for side in range(2):
            for position in range(bounds[line, side, 0], bounds[line, side, 1]):
                out[at] = block[position]
                at += 1
            out[at] = 10
            at += 1
    return at


@kernel()
def run_begins(block: Any, bounds: Any) -> Any:
    """Return whether the source phrase of each line differs from the one of the previous line, bool [lines].

    Args:
        block, bounds: as in ``number_words_of_phrases``.
    """
    begins = np.ones(bounds.shape[0], np.bool_)
    for line in range(1, bounds.shape[0]):
        begin, length = bounds[line, 0, 0], bounds[line, 0, 1] - bounds[line, 0, 0]
        before = bounds[line - 1, 0, 0]
        if bounds[line - 1, 0, 1] - before != length:
            continue
        same = True
        for position in range(length):
            if block[begin + position] != block[before + position]:
                same = False
                break
        begins[line] = not same
    return begins


@kernel()
def number_words_of_phrases(block: Any, bounds: Any, side: Any, words: Any, ids: Any, lengths: Any) -> Any:
    """Convert the phrases of one side to word ids; return the number of ids.

    Args:
        block: uint8, bytes of lines with single spaces between the words of phrases.
        bounds: int64 [lines, FIELDS, 2], begin and end of the fields, as filled by ``split_table_lines``.
        side: the field, SOURCE or TARGET.
        words: vocabulary (``rnnsmt.base.kernels.strings.InternTable``), to which new words are added.
        ids: uint32 [at least the size of ``block``], filled with the word ids of all phrases.
        lengths: int64 [lines], filled with the number of words of each phrase.
    """
    filled = 0
    for line in range(bounds.shape[0]):
        position, end = bounds[line, side, 0], bounds[line, side, 1]
        first = filled
        while position < end:
            stop = position
            while stop < end and block[stop] != 32:
                stop += 1
            ids[filled] = intern(words, block, position, stop)
            filled += 1
            position = stop + 1
        lengths[line] = filled - first
    return filled
