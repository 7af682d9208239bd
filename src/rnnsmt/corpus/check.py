"""Checks of all corpora of an experiment before a long run.

The checks find text in a language other than the configured one, swapped sides, files with several columns, duplicates,
test sentences in the training text, and lines that are shifted on one side. They also compute the n-gram overlap of dev
and test with the training text, on which the gain of the RNN depends (docs/reproduction.md).

The language of a text is the one whose function words are most frequent in it. Only the languages of ``FUNCTION_WORDS``
are recognised, and there is no warning in doubtful cases. Dev and test sets are read first, and an index of their
sentences is kept in memory; training text is read as a stream.
"""

import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from rnnsmt.base.io import InputError
from rnnsmt.base.progress import track
from rnnsmt.corpus.bitext_files import BitextFile, read_bitext
from rnnsmt.corpus.raw_text import LINE_BYTES, CleaningOptions, read_pairs, read_segments
from rnnsmt.corpus.shifted_lines import shift_warnings, shifted_lines
from rnnsmt.corpus.splitting import UNSPACED, SentenceIndex, normalised_words, sentence_key
from rnnsmt.plan.corpora import Corpus, files_of

SAMPLE_LINES = 2000
"""Number of lines of a text that are examined."""

MIN_WORDS = 200
"""Minimum number of words of the sample; the language of a shorter text is not checked."""

MIN_SHARE = 0.1
"""Minimum share of function words of a language; in running text it is 0.2 to 0.5."""

MIN_DISTINCT = 5
"""Minimum number of different function words of a language; repetitions of one line contain fewer."""

MIN_RATIO = 2.0
"""Minimum number of function words of the recognised language per function word of the expected one."""

MAX_UNKNOWN = 0.5
"""Share of words that do not occur in the training text above which a text is reported."""

MIN_VOCABULARY = 1000
"""Minimum size of the vocabulary of the training text; for smaller ones, unknown words are not reported."""

OVERLAP_ORDER = 4
"""Maximum length of the n-grams whose share in the training text is reported."""

MIN_CODES = 0.9
"""Minimum share of lines without a sentence (numbers, identifiers) for which a side is reported."""

MAX_CODES_OTHER = 0.5
"""Maximum share of such lines of the other side; in a word list, both sides have more."""

MAX_UNSPACED = 8
"""Maximum mean number of characters between two spaces in scripts without spaces between words; words have 2 to 5."""

_UNSPACED = re.compile(f"[{UNSPACED}]")

COLUMN_LINES = 100
"""Number of lines that are examined for tabs between columns."""

FUNCTION_WORDS = {
    "cs": "a se v na je že s z do o to i za by ale jako po jsou k který od ve jeho nebo při",
    "da": "og i at det er en til af på for der med den de ikke som et har fra var han sig men om også",
    "de": "der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als auch es an werden aus",
    "el": "και το να του η της την με που από για είναι τα στο οι τον ο σε θα τη στην τους των δεν ότι",
    "en": "the of and to in a is that for it as was with be by on not he his but at are this have from",
    "es": "de la que el en y a los se del las un por con no una su para es al lo como más o pero",
    "fi": "ja on ei että se hän oli mutta ovat kun myös joka sen tai niin ole mukaan olla vain jos nyt hänen ollut",
    "fr": "de la le et les des en un du une que est pour qui dans a par plus pas au sur ne se il ce avec",
    "hu": "a az és hogy nem is egy meg ez van csak azt volt mint már de ha vagy még el kell lehet ezt el után",
    "it": "di che e la il un a per in una è non del con i da le si della al come più dei gli alla",
    "nl": "de van het een en in is dat op te zijn met voor niet aan er die om ook als dan maar bij uit door",
    "pl": "w i na z się nie do to że jest o jak ale po co za od przez dla są już jego by tym czy",
    "pt": "de a o que e do da em um para com não uma os no se na por mais as dos como mas foi ao",
    "ro": "de și în a la cu nu pe o că din este un care să mai pentru se ce sau fi ca dar prin fost",
    "ru": "и в не на что с по как он из это к у а но за от все так его для о же бы был",
    "sv": "och i att det som en på är av för med till den har inte om ett de men var från jag så kan",
}
"""Frequent function words of some languages, by two-letter code."""

