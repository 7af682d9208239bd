"""From the raw files of a corpus, of one language or parallel, to clean tokens, and the report of what became of them.

Normalising and tokenising are those of Moses (normalize-punctuation.perl, tokenizer.perl), cleaning is that of
clean-corpus-n.perl. Every dropped and every repaired line is counted by its reason, and so is what is suspicious
in lines that are kept.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TextIO

from rnnsmt.corpus.cleaning import BAD_UTF8, RATIO, Cleaner, CleaningOptions, RejectedLineError, is_utf8
from rnnsmt.corpus.reading import LINE_BYTES, read_pairs, read_segments
from rnnsmt.corpus.tokenizer import has_rules
from rnnsmt.io import InputError, atomic_text, open_binary, sha256
from rnnsmt.parallel import map_chunks
from rnnsmt.progress import Meter, say

SAMPLES = 20
"""Line numbers per reason in the report."""

MAX_BAD_UTF8 = 0.03
"""A file with a larger share of lines that are not UTF-8, and more than three of them, is in another encoding."""

LONG_SEGMENT = 200
"""Words of a dev or test segment that are worth a warning: the decoder's time grows with them."""

MAX_SEGMENT = 4000
"""Words that the decoder translates at most, ``rnnsmt.search.source_text.MAX_WORDS``."""

FEW_LINES = 100
"""Dev or test sets with fewer lines are worth a warning."""

NO_WORDS = "no words"

LONG = f"more than {LONG_SEGMENT} words"

Segments = tuple[bytes | None, ...]


@dataclass(frozen=True)
class CorpusSide:
    """One language of a corpus: the raw file, the file of tokens, the language's code."""

    input: str
    output: str
    lang: str


@dataclass
class LineCounts:
    """How many lines there are by reason, and the numbers of the first of them."""

    lines: Counter[str] = field(default_factory=Counter)
    first: dict[str, list[int]] = field(default_factory=dict)

    def add(self, reason: str, line: int) -> None:
        """Count a line."""
        self.lines[reason] += 1
        self._sample(reason, [line])

    def join(self, later: "LineCounts", offset: int) -> None:
        """Add the counts of later lines, whose numbers begin after ``offset``."""
        for reason, numbers in later.first.items():
            self._sample(reason, [offset + number for number in numbers])
        self.lines += later.lines

    def _sample(self, reason: str, numbers: list[int]) -> None:
        kept = self.first.setdefault(reason, [])
        kept.extend(numbers[: SAMPLES - len(kept)])

    def as_dict(self) -> dict[str, object]:
        """For the report: ``{reason: {"lines": ..., "first": [...]}}``."""
        return {reason: {"lines": n, "first": self.first[reason]} for reason, n in sorted(self.lines.items())}

    def reasons(self) -> str:
        """Every reason and its number of lines."""
        return ", ".join(f"{reason}: {n:,}" for reason, n in sorted(self.lines.items()))

    def __str__(self) -> str:
        return f"{self.lines.total():,} ({self.reasons()})" if self.lines else "none"


@dataclass
class Tally:
    """Counts over lines; line numbers count from 1 within what was tallied.

    Attributes:
        tokens: of the kept lines, by side.
        rejected, repaired: lines by reason; a line may be repaired for several.
        suspicious: what is worth a warning in lines that are kept whole (dev and test sets).
        bad_utf8: lines that are not UTF-8, by side: their number and the first.
        too_long: the first segment of more than ``MAX_SEGMENT`` words, by side: its line; 0: there is none.
    """

    tokens: list[int]
    bad_utf8: list[tuple[int, int]]
    too_long: list[int]
    lines: int = 0
    kept: int = 0
    rejected: LineCounts = field(default_factory=LineCounts)
    repaired: LineCounts = field(default_factory=LineCounts)
    suspicious: LineCounts = field(default_factory=LineCounts)

    @classmethod
    def of(cls, sides: int) -> "Tally":
        """Of no lines yet."""
        return cls([0] * sides, [(0, 0)] * sides, [0] * sides)

    def count_bad_utf8(self, row: Segments) -> None:
        """See which sides of the current line are not UTF-8."""
        for side, raw in enumerate(row):
            if raw is not None and not is_utf8(raw):
                count, first = self.bad_utf8[side]
                self.bad_utf8[side] = (count + 1, first or self.lines)

    def count_suspicious(self, lengths: Sequence[int]) -> None:
        """See what is suspicious about the current line of a dev or test set with these numbers of tokens."""
        if min(lengths) == 0:
            self.suspicious.add(NO_WORDS, self.lines)
        if max(lengths) > LONG_SEGMENT:
            self.suspicious.add(LONG, self.lines)
        for side, length in enumerate(lengths):
            if length > MAX_SEGMENT:
                self.too_long[side] = self.too_long[side] or self.lines

    def add(self, later: "Tally") -> None:
        """Add the tally of the lines that follow."""
        before = self.lines
        self.rejected.join(later.rejected, before)
        self.repaired.join(later.repaired, before)
        self.suspicious.join(later.suspicious, before)
        self.tokens = [a + b for a, b in zip(self.tokens, later.tokens, strict=True)]
        self.bad_utf8 = [
            (n + m, first or (before + after if after else 0))
            for (n, first), (m, after) in zip(self.bad_utf8, later.bad_utf8, strict=True)
        ]
        self.too_long = [
            line or (before + after if after else 0) for line, after in zip(self.too_long, later.too_long, strict=True)
        ]
        self.lines += later.lines
        self.kept += later.kept


