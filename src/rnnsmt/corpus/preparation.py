"""Read, repair, normalise, tokenise and clean one corpus, of one language or parallel.

Reads text with one segment a line or WMT .sgm files, plain, .gz, .bz2 or .xz. Normalising and tokenising are those of
Moses (normalize-punctuation.perl, tokenizer.perl), cleaning is that of clean-corpus-n.perl: a pair is dropped where
a side is empty, longer than --max-length or more than --max-ratio times as long as the other. Every dropped and every
repaired line is counted by its reason in the report. With --no-normalize --no-tokenize released corpora pass as they
are, apart from whitespace. Text for real Moses must not contain a bare "|": leave --no-escape out.
"""

import argparse
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TextIO

from rnnsmt.corpus.cleaning import RATIO, Cleaner, Options, RejectedLineError
from rnnsmt.io import InputError

SAMPLES = 20
"""Line numbers per reason in the report."""

Segments = tuple[bytes | None, ...]


@dataclass
class Tally:
    """Counts over lines; line numbers count from 1 within what was tallied."""

    tokens: list[int]
    lines: int = 0
    kept: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    repaired: Counter[str] = field(default_factory=Counter)
    rejected_lines: dict[str, list[int]] = field(default_factory=dict)
    repaired_lines: dict[str, list[int]] = field(default_factory=dict)

    def reject(self, reason: str) -> None:
        """Count the current line as rejected."""
        self.rejected[reason] += 1
        _sample(self.rejected_lines, reason, [self.lines])

    def repair(self, reason: str) -> None:
        """Count the current line as repaired."""
        self.repaired[reason] += 1
        _sample(self.repaired_lines, reason, [self.lines])

    def add(self, later: "Tally") -> None:
        """Add the tally of the lines that follow."""
        for mine, theirs in (
            (self.rejected_lines, later.rejected_lines),
            (self.repaired_lines, later.repaired_lines),
        ):
            for reason, numbers in theirs.items():
                _sample(mine, reason, [self.lines + number for number in numbers])
        self.tokens = [a + b for a, b in zip(self.tokens, later.tokens, strict=True)]
        self.lines += later.lines
        self.kept += later.kept
        self.rejected += later.rejected
        self.repaired += later.repaired


def _sample(samples: dict[str, list[int]], reason: str, numbers: list[int]) -> None:
    kept = samples.setdefault(reason, [])
    kept.extend(numbers[: SAMPLES - len(kept)])


def chunk_function(
    langs: list[str], options: Options
) -> Callable[[tuple[Segments, ...]], tuple[list[list[str]], Tally]]:
    """Make the function that the processes run."""
    return partial(_prepare_chunk, [Cleaner(lang, options) for lang in langs])


def _prepare_chunk(cleaners: list[Cleaner], rows: tuple[Segments, ...]) -> tuple[list[list[str]], Tally]:
    texts: list[list[str]] = [[] for _ in cleaners]
    tally = Tally([0] * len(cleaners))
    for row in rows:
        tally.lines += 1
        repaired: set[str] = set()
        try:
            line = [cleaner(raw, repaired) for cleaner, raw in zip(cleaners, row, strict=True)]
            lengths = _check_lengths(cleaners, line)
        except RejectedLineError as rejection:
            tally.reject(str(rejection))
            continue
        tally.kept += 1
        for reason in sorted(repaired):
            tally.repair(reason)
        for side, text in enumerate(line):
            texts[side].append(text)
            tally.tokens[side] += lengths[side]
    return texts, tally


def _check_lengths(cleaners: list[Cleaner], line: list[str]) -> list[int]:
    lengths = [text.count(" ") + 1 if text else 0 for text in line]
    for cleaner, length in zip(cleaners, lengths, strict=True):
        cleaner.check_length(length)
    options = cleaners[0].options
    if not options.keep_all and max(lengths) > options.max_ratio * min(lengths):
        raise RejectedLineError(RATIO)
    return lengths


def _write(files: list[TextIO], texts: list[list[str]]) -> None:
    for file, lines in zip(files, texts, strict=True):
        if lines:
            file.write("\n".join(lines) + "\n")


def _sides(args: argparse.Namespace) -> tuple[list[str], list[str], list[str]]:
    """Input files, output files and languages of the sides that are given."""
    sides = []
    for side, path, output, lang in (
        ("source", args.source, args.output_source, args.source_lang),
        ("target", args.target, args.output_target, args.target_lang),
    ):
        if (path is None) != (output is None):
            raise InputError(f"--{side} and --output-{side} belong together: give both or neither")
        if path is not None:
            sides.append((path, output, lang))
    if not sides:
        raise InputError("no input: give --source, --target or both, each with its --output")
    inputs, outputs, langs = ([side[i] for side in sides] for i in range(3))
    written = [Path(path).resolve() for path in [*outputs, args.report]]
    read = [Path(path).resolve() for path in inputs]
    if len({*written, *read}) < len(written) + len(set(read)):
        raise InputError("an output is also another output or an input: give every output its own name")
    return inputs, outputs, langs


def check_options(options: Options, langs: list[str]) -> None:
    for lang in langs:
        if not re.fullmatch("[a-z]{2,3}", lang):
            raise InputError(f"--source-lang {lang} or --target-lang {lang}: a code of two letters is needed, like fr")
    if options.max_length < options.min_length:
        raise InputError("--max-length must not be below --min-length")
    if not 1 <= options.max_ratio < float("inf"):
        raise InputError(f"--max-ratio {options.max_ratio}: a number from 1 is needed")


def check_not_empty(inputs: list[str], total: Tally) -> None:
    names = " and ".join(inputs)
    if total.lines == 0:
        raise InputError(f"{names}: empty; a corpus needs at least one line")
    if total.kept == 0:
        reasons = ", ".join(f"{reason}: {count}" for reason, count in sorted(total.rejected.items()))
        raise InputError(f"{names}: none of {total.lines} lines is left after cleaning ({reasons}); look at the file")


def _report(inputs: list[str], total: Tally) -> dict[str, object]:
    def counts(counter: Counter[str], samples: dict[str, list[int]]) -> Iterator[tuple[str, object]]:
        for reason, count in sorted(counter.items()):
            yield reason, {"lines": count, "first": samples[reason]}

    return {
        "inputs": inputs,
        "lines": total.lines,
        "kept": total.kept,
        "tokens": total.tokens,
        "rejected": dict(counts(total.rejected, total.rejected_lines)),
        "repaired": dict(counts(total.repaired, total.repaired_lines)),
    }