_WORDS: dict[str, frozenset[str]] = {code: frozenset(words.split()) for code, words in FUNCTION_WORDS.items()}


def words_of_text(lines: Iterable[str]) -> list[str]:
    """Return the lower-cased tokens that contain a letter."""
    return [token.lower() for line in lines for token in line.split() if any(map(str.isalpha, token))]


def function_word_shares(words: Sequence[str]) -> dict[str, float]:
    """Return the share of the function words of every known language among lower-cased words.

    It is 0 if fewer than ``MIN_DISTINCT`` different ones occur.
    """
    counts = Counter(words)
    return {
        code: sum(counts[word] for word in known) / len(words) if len(known & counts.keys()) >= MIN_DISTINCT else 0.0
        for code, known in _WORDS.items()
    }


def language_warnings(paths: Sequence[str], langs: Sequence[str], samples: Sequence[Iterable[str]]) -> Iterator[str]:
    """Yield a warning for every side of a corpus whose text is in another language.

    Args:
        paths: file of each side.
        langs: expected two-letter code of each side.
        samples: tokenised lines of each side.

    Raises:
        InputError: each of two sides is in the language of the other.
    """
    words = [words_of_text(sample) for sample in samples]
    shares = [function_word_shares(side) for side in words]
    recognised: list[str | None] = [None] * len(langs)
    for side, lang in enumerate(langs):
        if len(words[side]) < MIN_WORDS:
            continue
        if lang in shares[side]:
            recognised[side] = other_language(shares[side], lang)
        elif len(langs) == 2 and shares[side].get(langs[1 - side], 0.0) >= max(
            MIN_SHARE, MIN_RATIO * shares[1 - side][langs[1 - side]]
        ):  # without a list for this language: more function words of the other language than on the other side
            recognised[side] = langs[1 - side]
    if len(langs) == 2 and recognised == [langs[1], langs[0]]:
        raise InputError(
            f"source and target look swapped: {paths[0]} looks like {recognised[0]} and {paths[1]} like "
            f"{recognised[1]}; exchange them, or, if they are right, set `check: false` in the entry of the corpus "
            "(--no-check of `corpus prepare`)"
        )
    for path, lang, other in zip(paths, langs, recognised, strict=True):
        if other is not None:
            yield f"{path}: looks like {other}, but the language of this side is {lang}; check the file and languages"


def other_language(shares: Mapping[str, float], expected: str) -> str | None:
    """Return the language of a text if it is clearly another one than expected, otherwise None.

    Args:
        shares: share of the function words of every known language in the text.
        expected: two-letter code of the expected language, one of the known ones.
    """
    best = max(shares, key=lambda code: shares[code])
    return best if best != expected and shares[best] >= max(MIN_SHARE, MIN_RATIO * shares[expected]) else None


def unknown_words_warning(path: str, lines: Iterable[str], vocabulary: Mapping[str, object], model: str) -> str | None:
    """Return a warning if most words of a text do not occur in the training text of its side, otherwise None.

    Args:
        path: file of the text.
        lines: tokenised text.
        vocabulary: lower-cased words of the training text.
        model: file of the model that contains this vocabulary.
    """
    words = words_of_text(lines)
    unknown = sum(word not in vocabulary for word in words)
    if len(words) < MIN_WORDS or len(vocabulary) < MIN_VOCABULARY or unknown <= MAX_UNKNOWN * len(words):
        return None
    return (
        f"{path}: {100 * unknown / len(words):.0f} % of the words do not occur in the training text of {model}; are "
        "source and target swapped, or is this another language?"
    )


def refuse_columns(path: str) -> None:
    """Reject a file with a tab in nearly every line, e.g. a TSV with both sides.

    Raises:
        InputError: the file has several columns; the message contains the remedy.
    """
    first = [segment.strip() for segment in islice(read_segments(path), COLUMN_LINES) if segment and segment.strip()]
    tabs = sum(b"\t" in segment for segment in first)
    if len(first) < 10 or tabs < 0.9 * len(first):
        return
    raise InputError(
        f"{path}: {tabs} of the first {len(first)} lines contain a tab; if this is a TSV file with source and "
        "target, use the key `file` in the configuration (`rnnsmt corpus prepare --bitext`), or write each column to "
        "a separate file"
    )


MAX_SHARE = 0.1
"""Maximum share of repeated, empty, untranslated or unequally long pairs of a corpus without a warning."""