def prepare_corpus(
    sides: Sequence[CorpusSide], options: CleaningOptions, threads: int, min_lines: int = 1
) -> "Prepared":
    """Write the tokens of a corpus of one or two sides, in several processes.

    Raises:
        InputError: as ``read_pairs``; a file is in another encoding, changed meanwhile or is no dev or test set;
            fewer than ``min_lines`` lines with words are left. No output is written then.
    """
    for side in sides:
        if options.tokenize and not has_rules(side.lang):
            say(f"warning: the tokeniser has no rules of its own for the language {side.lang}; it takes generic ones")
    inputs = [InputFile.look_at(side.input) for side in sides]
    limit = None if options.keep_all else LINE_BYTES
    rows: Iterable[Segments] = (
        read_pairs(sides[0].input, sides[1].input, limit)
        if len(sides) == 2
        else ((segment,) for segment in read_segments(sides[0].input, limit))
    )
    total = Tally.of(len(sides))
    with ExitStack() as stack:
        files = [stack.enter_context(atomic_text(side.output)) for side in sides]
        meter = Meter("preparing")
        cleaner = partial(_chunk_cleaner, [side.lang for side in sides], options)
        for texts, tally in map_chunks(cleaner, rows, threads):
            _write_lines(files, texts)
            total.add(tally)
            meter.add(tally.lines)
        for file in inputs:
            file.check_unchanged()
        _check_total([side.input for side in sides], total, min_lines)
    prepared = Prepared(sides, inputs, total)
    for warning in prepared.warnings(options.keep_all):
        say(f"warning: {warning}")
    return prepared


def _chunk_cleaner(
    langs: list[str], options: CleaningOptions
) -> Callable[[tuple[Segments, ...]], tuple[list[list[str]], Tally]]:
    """Make the function that the processes run."""
    return partial(_clean_chunk, [Cleaner(lang, options) for lang in langs])


def _clean_chunk(cleaners: list[Cleaner], rows: tuple[Segments, ...]) -> tuple[list[list[str]], Tally]:
    texts: list[list[str]] = [[] for _ in cleaners]
    tally = Tally.of(len(cleaners))
    keep_all = cleaners[0].options.keep_all
    for row in rows:
        tally.lines += 1
        repaired: set[str] = set()
        try:
            line = [cleaner(raw, repaired) for cleaner, raw in zip(cleaners, row, strict=True)]
            lengths = _check_lengths(cleaners, line)
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


def _check_lengths(cleaners: list[Cleaner], line: list[str]) -> list[int]:
    lengths = [text.count(" ") + 1 if text else 0 for text in line]
    for cleaner, length in zip(cleaners, lengths, strict=True):
        cleaner.check_length(length)
    options = cleaners[0].options
    if not options.keep_all and max(lengths) > options.max_ratio * min(lengths):
        raise RejectedLineError(RATIO)
    return lengths


def _write_lines(files: list[TextIO], texts: list[list[str]]) -> None:
    for file, lines in zip(files, texts, strict=True):
        if lines:
            file.write("\n".join(lines) + "\n")


