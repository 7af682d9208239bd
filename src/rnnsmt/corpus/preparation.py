"""Preparation of a corpus, monolingual or parallel: from raw files to clean tokens, with a report of all changes.

Normalisation and tokenisation follow Moses (normalize-punctuation.perl, tokenizer.perl), cleaning is that of
clean-corpus-n.perl. Rejected and repaired lines, and suspicious properties of lines that are kept, are counted by
reason.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from rnnsmt.base.errors import InputError
from rnnsmt.base.opening import open_binary, refuse_pipe, sha256
from rnnsmt.base.parallel import map_chunks
from rnnsmt.base.progress import Meter, warn
from rnnsmt.base.writing import atomic_text
from rnnsmt.config.sections import Preprocessing
from rnnsmt.corpus.bitext_files import RawCorpus
from rnnsmt.corpus.raw_text import (
    BAD_UTF8,
    EMPTY,
    LINE_BYTES,
    RATIO,
    TOO_LONG,
    Cleaner,
    RejectedLineError,
    Row,
    is_utf8,
)
from rnnsmt.corpus.sample import refuse_columns, sample_warnings
from rnnsmt.corpus.tokenizer import has_rules, tokenizer_version
from rnnsmt.plan.corpora import FEW_LINES

SAMPLES = 20
"""Number of line numbers per reason in the report."""

MAX_BAD_UTF8 = 0.03
"""Maximum share of lines that are not UTF-8; a file with more, and with more than three, is in another encoding."""

LONG_SEGMENT = 200
"""Number of words above which a dev or test segment is reported: decoding time grows with the length."""

MAX_SEGMENT = 4000
"""Maximum number of words of a segment in decoding, ``rnnsmt.search.source_text.MAX_WORDS``."""

NO_WORDS = "no words"
"""Reason: the segment has no words."""

LONG = f"more than {LONG_SEGMENT} words"
"""Reason: the segment is longer than ``LONG_SEGMENT``."""


@dataclass
class LineCounts:
    """Number of lines by reason or by number of the side, and the line numbers of the first ones."""

    lines: Counter[Any] = field(default_factory=Counter)
    first: dict[Any, list[int]] = field(default_factory=dict)

    def add(self, reason: str | int, line: int) -> None:
        """Count a line."""
        self.lines[reason] += 1
        self._sample(reason, [line])

    def join(self, later: "LineCounts", offset: int) -> None:
        """Add the counts of subsequent lines, whose numbers are relative to ``offset``."""
        for reason, numbers in later.first.items():
            self._sample(reason, [offset + number for number in numbers])
        self.lines += later.lines

    def _sample(self, reason: str | int, numbers: list[int]) -> None:
        samples = self.first.setdefault(reason, [])
        samples.extend(numbers[: SAMPLES - len(samples)])

    def as_dict(self) -> dict[str, object]:
        """Return the counts for the report: ``{reason: {"lines": ..., "first": [...]}}``."""
        return {reason: {"lines": n, "first": self.first[reason]} for reason, n in sorted(self.lines.items())}

    def reasons(self) -> str:
        """Return every reason with its number of lines."""
        return ", ".join(f"{reason}: {n:,}" for reason, n in sorted(self.lines.items()))

    def __str__(self) -> str:
        return f"{self.lines.total():,} ({self.reasons()})" if self.lines else "none"


@dataclass
class Tally:
    """Counts over a sequence of lines; line numbers are 1-based and relative to the sequence.

    Attributes:
        tokens: number of tokens of the kept lines by side.
        rejected: rejected lines by reason.
        repaired: repaired lines by reason; a line may have several reasons.
        suspicious: lines of dev and test sets, all of which are kept, with properties that cause a warning.
        bad_utf8: lines that are not UTF-8 by side.
        too_long: segments of more than ``MAX_SEGMENT`` words by side.
    """

    tokens: list[int]
    lines: int = 0
    kept: int = 0
    rejected: LineCounts = field(default_factory=LineCounts)
    repaired: LineCounts = field(default_factory=LineCounts)
    suspicious: LineCounts = field(default_factory=LineCounts)
    bad_utf8: LineCounts = field(default_factory=LineCounts)
    too_long: LineCounts = field(default_factory=LineCounts)

    def count_bad_utf8(self, row: Row) -> None:
        """Count the sides of the current line that are not UTF-8."""
        for side, raw in enumerate(row):
            if raw is not None and not is_utf8(raw):
                self.bad_utf8.add(side, self.lines)

    def count_suspicious(self, lengths: Sequence[int]) -> None:
        """Count suspicious properties of the current line of a dev or test set.

        Args:
            lengths: number of tokens on each side.
        """
        if min(lengths) == 0:
            self.suspicious.add(NO_WORDS, self.lines)
        if max(lengths) > LONG_SEGMENT:
            self.suspicious.add(LONG, self.lines)
        for side, length in enumerate(lengths):
            if length > MAX_SEGMENT:
                self.too_long.add(side, self.lines)

    def add(self, later: "Tally") -> None:
        """Add the tally of the subsequent lines."""
        for name in ("rejected", "repaired", "suspicious", "bad_utf8", "too_long"):
            getattr(self, name).join(getattr(later, name), self.lines)
        self.tokens = [a + b for a, b in zip(self.tokens, later.tokens, strict=True)]
        self.lines += later.lines
        self.kept += later.kept


def prepare_corpus(
    corpus: RawCorpus,
    outputs: Sequence[str],
    options: Preprocessing,
    keep_all: bool,
    *,
    threads: int,
    min_lines: int,
    check: bool,
) -> "Prepared":
    """Write the tokens of a corpus with one or two sides, in several processes.

    Args:
        outputs: tokenised file of each side.
        keep_all: keep every line, repaired if necessary, as for test sets.
        threads: number of processes.
        min_lines: minimum number of kept lines with words.
        check: whether the languages and the first lines are checked (``sample_warnings``).
    """
    for lang in corpus.langs:
        if options.tokenize and not has_rules(lang):
            warn(f"the tokeniser has no rules for the language {lang}; generic rules are used")
    inputs = [_properties(path, shown) for path, shown in zip(corpus.paths, corpus.shown or corpus.paths, strict=True)]
    if not corpus.is_one_file:
        for path in corpus.paths:
            refuse_columns(path)
    of_sample = list(sample_warnings(corpus, options.tokenize)) if check else []
    total = Tally([0] * len(corpus.langs))
    with ExitStack() as stack:
        files = [stack.enter_context(atomic_text(output)) for output in outputs]
        meter = Meter("preparing")
        cleaner = partial(_chunk_cleaner, corpus.langs, options, keep_all)
        rows = corpus.rows(None if keep_all else LINE_BYTES)
        for texts, tally in map_chunks(cleaner, rows, threads):
            _write_lines(files, texts)
            total.add(tally)
            meter.add(tally.lines)
        _check_total(corpus.names, total, min_lines)
    versions = {lang: tokenizer_version(lang) for lang in corpus.langs} if options.tokenize else {}
    prepared = Prepared(corpus, inputs, total, versions)
    for warning in (*prepared.warnings(keep_all), *of_sample):
        warn(warning)
    return prepared


def _properties(path: str, shown: str) -> dict[str, object]:
    refuse_pipe(path)
    open_binary(path).close()  # raises InputError if the file cannot be opened
    return {"path": shown, "bytes": Path(path).stat().st_size, "sha256": sha256(path)}


def _chunk_cleaner(
    langs: Sequence[str], options: Preprocessing, keep_all: bool
) -> Callable[[tuple[Row, ...]], tuple[list[list[str]], Tally]]:
    """Return the function that is run in the worker processes."""
    return partial(_clean_chunk, [Cleaner(lang, options, keep_all) for lang in langs])


def _clean_chunk(cleaners: list[Cleaner], rows: tuple[Row, ...]) -> tuple[list[list[str]], Tally]:
    """Clean a chunk of lines; return the kept lines of each side and the tally."""
    texts: list[list[str]] = [[] for _ in cleaners]
    tally = Tally([0] * len(cleaners))
    keep_all = cleaners[0].keep_all
    for row in rows:
        tally.lines += 1
        repaired: set[str] = set()
        try:
            line = [cleaner(raw, repaired) for cleaner, raw in zip(cleaners, row, strict=True)]
            lengths = [text.count(" ") + 1 if text else 0 for text in line]
            if not keep_all:
                _check_lengths(lengths, cleaners[0].options)
        except RejectedLineError as rejection:
            tally.rejected.add(str(rejection), tally.lines)
            if str(rejection) == BAD_UTF8:
                tally.count_bad_utf8(row)
            continue
        tally.kept += 1
        for reason in sorted(repaired):
            tally.repaired.add(reason, tally.lines)
        if BAD_UTF8 in repaired:
            tally.count_bad_utf8(row)
        if keep_all:
            tally.count_suspicious(lengths)
        for side, text in enumerate(line):
            texts[side].append(text)
            tally.tokens[side] += lengths[side]
    return texts, tally


def _check_lengths(lengths: Sequence[int], options: Preprocessing) -> None:
    """Reject a line if a side is empty or too long, or if the length ratio is too high."""
    for length in lengths:
        if length == 0:
            raise RejectedLineError(EMPTY)
        if length > options.max_length:
            raise RejectedLineError(TOO_LONG)
    if max(lengths) > options.max_ratio * min(lengths):
        raise RejectedLineError(RATIO)


def _write_lines(files: list[TextIO], texts: list[list[str]]) -> None:
    for file, lines in zip(files, texts, strict=True):
        if lines:
            file.write("\n".join(lines) + "\n")


def _check_total(inputs: Sequence[str], total: Tally, min_lines: int) -> None:
    names = " and ".join(inputs)
    if total.lines == 0:
        raise InputError(f"{names}: the corpus is empty")
    for side, count in sorted(total.bad_utf8.lines.items()):
        if count > max(MAX_BAD_UTF8 * total.lines, 3):
            raise InputError(
                f"{inputs[side]}: {count:,} of {total.lines:,} lines ({100 * count / total.lines:.0f} %) are not valid "
                f"UTF-8 (first: line {total.bad_utf8.first[side][0]}); convert the file, for example from Latin-1 with "
                "`iconv -f ISO-8859-1 -t UTF-8`"
            )
    if total.kept == 0:
        raise InputError(
            f"{names}: none of {total.lines} lines remains after cleaning ({total.rejected.reasons()}); check the file"
        )
    for side, (line, *_) in sorted(total.too_long.first.items()):
        raise InputError(
            f"{inputs[side]}, line {line}: more than {MAX_SEGMENT} words, which is more than the decoder supports; "
            "split it into sentences"
        )
    with_words = total.kept - total.suspicious.lines[NO_WORDS]
    if with_words < min_lines:
        raise InputError(
            f"{names}: {with_words} of {total.lines} lines contain words, but at least {min_lines} are required; "
            "check the file, or use a larger set"
        )


@dataclass(frozen=True)
class Prepared:
    """Result of the preparation of a corpus.

    Attributes:
        inputs: path, bytes and SHA-256 of the raw files.
        tokenizer: version of the tokeniser by language; empty if the text was not tokenised.
        texts: the tokenised lines of each side, if they were not written to files.
    """

    corpus: RawCorpus
    inputs: Sequence[dict[str, object]]
    total: Tally
    tokenizer: Mapping[str, str]
    texts: tuple[list[str], ...] = ()

    def report(self) -> dict[str, object]:
        """Return the report for JSON: raw files, and numbers of lines by outcome and reason."""
        total = self.total
        return {
            "inputs": self.inputs,
            "tokenizer": self.tokenizer,
            "lines": total.lines,
            "kept": total.kept,
            "tokens": total.tokens,
            "rejected": total.rejected.as_dict(),
            "repaired": total.repaired.as_dict(),
            "suspicious": total.suspicious.as_dict(),
        }

    @property
    def figures(self) -> dict[str, object]:
        """Return the figures for the last line of the log: kept, rejected and repaired lines, and tokens."""
        total = self.total
        names = " and ".join(Path(name).name for name in self.corpus.names)
        figures: dict[str, object] = {
            f"{names}: kept": f"{total.kept:,} of {total.lines:,} lines",
            "rejected": str(total.rejected),
            "repaired": str(total.repaired),
        }
        return figures | {f"{lang} tokens": n for lang, n in zip(self.corpus.langs, total.tokens, strict=True)}

    def warnings(self, keep_all: bool) -> Iterator[str]:
        """Yield warnings about accepted lines that should be inspected."""
        total, names = self.total, " and ".join(self.corpus.names)
        for side, count in sorted(total.bad_utf8.lines.items()):
            yield (
                f"{self.corpus.names[side]}: {count:,} of {total.lines:,} lines are not UTF-8, the first is line "
                f"{total.bad_utf8.first[side][0]}; they were {'repaired' if keep_all else 'rejected'}"
            )
        for reason, count in sorted(total.suspicious.lines.items()):
            yield f"{names}: lines with {reason}: {count:,}, the first is line {total.suspicious.first[reason][0]}"
        if keep_all and total.lines < FEW_LINES:
            yield f"{names}: {total.lines} lines are a small dev or test set; its scores are unreliable"