MAX_KNOWN = 0.02
"""Maximum share of sentences of a dev or test set that are also, or nearly, in the training text, without a warning."""

FEW_LINES = 100
"""Number of pairs below which a dev or test set is reported."""

Row = Sequence[bytes | None]


@dataclass(frozen=True)
class CheckedCorpus:
    """A corpus to check.

    Attributes:
        name, role: as in the configuration.
        paths: file of each side, or the file with both sides once.
        rows: function that returns the raw segments of both sides, or of the target side of monolingual text.
    """

    name: str
    role: str
    paths: Sequence[str]
    rows: Callable[[], Iterator[Row]]


@dataclass
class Findings:
    """Figures and problems of one corpus."""

    name: str
    role: str
    figures: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


@dataclass
class _Set:
    """Index of the sentences of a dev or test set.

    Attributes:
        keys: numbers of the pairs with each sentence key, for each side.
        indices: indices of the sentences of each side.
        equal, near: numbers of the pairs with a sentence, or a near-duplicate of it, in the training text, by side.
        sentences: the normalised words of every sentence of each side.
        shared: number of sentences of each side that are also in an earlier set, by the name of that set.
    """

    findings: Findings
    keys: tuple[dict[int, list[int]], dict[int, list[int]]] = field(default_factory=lambda: ({}, {}))
    indices: tuple[SentenceIndex, SentenceIndex] = field(default_factory=lambda: (SentenceIndex(), SentenceIndex()))
    equal: tuple[set[int], set[int]] = field(default_factory=lambda: (set(), set()))
    near: tuple[set[int], set[int]] = field(default_factory=lambda: (set(), set()))
    sentences: tuple[list[list[str]], list[list[str]]] = field(default_factory=lambda: ([], []))
    shared: dict[str, list[int]] = field(default_factory=dict)


class NgramOverlap:
    """Share of the n-grams of sentences, n = 1 to 4, that occur in a training text.

    The sentences are added first, so the training text can be a stream.
    """

    def __init__(self) -> None:
        self._occurs: dict[tuple[str, ...], bool] = {}

    def add(self, words: Sequence[str]) -> None:
        """Add a sentence whose overlap will be computed."""
        for n in range(1, OVERLAP_ORDER + 1):
            for ngram in _ngrams(words, n):
                self._occurs[ngram] = False

    def read_training(self, words: Sequence[str]) -> None:
        """Record the n-grams of a sentence of the training text."""
        for n in range(1, OVERLAP_ORDER + 1):
            known = False
            for ngram in _ngrams(words, n):
                if ngram in self._occurs:
                    self._occurs[ngram] = known = True
            # if no n-gram of the sentence occurs in the added sentences, no longer one does
            if not known:
                return

    def of(self, words: Sequence[str]) -> float:
        """Return the overlap of a sentence that was added: the mean over n of the shares; 0 if it has no words."""
        shares = [
            sum(self._occurs[ngram] for ngram in _ngrams(words, n)) / (len(words) - n + 1)
            for n in range(1, min(OVERLAP_ORDER, len(words)) + 1)
        ]
        return sum(shares) / max(len(shares), 1)


def _ngrams(words: Sequence[str], n: int) -> Iterator[tuple[str, ...]]:
    """Yield the n-grams of a sentence, with repetitions."""
    return zip(*(words[first:] for first in range(n)), strict=False)


