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
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TextIO

from rnnsmt.corpus.cleaning import RATIO, Cleaner, Options, RejectedLineError
from rnnsmt.corpus.reading import LINE_BYTES, read_pairs, read_segments
from rnnsmt.corpus.workers import map_chunks
from rnnsmt.io import InputError, atomic_text, write_json
from rnnsmt.progress import Meter

SAMPLES = 20
"""Line numbers per reason in the report."""

Segments = tuple[bytes | None, ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The stage's options."""
    add = parser.add_argument
    add("--source", metavar="FILE", help="source side; leave out for monolingual target text")
    add("--target", metavar="FILE", help="target side; leave out for monolingual source text")
    add("--source-lang", default="en", metavar="L", help="two letters")
    add("--target-lang", default="fr", metavar="L", help="two letters")
    add("--output-source", metavar="FILE")
    add("--output-target", metavar="FILE")
    add("--report", required=True, metavar="JSON", help="counts of lines, tokens, rejected and repaired lines")
    add("--no-normalize", action="store_true", help="leave punctuation as it is")
    add("--no-tokenize", action="store_true", help="the text is tokenised already")
    add("--no-escape", action="store_true", help="no entities for & | < > ' \" [ ]")
    add("--lowercase", action="store_true", help="lower-case everything")
    add("--min-length", type=int, default=1, metavar="N", help="tokens a side must have")
    add("--max-length", type=int, default=80, metavar="N", help="tokens a side may have")
    add("--max-ratio", type=float, default=9.0, metavar="R", help="of the two sides' lengths")
    add("--keep-all", action="store_true", help="dev and test sets: drop no line, repair what must be repaired")
    add("--threads", type=int, default=1, metavar="N", help="processes")


def run(args: argparse.Namespace) -> dict[str, object]:
    """Prepare one corpus."""
    inputs, outputs, langs = _sides(args)
    options = Options(
        normalize=not args.no_normalize,
        tokenize=not args.no_tokenize,
        escape=not args.no_escape,
        lowercase=args.lowercase,
        min_length=max(args.min_length, 1),
        max_length=args.max_length,
        max_ratio=args.max_ratio,
        keep_all=args.keep_all,
    )
    _check_options(options, langs)
    limit = None if options.keep_all else LINE_BYTES
    rows: Iterable[Segments] = (
        read_pairs(inputs[0], inputs[1], limit) if len(inputs) == 2 else ((s,) for s in read_segments(inputs[0], limit))
    )
    total = Tally([0] * len(inputs))
    with ExitStack() as stack:
        files = [stack.enter_context(atomic_text(path)) for path in outputs]
        meter = Meter("preparing")
        for texts, tally in map_chunks(partial(_chunk_function, langs, options), rows, args.threads):
            _write(files, texts)
            total.add(tally)
            meter.add(tally.lines)
        _check_not_empty(inputs, total)
    report = _report(inputs, total)
    write_json(args.report, report)
    figures: dict[str, object] = {"lines": total.lines, "kept": total.kept}
    figures |= {f"{lang} tokens": n for lang, n in zip(langs, total.tokens, strict=True)}
    figures |= {f"rejected ({reason})": n for reason, n in sorted(total.rejected.items())}
    return figures | {f"repaired ({reason})": n for reason, n in sorted(total.repaired.items())}


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


def _chunk_function(
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


def _check_options(options: Options, langs: list[str]) -> None:
    for lang in langs:
        if not re.fullmatch("[a-z]{2,3}", lang):
            raise InputError(f"--source-lang {lang} or --target-lang {lang}: a code of two letters is needed, like fr")
    if options.max_length < options.min_length:
        raise InputError("--max-length must not be below --min-length")
    if not 1 <= options.max_ratio < float("inf"):
        raise InputError(f"--max-ratio {options.max_ratio}: a number from 1 is needed")


def _check_not_empty(inputs: list[str], total: Tally) -> None:
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
