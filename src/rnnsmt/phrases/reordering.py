"""Lexicalised reordering table from an extract file."""

import math
from typing import Any, NamedTuple

import numpy as np

from rnnsmt.base.io import InputError
from rnnsmt.base.kernels.decorator import kernel
from rnnsmt.base.kernels.numbers import NUMBER_BYTES, put_number
from rnnsmt.base.parallel_gzip import atomic_blocks
from rnnsmt.base.progress import Meter
from rnnsmt.phrases.extract_file import ExtractFile
from rnnsmt.phrases.packing import packing_array, phrase_bytes, put_phrase, put_separator, unpack, word_texts
from rnnsmt.phrases.table import write_table_lines


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
        extract: the extract file.
        output: the table.
        smoothing: added to every count.
        threads: number of threads.
        memory_mb: memory limit.

    Returns:
        The statistics of the stage.

    Raises:
        InputError: as ``ExtractFile``, or the smoothing is not positive and finite (a probability of 0 has no
            logarithm).
    """
    if not (smoothing > 0.0 and math.isfinite(smoothing)):
        raise InputError(f"--smoothing {smoothing}: must be above 0")
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
            write_table_lines(out, write_reordering_lines, lines, arguments)
            n_pairs += lines
            meter.add(len(batch.columns["joint"]))
    return {"phrase pairs": n_pairs}


@kernel()
def write_reordering_lines(
    start: int,
    rows: Any,
    packings: Any,
    texts: Any,
    columns: Any,
    alignments: int,
    smoothing: float,
    buffer: Any,
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
        smoothing: added to every count.
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