class CorpusCheck:
    """Checker of all corpora of an experiment."""

    def __init__(self, langs: tuple[str, str], max_lines: int = 0) -> None:
        """Set the languages of source and target, and how many lines of a training corpus are read (0: all)."""
        self._langs = langs
        self._max_lines = max_lines
        self._sets: list[_Set] = []
        self._vocabularies: tuple[set[str], set[str]] = (set(), set())
        self._overlap = NgramOverlap()

    def run(self, texts: Sequence[CheckedCorpus]) -> list[Findings]:
        """Check all corpora; return the findings in the order of ``texts``."""
        by_name: dict[str, Findings] = {}
        held_out = [text for text in texts if text.role in ("dev", "test")]
        for text in (*held_out, *(text for text in texts if text not in held_out)):
            findings = by_name[text.name] = Findings(text.name, text.role)
            try:
                self._read(text, findings)
            except InputError as error:
                findings.errors.append(str(error))
        for held_out_set in self._sets:
            self._report_overlap(held_out_set)
        return [by_name[text.name] for text in texts]

    def _read(self, text: CheckedCorpus, findings: Findings) -> None:
        """Read a corpus once, and record its counts and problems."""
        langs = self._langs if text.role != "mono" else self._langs[1:]
        sides = range(2 - len(langs), 2)
        counts = _PairCounts(len(langs))
        current = _Set(findings) if text.role in ("dev", "test") else None
        for number, row in enumerate(track(text.rows(), f"checking {text.name}")):
            if current is None and self._max_lines and number >= self._max_lines:
                findings.figures["only_first_lines"] = number
                break
            for side, words in zip(sides, counts.add(row), strict=True):
                if words is None:
                    continue
                key = sentence_key(words)
                if current is not None:
                    for other in self._sets:
                        if key in other.keys[side]:
                            current.shared.setdefault(other.findings.name, [0, 0])[side] += 1
                    current.keys[side].setdefault(key, []).append(len(current.indices[side]))
                    current.indices[side].add(words)
                    current.sentences[side].append(words)
                    if side == 0:
                        self._overlap.add(words)
                else:
                    self._vocabularies[side].update(words)
                    if side == 0:
                        self._overlap.read_training(words)
                    for held_out in self._sets:
                        _search(held_out, side, key, words)
        if current is not None:
            self._sets.append(current)
        findings.figures.update(counts.figures())
        findings.warnings += counts.warnings(text.role)
        findings.warnings += _shift_warnings(counts)
        findings.warnings += _content_warnings(text.paths, counts, langs)

    def _report_overlap(self, held_out: _Set) -> None:
        """Record how many sentences of a dev or test set are in the training text, and how many words are not."""
        findings = held_out.findings
        for side, name in enumerate(("source", "target")):
            total = max(1, len(held_out.indices[side]))
            equal, near = len(held_out.equal[side]), len(held_out.near[side] - held_out.equal[side])
            findings.figures[f"{name}_in_training"] = equal
            findings.figures[f"{name}_near_training"] = near
            if equal + near > MAX_KNOWN * total:
                findings.warnings.append(
                    f"{equal:,} of {total:,} {name} sentences are also in the training text, and {near:,} have a "
                    "near-duplicate there, which makes scores too high"
                )
            words, vocabulary = sum(map(len, held_out.sentences[side])), self._vocabularies[side]
            unknown = sum(word not in vocabulary for sentence in held_out.sentences[side] for word in sentence)
            if words >= MIN_WORDS and len(vocabulary) >= MIN_VOCABULARY and unknown > MAX_UNKNOWN * words:
                findings.warnings.append(
                    f"{100 * unknown / words:.0f} % of the {name} words do not occur in the training text; "
                    "check that source and target are not swapped and that the language is correct"
                )
        overlaps = [self._overlap.of(words) for words in held_out.sentences[0]]
        if overlaps and self._vocabularies[0]:
            findings.figures["ngram_overlap"] = round(sum(overlaps) / len(overlaps), 2)
        for name, (source, target) in held_out.shared.items():
            findings.figures |= {f"source_in_{name}": source, f"target_in_{name}": target}
            findings.warnings.append(f"{source:,} source and {target:,} target sentences are also in {name}")


def _search(held_out: _Set, side: int, key: int, words: list[str]) -> None:
    """Search a dev or test set for a training sentence and for near-duplicates of it."""
    held_out.equal[side].update(held_out.keys[side].get(key, ()))
    held_out.near[side].update(number for number, similarity in held_out.indices[side].similar(words) if similarity < 1)


def _is_code(text: str | None) -> bool:
    """Return whether a line is a number or one ASCII word."""
    return text is not None and (not any(map(str.isalpha, text)) or (text.isascii() and len(text.split()) == 1))