def _check_total(inputs: Sequence[str], total: Tally, min_lines: int) -> None:
    """Refuse a corpus by what was counted."""
    names = " and ".join(inputs)
    if total.lines == 0:
        raise InputError(f"{names}: empty; a corpus needs at least one line")
    for path, (count, first) in zip(inputs, total.bad_utf8, strict=True):
        if count > max(MAX_BAD_UTF8 * total.lines, 3):
            raise InputError(
                f"{path}: {count:,} of {total.lines:,} lines ({100 * count / total.lines:.0f} %) are not UTF-8, the "
                f"first is line {first}; convert the file, if it is Latin-1 with iconv -f ISO-8859-1 -t UTF-8"
            )
    if total.kept == 0:
        raise InputError(
            f"{names}: none of {total.lines} lines is left after cleaning ({total.rejected.reasons()}); look at it"
        )
    for path, line in zip(inputs, total.too_long, strict=True):
        if line:
            raise InputError(
                f"{path}, line {line}: more than {MAX_SEGMENT} words, which the decoder does not translate; split it, "
                "one sentence a line"
            )
    with_words = total.kept - total.suspicious.lines[NO_WORDS]
    if with_words < min_lines:
        raise InputError(
            f"{names}: {with_words} of {total.lines} lines have words, at least {min_lines} are needed; look at the "
            "file, or take a larger set"
        )


@dataclass(frozen=True)
class InputFile:
    """A raw file as it was when its reading began: what figures go back to."""

    path: str
    size: int
    sha256: str
    changed_ns: int

    @classmethod
    def look_at(cls, path: str) -> "InputFile":
        """Read a file through once.

        Raises:
            InputError: it cannot be read.
        """
        open_binary(path).close()  # what cannot be opened is one sentence, here as everywhere
        status = Path(path).stat()
        return cls(path, status.st_size, sha256(path), status.st_mtime_ns)

    def check_unchanged(self) -> None:
        """Refuse a file that another one has taken the place of since.

        Raises:
            InputError: size or time are other ones.
        """
        status = Path(self.path).stat()
        if (status.st_size, status.st_mtime_ns) != (self.size, self.changed_ns):
            raise InputError(f"{self.path}: changed while it was read; run this again when it is complete")


@dataclass(frozen=True)
class Prepared:
    """What became of a corpus."""

    sides: Sequence[CorpusSide]
    inputs: Sequence[InputFile]
    total: Tally

    def report(self) -> dict[str, object]:
        """The report as JSON: the raw files, and lines by what became of them and why."""
        total = self.total
        return {
            "inputs": [{"path": f.path, "bytes": f.size, "sha256": f.sha256} for f in self.inputs],
            "lines": total.lines,
            "kept": total.kept,
            "tokens": total.tokens,
            "rejected": total.rejected.as_dict(),
            "repaired": total.repaired.as_dict(),
            "suspicious": total.suspicious.as_dict(),
        }

    def figures(self) -> dict[str, object]:
        """The last line of the log: what was kept, rejected and repaired of which files."""
        total = self.total
        names = " and ".join(Path(side.input).name for side in self.sides)
        figures: dict[str, object] = {
            f"{names}: kept": f"{total.kept:,} of {total.lines:,} lines",
            "rejected": str(total.rejected),
            "repaired": str(total.repaired),
        }
        return figures | {f"{side.lang} tokens": n for side, n in zip(self.sides, total.tokens, strict=True)}

    def warnings(self, keep_all: bool) -> Iterator[str]:
        """What somebody should look at although it is accepted."""
        total, names = self.total, " and ".join(side.input for side in self.sides)
        for side, (count, first) in zip(self.sides, total.bad_utf8, strict=True):
            if count:
                yield (
                    f"{side.input}: {count:,} of {total.lines:,} lines are not UTF-8, the first is line {first}; they "
                    f"were {'repaired' if keep_all else 'rejected'}"
                )
        for reason, count in sorted(total.suspicious.lines.items()):
            yield f"{names}: lines with {reason}: {count:,}, the first is line {total.suspicious.first[reason][0]}"
        if keep_all and total.lines < FEW_LINES:
            yield f"{names}: {total.lines} lines are a small dev or test set; its figures say little"


def check_cleaning(options: CleaningOptions) -> None:
    """Refuse options that no corpus fits.

    Raises:
        InputError: with the option's name.
    """
    if options.max_length < options.min_length:
        raise InputError("--max-length must not be below --min-length")
    if not 1 <= options.max_ratio < float("inf"):
        raise InputError(f"--max-ratio {options.max_ratio}: a number from 1 is needed")
