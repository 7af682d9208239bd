"""Checks of the first lines of a corpus: another language, swapped sides, several columns, shifted lines, and traces of
other programs (subwords, entities, markup, times of subtitles).

The language of a side is guessed by py3langid (a naive Bayes classifier of byte n-grams; Lui and Baldwin 2012), if it
is installed. There is no warning in doubtful cases, and none for languages that py3langid does not know.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

from rnnsmt.base.errors import InputError
from rnnsmt.corpus.bitext_files import RawCorpus
from rnnsmt.corpus.raw_text import read_segments
from rnnsmt.corpus.shifted_lines import shift_warnings, shifted_lines
from rnnsmt.corpus.splitting import UNSPACED

SAMPLE_LINES = 2000
"""Number of lines of a text that are examined."""

MIN_CHARACTERS = 1000
"""Minimum number of characters of the sample; the language of a shorter text is not checked."""

MIN_PROBABILITY = 0.99
"""Minimum probability of another language; similar ones (Bosnian, Croatian, Serbian; Malay, Indonesian) have less."""

NO_LANGUAGE = "zxx"
"""Code of content that is not of a language."""

MIN_CODES = 0.9
"""Minimum share of lines without a sentence (numbers, identifiers) for which a side is reported."""

MAX_CODES_OTHER = 0.5
"""Maximum share of such lines of the other side; in a word list, both sides have more."""

MIN_UNSPACED = 200
"""Minimum number of characters of scripts without spaces between words for which the spaces are counted."""

MAX_UNSPACED = 8
"""Maximum mean number of characters between two spaces in scripts without spaces between words; words have 2 to 5."""

_UNSPACED = re.compile(f"[{UNSPACED}]")

MAX_TRACED = 0.05
"""Share of lines with a trace of another program above which a side is reported."""


class _Trace(NamedTuple):
    """What another program leaves in a line: its description in a warning, and a remedy."""

    what: str
    remedy: str
    pattern: re.Pattern[str]
    only_tokenized: bool = False
    """Whether the remedy is for text that will be tokenised: tokens of another program may have these marks."""


_CONJUNCTIONS = (
    "and|or|to|und|oder|bzw|bis|sowie|en|of|och|eller|og|samt|ja|tai|sekä|és|vagy|et|ou|y|e|o|i|a|in|ali|ili|lub"
)
"""Words after a hyphen that stands for the second part of a compound (`Haupt- und Nebensatz`)."""

_TRACES = (
    _Trace(
        "marks of subwords (@@, ▁ or ￭)",
        "use the text before its segmentation into subwords, because the tokeniser separates the marks",
        re.compile(r"@@(?:\s|$)|(?:^|\s)[▁￭]|￭(?:\s|$)"),
        True,
    ),
    _Trace(
        "entities (such as &quot; and &apos;)",
        "replace them by the characters, because the tokeniser separates their parts",
        re.compile(r"&(?:[A-Za-z]{2,8}|#\d{1,6}|#[xX][0-9A-Fa-f]{1,5});"),
        True,
    ),
    _Trace(
        "factors (word|tag)",
        "keep only the words, because factors are not supported",
        re.compile(r"\A(?:[^\s|]++(?:\|[^\s|]++)++(?:\s|\Z)){2,}+\Z"),
    ),
    _Trace("a language tag (such as >>fra<<)", "remove it, because a system has one language", re.compile(r">>\w+<<")),
    _Trace("tags of HTML or XML", "remove them, because they are treated as text", re.compile(r"</?[A-Za-z][^<>]*>")),
    _Trace(
        "times of subtitles",
        "keep only the text, with corresponding sentences in the same line",
        re.compile(r"\d:\d\d[.,]\d{3}\s*-->"),
    ),
    _Trace(
        "a word that is divided by a hyphen, at the end or before a space",
        "join the lines of pages (of a PDF document, for example) to sentences, and the parts of words, first",
        re.compile(rf"[^\W\d_]{{2}}-(?:$| (?!(?:{_CONJUNCTIONS})\b)(?=[^\W\d_]{{2}})(?![A-Z]))"),
    ),
)

COLUMN_LINES = 100
"""Number of lines that are examined for tabs between columns."""


def text_of(raw: bytes | None) -> str | None:
    """Return a raw segment without white space at both ends; None if it is too long or not UTF-8."""
    try:
        return None if raw is None else raw.decode("utf-8").strip()
    except UnicodeDecodeError:
        return None


def sample_warnings(corpus: RawCorpus, tokenize: bool = True) -> Iterator[str]:
    """Yield warnings about the first lines of a corpus: its content, and lines that are shifted on one side.

    Args:
        corpus: the corpus.
        tokenize: whether the text will be tokenised.
    """
    texts = [[text_of(raw) or "" for raw in row] for row in islice(corpus.rows(), SAMPLE_LINES)]
    sides = [[row[side] for row in texts] for side in range(len(corpus.langs))]
    yield from content_warnings(corpus, [list(filter(None, lines)) for lines in sides], tokenize)
    if len(sides) == 2:
        lengths = [list(map(len, lines)) for lines in sides]
        yield from (f"{corpus}: {warning}" for warning in shift_warnings(shifted_lines(*lengths)))


def content_warnings(corpus: RawCorpus, samples: Sequence[Sequence[str]], tokenize: bool = True) -> Iterator[str]:
    """Yield warnings about a side without sentences, without spaces between words, with traces of other programs, or in
    another language.

    Args:
        corpus: names and languages of the sides.
        samples: first lines of each side that are not empty.
        tokenize: whether the text will be tokenised.
    """
    names = corpus.names
    codes = [sum(map(_is_code, lines)) for lines in samples]
    shares = [count / max(1, len(lines)) for count, lines in zip(codes, samples, strict=True)]
    if len(names) == 2 and min(shares) <= MAX_CODES_OTHER and max(shares) >= MIN_CODES:
        side = shares.index(max(shares))
        remedy = "check the file"
        if corpus.is_one_file:
            remedy = (
                "if the file has other columns, select those of source and target (`columns` in the configuration, "
                "--columns)"
            )
        yield (
            f"{names[side]}: {codes[side]:,} of the first {len(samples[side]):,} lines are a number or one word, not a "
            f"sentence; {remedy}"
        )
        return
    for name, lines in zip(names, samples, strict=True):
        counts = [count for line in lines for part in line.split() if (count := len(_UNSPACED.findall(part)))]
        if sum(counts) >= MIN_UNSPACED and sum(counts) > MAX_UNSPACED * len(counts):
            yield (
                f"{name}: has no spaces between words ({sum(counts) / len(counts):.0f} characters between two spaces); "
                "segment the text into words first, because the tokeniser separates words only at spaces"
            )
        yield from (f"{name}: {trace}" for trace in _traces(lines, tokenize))
    yield from _language_warnings(names, corpus.langs, samples)


def _is_code(text: str) -> bool:
    """Return whether a line is a number or one ASCII word: an identifier or a score, not a sentence."""
    return not any(map(str.isalpha, text)) or (text.isascii() and len(text.split()) == 1)


def _traces(lines: Sequence[str], tokenize: bool) -> Iterator[str]:
    """Yield descriptions of the traces of other programs that many lines have, see ``_TRACES``."""
    found = [
        (sum(trace.pattern.search(line) is not None for line in lines), trace.what, trace.remedy)
        for trace in _TRACES
        if tokenize or not trace.only_tokenized
    ]
    wrong = "characters of UTF-8 that was read in another encoding (such as Ã©)"
    found.append((sum(map(_is_encoded_twice, lines)), wrong, "convert the file again, from its first encoding"))
    for count, what, remedy in found:
        if count > MAX_TRACED * len(lines):
            yield f"{count:,} of the first {len(lines):,} lines have {what}; {remedy}"


def _is_encoded_twice(text: str) -> bool:
    """Return whether a line is UTF-8 that was read as Latin-1 or Windows-1252, and written as UTF-8."""
    if text.isascii():
        return False
    for encoding in ("cp1252", "latin-1"):
        try:
            text.encode(encoding).decode("utf-8")
        except UnicodeError:
            continue
        return True
    return False


def _language_warnings(names: Sequence[str], langs: Sequence[str], samples: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a warning for every side in another language, see ``content_warnings``."""
    others = [_other_language(lang, "\n".join(lines)) for lang, lines in zip(langs, samples, strict=True)]
    if len(langs) == 2 and others == [langs[1], langs[0]]:
        raise InputError(
            f"source and target look swapped: {names[0]} looks like {others[0]} and {names[1]} like {others[1]}; "
            "exchange them, or, if they are right, set `check: false` in the entry of the corpus (--no-check of "
            "`corpus prepare`)"
        )
    for name, lang, other in zip(names, langs, others, strict=True):
        if other == NO_LANGUAGE:
            yield f"{name}: looks like numbers or codes, not text of a language; check the file"
        elif other is not None:
            yield f"{name}: looks like {other}, but the language of this side is {lang}; check the file and languages"


def _other_language(lang: str, text: str) -> str | None:
    """Return the language of a text if it is clearly not the expected one, otherwise None."""
    if len(text) < MIN_CHARACTERS or (identifier := _identifier()) is None or lang not in identifier.labels:
        return None
    best, probability = identifier.classify(text)
    return best if best != lang and probability >= MIN_PROBABILITY else None


@cache  # loading the model takes 0.6 CPU seconds
def _identifier() -> Any:
    """Return py3langid's classifier, or None if it is not installed."""
    try:
        from py3langid.langid import MODEL_FILE, LanguageIdentifier
    except ModuleNotFoundError:
        return None
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def refuse_columns(path: str) -> None:
    """Reject a file with a tab in nearly every line, e.g. a TSV with both sides."""
    first = [segment.strip() for segment in islice(read_segments(path), COLUMN_LINES) if segment and segment.strip()]
    tabs = sum(b"\t" in segment for segment in first)
    if len(first) < 10 or tabs < 0.9 * len(first):
        return
    raise InputError(
        f"{path}: {tabs} of the first {len(first)} lines contain a tab; if this is a TSV file with source and "
        "target, use the key `file` in the configuration (`rnnsmt corpus prepare --bitext`), or write each column to "
        "a separate file"
    )
