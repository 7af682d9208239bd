"""Phrase table and lexicalised reordering table from an extract file, batch by batch."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from rnnsmt.base.kernels.decorator import UNCOUNTED, kernel
from rnnsmt.base.kernels.numbers import NUMBER_BYTES, put_integer, put_number
from rnnsmt.base.parallel import Writer, atomic_blocks
from rnnsmt.base.progress import Meter
from rnnsmt.phrases.extract_file import ExtractFile
from rnnsmt.phrases.lexical_table import NULL, read_lexical_table
from rnnsmt.phrases.packing import phrase_bytes, put_phrase, put_separator, unpack
from rnnsmt.phrases.scores import SCORED_COLUMNS, hash_lexicon, score_pairs

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
    # the code of NULL is 0, unless the text contains the word NULL
    codes = [{NULL: 0} | packing.codes() for packing in file.packings]
    lexicons = tuple(
        hash_lexicon(*read_lexical_table(path, *words)) for path, words in ((lex_e2f, codes), (lex_f2e, codes[::-1]))
    )
    sides, nulls = file.sides(), (codes[0][NULL], codes[1][NULL])
    parameters = None if smoothing == "none" else file.smoothing
    meter = Meter("scoring", file.rows, "rows")
    n_pairs, n_sources, missing = 0, 0, 0
    with atomic_blocks(output, threads) as out:
        for rows, columns in file.batches(SCORED_COLUMNS):
            scored, unknown = score_pairs(rows, columns, parameters, (sides, nulls, lexicons))
            _write_lines(out, write_phrase_lines, len(scored.links), (rows, sides, scored))
            n_pairs += len(scored.links)
            n_sources += len(rows.sources) - 1
            missing += unknown
            meter.add(len(columns["links"]))
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
    file = ExtractFile(extract, threads, memory_mb)
    sides, alignments = file.sides(), file.smoothing.alignments
    meter = Meter("writing", file.rows, "rows")
    n_pairs = 0
    with atomic_blocks(output, threads) as out:
        for rows, columns in file.batches([*OrientationCounts._fields]):
            lines = len(rows.pairs) - 1
            arguments = (rows, sides, OrientationCounts(**columns), alignments, smoothing)
            _write_lines(out, write_reordering_lines, lines, arguments)
            n_pairs += lines
            meter.add(len(columns["joint"]))
    return {"phrase pairs": n_pairs}


@kernel(**UNCOUNTED)
def put_pair(
    source_keys: Any, target_keys: Any, row: int, sides: Any, codes: Any, rest: int, buffer: Any, at: int
) -> Any:
    """Write the phrases of a pair, each with a separator, if the buffer has room for them and the rest of the line.

    Args:
        source_keys, target_keys, row: packed phrases, and the row of the pair.
        sides: ``Side`` of source and target.
        codes: int64 [2, 8], filled with the word codes.
        rest: maximum number of bytes of the rest of the line.

    Returns:
        The numbers of source and target words, and the index after the text, or -1.
    """
    n_source = unpack(source_keys, row, sides[0], codes[0])
    n_target = unpack(target_keys, row, sides[1], codes[1])
    most = phrase_bytes(codes[0], n_source, sides[0]) + phrase_bytes(codes[1], n_target, sides[1])
    if at + most + rest > buffer.shape[0]:
        return n_source, n_target, -1
    at = put_separator(buffer, put_phrase(buffer, at, codes[0], n_source, sides[0]))
    at = put_separator(buffer, put_phrase(buffer, at, codes[1], n_target, sides[1]))
    return n_source, n_target, at


@kernel()
def write_phrase_lines(start: int, rows: Any, sides: Any, scored: Any, buffer: Any) -> Any:
    """Write the lines of the pairs from ``start`` into ``buffer``.

    Args:
        start: first pair.
        rows: the pairs, ``SortedPairs``.
        sides: ``Side`` of source and target.
        scored: their ``PairScores``.
        buffer: uint8, filled.

    Returns:
        The first pair that was not written, and the number of bytes written.
    """
    pairs, _, source_keys, target_keys = rows
    links, counts, scores = scored
    codes = np.empty((2, 8), np.int64)
    filled = 0
    # at most 64 links of 4 bytes, 4 scores, and less than 100 bytes of counts and separators
    rest = 4 * 64 + 4 * NUMBER_BYTES + 100
    for pair in range(start, pairs.shape[0] - 1):
        n_source, n_target, at = put_pair(source_keys, target_keys, pairs[pair], sides, codes, rest, buffer, filled)
        if at < 0:
            return pair, filled
        for n in range(4):
            if n:
                buffer[at] = 32
                at += 1
            at = put_number(buffer, at, scores[pair, n])
        at = put_separator(buffer, at)
        first = True
        for j in range(n_target):
            for i in range(n_source):
                if (links[pair] >> (8 * j + i)) & 1:
                    if not first:
                        buffer[at] = 32
                        at += 1
                    first = False
                    # single digits: positions are below 8
                    buffer[at] = 48 + i
                    buffer[at + 1] = 45
                    buffer[at + 2] = 48 + j
                    at += 3
        at = put_separator(buffer, at)
        for n in range(3):
            if n:
                buffer[at] = 32
                at += 1
            at = put_integer(buffer, at, counts[pair, n])
        at = put_separator(buffer, at)
        # Moses' last field is empty
        for _ in range(3):
            buffer[at] = 124
            at += 1
        buffer[at] = 10
        filled = at + 1
    return pairs.shape[0] - 1, filled


@kernel()
def write_reordering_lines(
    start: int, rows: Any, sides: Any, columns: Any, alignments: int, smoothing: float, buffer: Any
) -> Any:
    """Write the lines of the pairs from ``start`` into ``buffer``.

    A probability is (count + smoothing) / (total + 3 · smoothing) for monotone, swap and discontinuous, before and
    after the phrase (Koehn et al. 2005; Moses' ``wbe-msd-bidirectional-fe``). Counts over several alignments of a text
    are divided by their number.

    Args:
        start, rows, sides, buffer: as in ``write_phrase_lines``.
        columns: ``OrientationCounts``.
        alignments: number of alignments of each text.

    Returns:
        The first pair that was not written, and the number of bytes written.
    """
    pairs, _, source_keys, target_keys = rows
    joint, previous_mono, previous_swap, next_mono, next_swap = columns
    codes = np.empty((2, 8), np.int64)
    # rows: before, after the phrase; columns: monotone, swap, discontinuous
    counts = np.zeros((2, 3), np.int64)
    filled = 0
    for pair in range(start, pairs.shape[0] - 1):
        # six numbers, and less than 100 bytes of separators
        _, _, at = put_pair(source_keys, target_keys, pairs[pair], sides, codes, 6 * NUMBER_BYTES + 100, buffer, filled)
        if at < 0:
            return pair, filled
        counts[:] = 0
        total = np.int64(0)
        # sum over the alignments of the pair
        for row in range(pairs[pair], pairs[pair + 1]):
            total += joint[row]
            counts[0, 0] += previous_mono[row]
            counts[0, 1] += previous_swap[row]
            counts[1, 0] += next_mono[row]
            counts[1, 1] += next_swap[row]
        for direction in range(2):
            counts[direction, 2] = total - counts[direction, 0] - counts[direction, 1]
            for orientation in range(3):
                share = counts[direction, orientation] / alignments + smoothing
                at = put_number(buffer, at, share / (total / alignments + 3.0 * smoothing))
                buffer[at] = 32
                at += 1
        # the newline replaces the last space
        buffer[at - 1] = 10
        filled = at
    return pairs.shape[0] - 1, filled
