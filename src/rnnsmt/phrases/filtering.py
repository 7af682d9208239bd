"""Filtering tables for given input texts."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rnnsmt.io import InputError, atomic_path, check_utf8, read_byte_lines, read_line_blocks
from rnnsmt.kernels.strings import POW10, Interner
from rnnsmt.parallel_gzip import Writer, atomic_blocks
from rnnsmt.phrases.aligned_text import split_words
from rnnsmt.phrases.kernels.filtering import keep_lines
from rnnsmt.phrases.table import refuse_line, rewritten_tables
from rnnsmt.progress import Meter


def input_phrases(paths: Iterable[str], max_length: int) -> set[bytes]:
    """Every sequence of 1 to ``max_length`` words that occurs in a line of the texts."""
    phrases: set[bytes] = set()
    for path in paths:
        for line in read_byte_lines(path):
            words = split_words(line)
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
    output_lines: str | None = None,
) -> dict[str, object]:
    """Write both tables' lines whose source phrase occurs in the inputs into ``output_dir``, under the same names.

    Args:
        inputs, phrase_table, reordering_table, output_dir: files and the folder.
        max_length: words of the longest source phrase in the tables.
        output_lines: a file for the numbers of the phrase table's kept lines, from 0, and, as the last one, how many
            lines it has (``.npy``, int64).

    Kept lines are checked as ``rnnsmt.phrases.table`` does, the others only for three fields and both phrases.

    Raises:
        InputError: a missing or malformed table, no words in the inputs, or a table that would overwrite itself.
    """
    paths = Path(phrase_table), Path(reordering_table)
    outputs = rewritten_tables(phrase_table, reordering_table, output_dir)
    phrases = input_phrases(inputs, max_length)
    if not phrases:
        raise InputError(f"{inputs[0]}: no words in the input; nothing to filter for")
    wanted = Interner()
    wanted.add(list(phrases))
    figures: dict[str, object] = {"phrases of the input": len(phrases)}
    with atomic_blocks(outputs[0]) as phrase_out, atomic_blocks(outputs[1]) as reordering_out:
        kept, lines = _filter(paths[0], phrase_out, wanted, reordering=False)
        figures |= {"phrase lines": lines, "phrase lines kept": len(kept)}
        kept_reordering, reordering_lines = _filter(paths[1], reordering_out, wanted, reordering=True)
        figures |= {"reordering lines": reordering_lines, "reordering lines kept": len(kept_reordering)}
    if output_lines is not None:
        with atomic_path(output_lines) as temporary, temporary.open("wb") as out:
            np.save(out, np.append(kept, lines))
    return figures


def _filter(path: Path, out: Writer, phrases: Interner, reordering: bool) -> tuple[NDArray[np.int64], int]:
    """Copy the lines whose source phrase is among ``phrases``; return their numbers, and how many lines there were."""
    meter = Meter(f"filtering {path.name}")
    lines, n_scores = 0, 0
    kept = [np.empty(0, np.int64)]
    for block in read_line_blocks(path):
        check_utf8(block, path, lines)
        text, buffer = np.frombuffer(block, np.uint8), np.empty(len(block), np.uint8)
        count = block.count(b"\n")
        numbers = np.empty(count, np.int64)
        filled, found, n_scores, bad = keep_lines(text, phrases.table, reordering, POW10, n_scores, buffer, numbers)
        if bad >= 0:
            line = block.split(b"\n")[bad]
            refuse_line(line, path, lines + bad + 1, n_scores or None, reordering=reordering)
        out.write(buffer[:filled].data)
        kept.append(lines + numbers[:found])
        lines += count
        meter.add(count)
    if not lines:
        raise InputError(f"{path}: the table is empty; make it again")
    return np.concatenate(kept), lines
