"""Phrase table and lexicalised reordering table from an extract file, batch by batch."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.io import InputError
from rnnsmt.base.kernels.decorator import kernel
from rnnsmt.base.kernels.numbers import NUMBER_BYTES, put_number
from rnnsmt.base.parallel import Writer, atomic_blocks
from rnnsmt.base.progress import Meter
from rnnsmt.phrases.extraction import ExtractBatch, ExtractFile
from rnnsmt.phrases.lexical_table import NULL, read_lexical_table
from rnnsmt.phrases.packing import Packing, packing_array, phrase_bytes, put_phrase, put_separator, unpack, word_texts
from rnnsmt.phrases.pair_scores import ScoredColumns, Smoothing, hash_lexicon, score_pairs, write_phrase_lines

BUFFER_BYTES = 1 << 20
"""Size of the buffer for lines, in bytes."""


def score_phrases(
    extract: str,
    lex_e2f: str,
    lex_f2e: str,
    output: str,
    threads: int = 1,
    memory_mb: int = 2000,
    smoothing: str = "none",
) -> dict[str, object]:
    """Write the phrase table of an extract file.

    Args:
        smoothing: ``none`` or ``kneser-ney``.

    Returns:
        The statistics of the stage.
    """
    file = ExtractFile(extract, threads, memory_mb)
    codes = _codes(file.packings[0]), _codes(file.packings[1])
    lexicons = tuple(
        hash_lexicon(*read_lexical_table(path, *words)) for path, words in ((lex_e2f, codes), (lex_f2e, codes[::-1]))
    )
    nulls = np.array([codes[0][NULL], codes[1][NULL]], np.int64)
    packings, texts = packing_array(file.packings), word_texts(file.packings)
    counting = _counting(file.smoothing, smoothing)
    meter = Meter("scoring", file.rows, "rows")
    n_pairs, n_sources, missing = 0, 0, 0
    with atomic_blocks(output, threads) as out:
        for batch in file.batches([*ScoredColumns._fields]):
            chosen, counts, scores, unknown = _score(batch, packings, nulls, lexicons, counting)
            arguments = (batch.rows, packings, texts, chosen, counts, scores)
            _write_lines(out, write_phrase_lines, len(chosen), arguments)
            n_pairs += len(chosen)
            n_sources += len(batch.rows.sources) - 1
            missing += unknown
            meter.add(len(batch.columns["links"]))
    figures: dict[str, object] = {"phrase pairs": n_pairs, "source phrases": n_sources}
    if missing:
        figures["lookups without an entry in the lexical tables (probability 1)"] = missing
    return figures


def _write_lines(out: Writer, kernel: Callable[..., tuple[int, int]], lines: int, arguments: tuple[Any, ...]) -> None:
    """Write ``lines`` lines with a kernel that fills a buffer.

    Args:
        kernel: ``kernel(start, *arguments, buffer)`` writes lines from ``start``, and returns the first line that did
            not fit and the number of bytes.
    """
    buffer = np.empty(BUFFER_BYTES, np.uint8)
    start = 0
    while start < lines:
        reached, filled = kernel(start, *arguments, buffer)
        if reached == start:
            buffer = np.empty(2 * len(buffer), np.uint8)  # a single line did not fit
            continue
        out.write(buffer[:filled].data)
        start = reached


def _counting(smoothing: Smoothing, kind: str) -> tuple[int, float, NDArray[np.float64]]:
    """Return the argument ``counting`` of ``score_pairs``.

    Args:
        kind: ``none`` or ``kneser-ney``.

    Returns:
        The number of alignments, the number of pairs, and the discounts by joint count; discounts of 0 for ``none``.
    """
    if kind == "none":
        return smoothing.alignments, 1.0, np.zeros(1)
    return smoothing.alignments, float(smoothing.pairs), np.array(smoothing.by_joint())


def _score(
    batch: ExtractBatch, packings: NDArray[np.int64], nulls: NDArray[np.int64], lexicons: Any, counting: Any
) -> Any:
    """Score a batch.

    Returns:
        The alignments [P], counts [P, 3] and scores [P, 4] of its pairs, and the number of missing look-ups.
    """
    n = len(batch.rows.pairs) - 1
    chosen, counts, scores = np.empty(n, np.int64), np.empty((n, 3), np.int64), np.empty((n, 4))
    columns = ScoredColumns(*[batch.columns[name] for name in ScoredColumns._fields])
    missing = score_pairs(batch.rows, columns, counting, packings, nulls, lexicons, chosen, counts, scores)
    return chosen, counts, scores, missing


def _codes(packing: Packing) -> dict[bytes, int]:
    """Return the mapping from word to code, including NULL, whose code is 0 unless the text contains the word NULL."""
    codes = {word: index for index, word in enumerate(packing.words, 1)}
    codes.setdefault(NULL, 0)
    return codes


class OrientationCounts(NamedTuple):
    """Columns of an extract file: counts over all alignments of a text; a row is a pair with one of its links, [N]."""

    joint: Any
    previous_mono: Any
    previous_swap: Any
    next_mono: Any
    next_swap: Any


def write_reordering_table(
    extract: str, output: str, smoothing: float = 0.5, threads: int = 1, memory_mb: int = 2000
) -> dict[str, object]:
    """Write the reordering table of an extract file.

    Args:
        smoothing: constant added to every count.

    Returns:
        The statistics of the stage.
    """
    if not (smoothing > 0.0 and math.isfinite(smoothing)):
        raise InputError(f"--smoothing {smoothing}: must be a positive number")
    file = ExtractFile(extract, threads, memory_mb)
    packings, texts = packing_array(file.packings), word_texts(file.packings)
    alignments = file.smoothing.alignments
    meter = Meter("writing", file.rows, "rows")
    n_pairs = 0
    with atomic_blocks(output, threads) as out:
        for batch in file.batches([*OrientationCounts._fields]):
            counts = OrientationCounts(*[batch.columns[name] for name in OrientationCounts._fields])
            lines = len(batch.rows.pairs) - 1
            arguments = (batch.rows, packings, texts, counts, alignments, smoothing)
            _write_lines(out, write_reordering_lines, lines, arguments)
            n_pairs += lines
            meter.add(len(batch.columns["joint"]))
    return {"phrase pairs": n_pairs}


@kernel()
def write_reordering_lines(
    start: int, rows: Any, packings: Any, texts: Any, columns: Any, alignments: int, smoothing: float, buffer: Any
) -> Any:
    """Write the lines of the pairs from ``start`` into ``buffer``.

    A probability is (count + smoothing) / (total + 3 · smoothing) for monotone, swap and discontinuous, before and
    after the phrase (Koehn et al. 2005; Moses' ``wbe-msd-bidirectional-fe``). Counts over several alignments of a text
    are divided by their number.

    Args:
        start: first pair.
        rows: the pairs, ``SortedPairs``.
        packings: int64 [2, 3], (width, per_key, stop) of both sides.
        texts: (text, offsets) of source and of target words, as in ``put_phrase``.
        columns: ``OrientationCounts``.
        alignments: number of alignments of each text.
        buffer: uint8, filled.

    Returns:
        The first pair that was not written, and the number of bytes written.
    """
    pairs, _, source_keys, target_keys = rows
    joint, previous_mono, previous_swap, next_mono, next_swap = columns
    codes = np.empty((2, 8), np.int64)
    (source_text, source_offsets), (target_text, target_offsets) = texts
    # rows: before, after the phrase; columns: monotone, swap, discontinuous
    counts = np.zeros((2, 3), np.int64)
    at = 0
    for pair in range(start, pairs.shape[0] - 1):
        row = pairs[pair]
        n_source = unpack(source_keys, row, packings[0, 0], packings[0, 1], packings[0, 2], codes[0])
        n_target = unpack(target_keys, row, packings[1, 0], packings[1, 1], packings[1, 2], codes[1])
        most = phrase_bytes(codes[0], n_source, source_offsets) + phrase_bytes(codes[1], n_target, target_offsets)
        # upper bound of the line: words, six numbers, and less than 100 bytes of separators
        if at + most + 6 * NUMBER_BYTES + 100 > buffer.shape[0]:
            return pair, at
        counts[:] = 0
        total = np.int64(0)
        # sum over the alignments of the pair
        for row in range(pairs[pair], pairs[pair + 1]):
            total += joint[row]
            counts[0, 0] += previous_mono[row]
            counts[0, 1] += previous_swap[row]
            counts[1, 0] += next_mono[row]
            counts[1, 1] += next_swap[row]
        at = put_phrase(buffer, at, codes[0], n_source, source_text, source_offsets)
        at = put_separator(buffer, at)
        at = put_phrase(buffer, at, codes[1], n_target, target_text, target_offsets)
        at = put_separator(buffer, at)
        for direction in range(2):
            counts[direction, 2] = total - counts[direction, 0] - counts[direction, 1]
            for orientation in range(3):
                share = counts[direction, orientation] / alignments + smoothing
                at = put_number(buffer, at, share / (total / alignments + 3.0 * smoothing))
                buffer[at] = 32
                at += 1
        # the newline replaces the last space
        buffer[at - 1] = 10
    return pairs.shape[0] - 1, at
