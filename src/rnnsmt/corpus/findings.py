"""Checks of all corpora of an experiment before a long run.

The checks find text in another language, swapped sides, files with several columns, duplicates, test sentences in the
training text, and lines that are shifted on one side. They also compute the n-gram overlap of dev and test with the
training text, on which the gain of the RNN depends (research/reproduction.md).

Dev and test sets are read first, and an index of their sentences is kept in memory; training text is read as a stream.
"""

import json
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from rnnsmt.base.errors import InputError
from rnnsmt.base.operations import Printed
from rnnsmt.base.progress import say, track
from rnnsmt.config.sections import Preprocessing
from rnnsmt.corpus.bitext_files import RawCorpus
from rnnsmt.corpus.raw_text import LINE_BYTES, Row
from rnnsmt.corpus.sample import SAMPLE_LINES, content_warnings, refuse_columns, text_of
from rnnsmt.corpus.shifted_lines import shift_warnings, shifted_lines
from rnnsmt.corpus.splitting import SentenceIndex, normalised_words, sentence_key
from rnnsmt.corpus.training_overlap import MAX_KNOWN, NgramOverlap
from rnnsmt.plan.corpora import FEW_LINES, Corpus, Separated, files_of

FOUND = 3
"""Exit status of `rnnsmt corpus check` if it finds problems."""

MIN_WORDS = 200
"""Minimum number of words of a dev or test set; for smaller ones, unknown words are not reported."""

MAX_UNKNOWN = 0.5
"""Share of words that do not occur in the training text above which a text is reported."""

MIN_VOCABULARY = 1000
"""Minimum size of the vocabulary of the training text; for smaller ones, unknown words are not reported."""

MAX_SHARE = 0.1
"""Maximum share of repeated, empty, untranslated or unequally long pairs of a corpus without a warning."""

DEFECTS = {
    "empty": ("have an empty side", MAX_SHARE),
    "not_utf8": ("are not UTF-8; convert the file, e.g. with iconv -f ISO-8859-1 -t UTF-8", 0.0),
    "endless": (f"have more than {LINE_BYTES:,} bytes", 0.0),
    "unequal_length": (
        f"have sides whose lengths differ by more than a factor of {Preprocessing.max_ratio:g}",
        MAX_SHARE,
    ),
    "untranslated": ("have the same text on both sides", MAX_SHARE),
    "repeated": ("are repetitions of an earlier line", MAX_SHARE),
}
"""Description of defective lines, and their maximum share without a warning, by figure."""


@dataclass
class Findings:
    """Figures and problems of one corpus."""

    name: str
    role: str
    figures: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


@dataclass
class _Sentences:
    """Sentences of one side of a dev or test set: their words, and their numbers by sentence key.

    ``equal`` and ``near`` are the numbers of those that are, or have a near-duplicate, in the training text.
    """

    words: list[list[str]] = field(default_factory=list)
    numbers: defaultdict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    index: SentenceIndex = field(default_factory=SentenceIndex)
    equal: set[int] = field(default_factory=set)
    near: set[int] = field(default_factory=set)

    def add(self, words: list[str], key: int) -> None:
        """Add a sentence."""
        self.numbers[key].append(len(self.words))
        self.words.append(words)
        self.index.add(words)

    def read_training(self, words: list[str], key: int) -> None:
        """Record the sentences that a sentence of the training text is equal or similar to."""
        self.equal.update(self.numbers.get(key, ()))
        self.near.update(number for number, similarity in self.index.similar(words) if similarity < 1)


@dataclass
class _Set:
    """A dev or test set; ``shared``: number of sentences of each side that an earlier set has, by its name."""

    findings: Findings
    sides: tuple[_Sentences, _Sentences] = field(default_factory=lambda: (_Sentences(), _Sentences()))
    shared: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))


