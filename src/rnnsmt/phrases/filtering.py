"""Filtering tables for given input texts."""

from collections.abc import Callable, Iterable
from pathlib import Path

from rnnsmt.io import InputError, read_byte_lines, read_line_blocks
from rnnsmt.parallel_gzip import Writer, atomic_blocks
from rnnsmt.phrases.bitext import split_words
from rnnsmt.phrases.table import parse_phrase_line, parse_reordering_line
from rnnsmt.progress import Meter

Check = Callable[[bytes, Path, int, int | None], int]
"""Checks a line of a table with a given number of scores, and returns that number."""


def _check_phrase_line(line: bytes, path: Path, number: int, n_scores: int | None) -> int:
    return len(parse_phrase_line(line, path, number, n_scores).scores)


def _check_reordering_line(line: bytes, path: Path, number: int, n_scores: int | None) -> int:
    return len(parse_reordering_line(line, path, number, n_scores).probabilities)


_CHECKS: tuple[Check, Check] = (_check_phrase_line, _check_reordering_line)


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
    inputs: list[str], phrase_table: str, reordering_table: str, output_dir: str, max_length: int = 7
) -> dict[str, object]:
    """Write both tables' lines whose source phrase occurs in the inputs into ``output_dir``, under the same names.

    Kept lines are checked as ``rnnsmt.phrases.table`` does, the others only for a source phrase.

    Raises:
        InputError: a missing or malformed table, no words in the inputs, or a table that would overwrite itself.
    """
    paths = Path(phrase_table), Path(reordering_table)
    outputs = [Path(output_dir) / path.name for path in paths]
    if outputs[0] == outputs[1]:
        raise InputError(f"{phrase_table} and {reordering_table} have the same name; their outputs would be one file")
    for path, output in zip(paths, outputs, strict=True):
        if output.exists() and path.exists() and output.samefile(path):
            raise InputError(f"--output-dir {output_dir}: holds {path.name} itself; choose another folder")
    phrases = input_phrases(inputs, max_length)
    if not phrases:
        raise InputError(f"{inputs[0]}: no words in the input; nothing to filter for")
    figures: dict[str, object] = {"phrases of the input": len(phrases)}
    with atomic_blocks(outputs[0]) as phrase_out, atomic_blocks(outputs[1]) as reordering_out:
        writers = phrase_out, reordering_out
        for name, path, out, check in zip(("phrase", "reordering"), paths, writers, _CHECKS, strict=True):
            lines, kept = _filter(path, out, phrases, check)
            figures |= {f"{name} lines": lines, f"{name} lines kept": kept}
    return figures


def _filter(path: Path, out: Writer, phrases: set[bytes], check: Check) -> tuple[int, int]:
    """Copy the lines whose source phrase is among ``phrases``; return how many there were and were kept."""
    meter = Meter(f"filtering {path.name}")
    kept, before = 0, 0
    n_scores: int | None = None
    for block in read_line_blocks(path):
        lines = block.split(b"\n")
        lines.pop()
        try:
            found = [(n, line) for n, line in enumerate(lines) if line[: line.index(b" ||| ")] in phrases]
        except ValueError:
            bad = next(n for n, line in enumerate(lines, before + 1) if b" ||| " not in line)
            raise InputError(f"{path}, line {bad}: no ' ||| ' in the line; is this the table?") from None
        for n, line in found:
            n_scores = check(line, path, before + n + 1, n_scores)
            out.write(line + b"\n")
        kept += len(found)
        before += len(lines)
        meter.add(len(lines))
    if not before:
        raise InputError(f"{path}: the table is empty; make it again")
    return before, kept
