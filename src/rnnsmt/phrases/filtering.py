"""Filtering of phrase tables and reordering tables for input texts."""

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from rnnsmt.base.errors import InputError
from rnnsmt.base.kernels.decorator import kernel
from rnnsmt.base.kernels.strings import POW10, Interner, find, hash_bytes
from rnnsmt.base.kernels.table_lines import (
    FIELDS,
    MALFORMED,
    SOURCE,
    check_phrase_line,
    check_reordering_line,
    split_line,
)
from rnnsmt.base.parallel import Writer, atomic_blocks
from rnnsmt.base.progress import Meter
from rnnsmt.base.reading import check_tokenised, read_byte_lines
from rnnsmt.formats.phrase_table import read_table_blocks, refuse_line


def input_phrases(paths: Iterable[str], max_length: int) -> set[bytes]:
    """Return all sequences of 1 to ``max_length`` consecutive words in the lines of the texts."""
    phrases: set[bytes] = set()
    for path in paths:
        for number, line in enumerate(read_byte_lines(path)):
            check_tokenised(line, path, number)
            words = [word for word in line.split(b" ") if word]
            for begin in range(len(words)):
                for end in range(begin + 1, min(begin + max_length, len(words)) + 1):
                    phrases.add(b" ".join(words[begin:end]))
    return phrases


def filter_tables(
    inputs: list[str],
    phrase_table: str,
    reordering_table: str,
    output_dir: str,
    max_length: int = 7,
) -> dict[str, object]:
    """Write the lines of both tables whose source phrase occurs in the inputs to files with the same names.

    Lines that are kept are checked completely; all other lines are checked for three fields and two non-empty phrases.

    Args:
        inputs: input texts.
        phrase_table, reordering_table: the tables.
        output_dir: directory for the filtered tables.
        max_length: maximum number of words of a source phrase in the tables.

    Returns:
        The statistics of the stage.
    """
    paths = Path(phrase_table), Path(reordering_table)
    outputs = Path(output_dir) / paths[0].name, Path(output_dir) / paths[1].name
    if outputs[0] == outputs[1]:
        raise InputError(f"{phrase_table} and {reordering_table} have the same name; rename one of them")
    for path in paths:
        if path.exists() and any(output.exists() and output.samefile(path) for output in outputs):
            raise InputError(f"--output-dir {output_dir}: is the directory of {path.name}; choose another directory")
    phrases = input_phrases(inputs, max_length)
    if not phrases:
        raise InputError(f"{inputs[0]}: the input contains no words")
    interner = Interner()
    interner.add(list(phrases))
    figures: dict[str, object] = {"phrases of the input": len(phrases)}
    with ExitStack() as stack:
        phrase_out, reordering_out = [stack.enter_context(atomic_blocks(path)) for path in outputs]
        lines, n_kept = _filter(paths[0], phrase_out, interner, reordering=False)
        figures |= {"phrase lines": lines, "phrase lines kept": n_kept}
        lines, n_kept = _filter(paths[1], reordering_out, interner, reordering=True)
        figures |= {"reordering lines": lines, "reordering lines kept": n_kept}
    return figures


def _filter(path: Path, out: Writer, phrases: Interner, reordering: bool) -> tuple[int, int]:
    """Copy the lines whose source phrase is in ``phrases``; return the number of lines and the number of kept lines."""
    meter = Meter(f"filtering {path.name}")
    lines, total_kept, n_scores = 0, 0, 0
    for block in read_table_blocks(path):
        text, buffer = np.frombuffer(block, np.uint8), np.empty(len(block), np.uint8)
        count = block.count(b"\n")
        filled, n_kept, n_scores, bad = keep_lines(text, phrases.table, reordering, POW10, n_scores, buffer)
        if bad >= 0:
            line = block.split(b"\n")[bad]
            refuse_line(line, path, lines + bad + 1, n_scores or None, reordering=reordering)
        out.write(buffer[:filled].data)
        total_kept += n_kept
        lines += count
        meter.add(count)
    if not lines:
        raise InputError(f"{path}: the table is empty; create it again")
    return lines, total_kept


@kernel()
def keep_lines(block: Any, phrases: Any, reordering: bool, pow10: Any, expected: Any, out: Any) -> Any:
    """Copy the lines whose source phrase is in ``phrases``.

    Args:
        block: uint8, lines with their newlines.
        phrases: source phrases, ``rnnsmt.base.kernels.strings.InternTable``.
        reordering: whether these are lines of a reordering table.
        pow10: ``rnnsmt.base.kernels.strings.POW10``.
        expected: required number of scores per line, or 0 if all kept lines must have as many as the first kept line.
        out: uint8 [size of the block], filled.

    Returns:
        Number of bytes written, number of lines kept, number of scores per line, and the index of the first malformed
        line, or -1. Lines that are not kept are checked only for three fields and two non-empty phrases.
    """
    bounds, nothing = np.empty((FIELDS, 2), np.int64), np.empty(0)
    begin, line, at, n_kept = 0, 0, 0, 0
    while begin < block.size:
        end = begin
        while block[end] != 10:
            end += 1
        fields = split_line(block, begin, end, bounds)
        if fields == MALFORMED:
            return at, n_kept, expected, line
        left, right = bounds[SOURCE, 0], bounds[SOURCE, 1]
        if find(phrases, block, left, right, hash_bytes(block, left, right)) >= 0:
            if reordering:
                count = check_reordering_line(block, bounds, pow10, nothing)
            else:
                count = check_phrase_line(block, bounds, fields, pow10, nothing, nothing)
            if expected == 0 and count > 0:
                expected = count
            if count != expected or count == MALFORMED:
                return at, n_kept, expected, line
            for position in range(begin, end + 1):
                out[at] = block[position]
                at += 1
            n_kept += 1
        begin = end + 1
        line += 1
    return at, n_kept, expected, -1