class _PairCounts:
    """Counts over the pairs of a corpus."""

    def __init__(self, sides: int) -> None:
        self.samples: list[list[str]] = [[] for _ in range(sides)]
        self.codes = [0] * sides
        """Number of lines of the sample that are a number or one ASCII word: identifiers or scores, not sentences."""
        self.unspaced = [(0, 0)] * sides
        """Number of characters of the sample in scripts without spaces between words, and of parts between spaces."""
        self.characters = [array("i") for _ in range(sides)]
        """Number of characters of every line; 0: no text."""
        self._lines = self._empty = self._foreign = self._long = self._ratio = self._same = self._repeated = 0
        self._words = [0] * sides
        self._seen: set[int] = set()

    def add(self, row: Row) -> list[list[str] | None]:
        """Count a pair; return the normalised words of each side, None for a side without text."""
        self._lines += 1
        words: list[list[str] | None] = []
        for side, raw in enumerate(row):
            text = None
            if raw is None:
                self._long += 1
            else:
                try:
                    text = raw.decode("utf-8").strip()
                except UnicodeDecodeError:
                    self._foreign += 1
            self.characters[side].append(len(text or ""))
            of_side = normalised_words(text) if text else None
            words.append(of_side)
            if of_side is not None:
                self._words[side] += len(of_side)
                if len(self.samples[side]) < SAMPLE_LINES:
                    self.samples[side].append(" ".join(of_side))
                    self.codes[side] += _is_code(text)
                    self._count_unspaced(side, text or "")
        self._empty += any(raw is not None and not raw.strip() for raw in row)
        if all(words):
            lengths = [len(side or ()) for side in words]
            self._ratio += max(lengths) > CleaningOptions.max_ratio * min(lengths)
            self._same += len(row) == 2 and words[0] == words[1] and lengths[0] > 1
            key = hash(tuple(row))
            self._repeated += key in self._seen
            self._seen.add(key)
        return words

    def _count_unspaced(self, side: int, text: str) -> None:
        """Count the characters of scripts without spaces between words, and the parts between spaces with any."""
        counts = [count for part in text.split() if (count := len(_UNSPACED.findall(part)))]
        characters, parts = self.unspaced[side]
        self.unspaced[side] = characters + sum(counts), parts + len(counts)

    def figures(self) -> dict[str, object]:
        """Return the counts by name."""
        return {
            "lines": self._lines,
            "words_per_line": [round(words / max(1, self._lines), 1) for words in self._words],
            "empty": self._empty,
            "not_utf8": self._foreign,
            "endless": self._long,
            "unequal_length": self._ratio,
            "untranslated": self._same,
            "repeated": self._repeated,
        }

    def warnings(self, role: str) -> Iterator[str]:
        """Yield descriptions of lines that should be inspected."""
        lines, ratio = max(1, self._lines), CleaningOptions.max_ratio
        if not self._lines:
            yield "has no lines"
        for count, description, share in (
            (self._foreign, "are not UTF-8; convert the file, e.g. with iconv -f ISO-8859-1 -t UTF-8", 0.0),
            (self._long, f"have more than {LINE_BYTES:,} bytes", 0.0),
            (self._empty, "have an empty side", 0.0 if role in ("dev", "test") else MAX_SHARE),
            (
                self._ratio,
                f"have sides whose lengths differ by more than a factor of {ratio:g}",
                MAX_SHARE,
            ),
            (self._same, "have the same text on both sides", MAX_SHARE),
            (self._repeated, "are repetitions of an earlier line", MAX_SHARE),
        ):
            if count > share * lines:
                yield f"{count:,} of {lines:,} lines ({100 * count / lines:.1f} %) {description}"
        if role in ("dev", "test") and 0 < self._lines < FEW_LINES:
            yield f"{self._lines} lines are too few for reliable scores"


def text_of(corpus: Corpus, langs: tuple[str, str]) -> CheckedCorpus:
    """Return a corpus of a configuration as a text to check."""

    def rows() -> Iterator[Row]:
        if corpus.file is not None:
            file = BitextFile(corpus.file.path, langs, corpus.file.columns or (1, 2), corpus.file.members)
            yield from read_bitext(file)
            return
        for _, path in files_of(corpus):
            refuse_columns(path)
        if corpus.source is None:
            yield from ((segment,) for segment in read_segments(corpus.target))
        else:
            yield from read_pairs(corpus.source, corpus.target)

    return CheckedCorpus(corpus.name, corpus.role, [path for _, path in files_of(corpus)], rows)