class CorpusCheck:
    """Checker of all corpora of an experiment."""

    def __init__(self, langs: tuple[str, str]) -> None:
        self._langs = langs
        self._sets: list[_Set] = []
        self._vocabularies: tuple[set[str], set[str]] = (set(), set())
        self._overlap = NgramOverlap()

    def run(self, corpora: Sequence[Corpus]) -> list[Findings]:
        """Check all corpora; return the findings in their order."""
        if find_spec("py3langid") is None:
            say("the languages are not checked, because py3langid (extra `check`) is not installed")
        by_name: dict[str, Findings] = {}
        for corpus in sorted(corpora, key=lambda corpus: corpus.role not in ("dev", "test")):
            findings = by_name[corpus.name] = Findings(corpus.name, corpus.role)
            try:
                self._read(corpus, findings)
            except InputError as error:
                findings.errors.append(str(error))
        for held_out in self._sets:
            self._report_overlap(held_out)
        return [by_name[corpus.name] for corpus in corpora]

    def _raw(self, corpus: Corpus) -> RawCorpus:
        paths = tuple(path for _, path in files_of(corpus))
        selected = corpus.separated or Separated(paths)
        if len(paths) == 2 or corpus.separated is None:
            for path in paths:
                refuse_columns(path)
        return RawCorpus(
            paths,
            self._langs[-1:] if corpus.role == "mono" else self._langs,
            selected.columns or (1, 2),
            selected.members,
            selected.lines,
            selected.without_lines,
            format=selected.format,
        )

    def _read(self, corpus: Corpus, findings: Findings) -> None:
        """Read a corpus once, and record its counts and problems."""
        raw = self._raw(corpus)
        sides = range(2 - len(raw.langs), 2)
        counts = _LineCounts(len(sides))
        current = _Set(findings) if corpus.role in ("dev", "test") else None
        for row in track(raw.rows(), f"checking {corpus.name}"):
            for side, words in zip(sides, counts.add(row), strict=True):
                if words:
                    self._add(side, words, current)
        if current is not None:
            self._sets.append(current)
        findings.figures.update(counts.figures())
        findings.warnings += counts.warnings(corpus.role)
        if len(sides) == 2:
            findings.warnings += shift_warnings(shifted_lines(*counts.characters))
        findings.warnings += content_warnings(raw, counts.samples)

    def _add(self, side: int, words: list[str], current: _Set | None) -> None:
        """Add a sentence to a dev or test set, or compare a sentence of the training text (None) with all sets."""
        key = sentence_key(words)
        if current is not None:
            for other in self._sets:
                if key in other.sides[side].numbers:
                    current.shared[other.findings.name][side] += 1
            current.sides[side].add(words, key)
            if side == 0:
                self._overlap.add(words)
            return
        self._vocabularies[side].update(words)
        if side == 0:
            self._overlap.read_training(words)
        for held_out in self._sets:
            held_out.sides[side].read_training(words, key)

    def _report_overlap(self, held_out: _Set) -> None:
        """Record how many sentences of a dev or test set are in the training text, and how many words are not."""
        findings = held_out.findings
        for name, side, vocabulary in zip(("source", "target"), held_out.sides, self._vocabularies, strict=True):
            total = max(1, len(side.words))
            equal, near = len(side.equal), len(side.near - side.equal)
            findings.figures[f"{name}_in_training"] = equal
            findings.figures[f"{name}_near_training"] = near
            if equal + near > MAX_KNOWN * total:
                findings.warnings.append(
                    f"{equal:,} of {total:,} {name} sentences are also in the training text, and {near:,} have a "
                    "near-duplicate there, which makes scores too high"
                )
            words = sum(map(len, side.words))
            unknown = sum(word not in vocabulary for sentence in side.words for word in sentence)
            if words >= MIN_WORDS and len(vocabulary) >= MIN_VOCABULARY and unknown > MAX_UNKNOWN * words:
                findings.warnings.append(
                    f"{100 * unknown / words:.0f} % of the {name} words do not occur in the training text; "
                    "check that source and target are not swapped and that the language is correct"
                )
        overlaps = [self._overlap.of(words) for words in held_out.sides[0].words]
        if overlaps and self._vocabularies[0]:
            findings.figures["ngram_overlap"] = round(sum(overlaps) / len(overlaps), 2)
        for name, (source, target) in held_out.shared.items():
            findings.figures |= {f"source_in_{name}": source, f"target_in_{name}": target}
            findings.warnings.append(f"{source:,} source and {target:,} target sentences are also in {name}")