def sample_warnings(paths: Sequence[str], rows: Iterable[Row], langs: Sequence[str]) -> Iterator[str]:
    """Yield warnings about the first lines of a text: its languages, and lines that are shifted on one side.

    Args:
        paths: file of each side, or the file with both sides once.
        rows: raw segments of each side.
        langs: code of each side.

    Raises:
        InputError: the sides are swapped, or the text cannot be read.
    """
    counts = _PairCounts(len(langs))
    for row in islice(rows, SAMPLE_LINES):
        counts.add(row)
    yield from _content_warnings(paths, counts, langs)
    yield from (f"{' and '.join(paths)}: {warning}" for warning in _shift_warnings(counts))


def _shift_warnings(counts: _PairCounts) -> Iterator[str]:
    """Yield warnings about ranges of a parallel text in which a side is shifted by a line."""
    if len(counts.characters) == 2:
        yield from shift_warnings(shifted_lines(*counts.characters))


def _content_warnings(paths: Sequence[str], counts: _PairCounts, langs: Sequence[str]) -> Iterator[str]:
    """Yield warnings about the first lines of a text: a side without sentences, or the languages."""
    one_file = len(paths) < len(langs)
    names = [f"{paths[0]} ({lang})" for lang in langs] if one_file else paths
    shares = [codes / max(1, len(sample)) for codes, sample in zip(counts.codes, counts.samples, strict=True)]
    if len(langs) == 2 and min(shares) <= MAX_CODES_OTHER and max(shares) >= MIN_CODES:
        side = shares.index(max(shares))
        remedy = "check the file"
        if one_file:
            remedy = (
                "if the file has other columns, select those of source and target (`columns` in the configuration, "
                "--columns)"
            )
        yield (
            f"{names[side]}: {counts.codes[side]:,} of the first {len(counts.samples[side]):,} lines are a number or "
            f"one word, not a sentence; {remedy}"
        )
        return
    for name, (characters, parts) in zip(names, counts.unspaced, strict=True):
        if characters >= MIN_WORDS and characters > MAX_UNSPACED * parts:
            yield (
                f"{name}: has no spaces between words ({characters / parts:.0f} characters between two spaces); "
                "segment the text into words first, because the tokeniser separates words only at spaces"
            )
    yield from language_warnings(names, langs, counts.samples)


def known_sentences(training: Iterable[str], sets: Mapping[str, Iterable[str]]) -> dict[str, dict[str, int]]:
    """Return the number of sentences of every set, and of those that also occur in a training text, by set.

    Sentences are lines that are not empty, compared without white space at both ends. The training text is a stream.
    """
    of_set = {name: Counter(filter(None, map(str.strip, lines))) for name, lines in sets.items()}
    found = set().union(*of_set.values()).intersection(map(str.strip, training))
    return {
        name: {"sentences": lines.total(), "known": sum(count for line, count in lines.items() if line in found)}
        for name, lines in of_set.items()
    }


def known_warnings(overlap: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """Yield a warning for every set with many sentences that also occur in the training text (``known_sentences``)."""
    for name, counts in overlap.items():
        if counts["known"] > MAX_KNOWN * counts["sentences"]:
            yield (
                f"{name}: {counts['known']:,} of {counts['sentences']:,} source sentences also occur in the training "
                "text, which makes scores too high; remove them from one of the texts"
            )


def lines_of(reports: Sequence[Findings]) -> Iterator[str]:
    """Yield the report as text: one line of figures for every corpus, and one for each of its problems."""
    for findings in reports:
        figures = findings.figures
        shown = [
            f"{figures['lines']:,} lines" if "lines" in figures else "not read",
            *(["only the first ones were read"] if "only_first_lines" in figures else []),
            *([f"{' and '.join(map(str, figures['words_per_line']))} words per line"] if "lines" in figures else []),
            *(f"{name.replace('_', ' ')}: {count:,}" for name, count in figures.items() if isinstance(count, int)
              and count and name not in ("lines", "only_first_lines")),
            *([f"n-gram overlap: {figures['ngram_overlap']:.2f}"] if "ngram_overlap" in figures else []),
        ]  # fmt: skip
        yield f"{findings.name} ({findings.role}): {', '.join(shown)}"
        yield from (f"  error: {line}" for line in findings.errors)
        yield from (f"  warning: {line}" for line in findings.warnings)
    problems = sum(len(findings.errors) + len(findings.warnings) for findings in reports)
    yield f"{problems} problem{'s' * (problems != 1)} found" if problems else "no problems found"