class _LineCounts:
    """Counts over the lines of a corpus.

    Attributes:
        samples: first lines of each side that are not empty.
        characters: number of characters of every line of each side; 0: no text.
    """

    def __init__(self, sides: int) -> None:
        self.samples: list[list[str]] = [[] for _ in range(sides)]
        self.characters = [array("i") for _ in range(sides)]
        self._lines = 0
        self._words = [0] * sides
        self._defects: Counter[str] = Counter()
        self._seen: set[int] = set()

    def add(self, row: Row) -> list[list[str]]:
        """Count a line; return the normalised words of each side, none for a side without text."""
        self._lines += 1
        words: list[list[str]] = []
        for side, raw in enumerate(row):
            text = text_of(raw)
            if text is None:
                self._defects["endless" if raw is None else "not_utf8"] += 1
            self.characters[side].append(len(text or ""))
            words.append(normalised_words(text) if text else [])
            self._words[side] += len(words[-1])
            if text and len(self.samples[side]) < SAMPLE_LINES:
                self.samples[side].append(text)
        self._defects["empty"] += any(raw is not None and not raw.strip() for raw in row)
        if all(words):
            lengths = list(map(len, words))
            self._defects["unequal_length"] += max(lengths) > Preprocessing.max_ratio * min(lengths)
            self._defects["untranslated"] += len(row) == 2 and words[0] == words[1] and lengths[0] > 1
            key = hash(row)
            self._defects["repeated"] += key in self._seen
            self._seen.add(key)
        return words

    def figures(self) -> dict[str, object]:
        """Return the counts by name."""
        per_line = [round(words / max(1, self._lines), 1) for words in self._words]
        return {"lines": self._lines, "words_per_line": per_line, **{name: self._defects[name] for name in DEFECTS}}

    def warnings(self, role: str) -> Iterator[str]:
        """Yield descriptions of lines that should be inspected."""
        held_out = role in ("dev", "test")
        if not self._lines:
            yield "has no lines"
        for name, (description, share) in DEFECTS.items():
            count = self._defects[name]
            if count > (0.0 if name == "empty" and held_out else share) * self._lines:
                yield f"{count:,} of {self._lines:,} lines ({100 * count / self._lines:.1f} %) {description}"
        if held_out and 0 < self._lines < FEW_LINES:
            yield f"{self._lines} lines are too few for reliable scores"


class CheckedCorpora(Printed):
    """The report on all corpora (lines).

    Attributes:
        findings: figures and problems of every corpus.
        status: ``FOUND`` if there are problems.
    """

    def __init__(self, findings: Sequence[Findings], as_json: bool) -> None:
        text = json.dumps([vars(one) for one in findings], indent=2, ensure_ascii=False) if as_json else ""
        status = FOUND if any(one.errors or one.warnings for one in findings) else 0
        super().__init__(text.split("\n") if as_json else lines_of(findings), status=status)
        self.findings = list(findings)


def lines_of(reports: Sequence[Findings]) -> Iterator[str]:
    """Yield the report as text: one line of figures for every corpus, and one for each of its problems."""
    for findings in reports:
        figures = findings.figures
        shown = ["not read"]
        if "lines" in figures:
            words = " and ".join(map(str, figures["words_per_line"]))
            shown = [f"{figures['lines']:,} lines", f"{words} words per line"]
        for name, count in figures.items():
            if isinstance(count, int) and count and name != "lines":
                shown.append(f"{name.replace('_', ' ')}: {count:,}")
        if "ngram_overlap" in figures:
            shown.append(f"n-gram overlap: {figures['ngram_overlap']:.2f}")
        yield f"{findings.name} ({findings.role}): {', '.join(shown)}"
        yield from (f"  error: {line}" for line in findings.errors)
        yield from (f"  warning: {line}" for line in findings.warnings)
    problems = sum(len(findings.errors) + len(findings.warnings) for findings in reports)
    yield f"{problems} problem{'s' * (problems != 1)} found" if problems else "no problems found"
