"""Moses' punctuation normaliser, tokeniser and truecaser, as in sacremoses but faster.

The output is identical to that of ``sacremoses.MosesPunctNormalizer``, ``MosesTokenizer`` and ``MosesTruecaser`` (the
tests compare them on real text), except for addresses, for the words of ``rnnsmt.corpus.words``, and for the full stop
at the end of a line, which is a token as in Moses. Two properties make normalisation and tokenisation faster:

* every substitution of the normaliser requires a certain string in the line, and is skipped if it is missing;
* the tokeniser processes every chunk between white space independently, except that a final full stop depends on the
  beginning of the next chunk, and except for quotes, commas and dots in unusual positions. The tokens of ordinary
  chunks are therefore cached; a line with an unusual chunk is tokenised by sacremoses as a whole.

The truecaser learns the usual case of every word and restores it at sentence starts and for unseen forms. The model
file has Moses' format (``train-truecaser.perl``): on each line the forms of a word with their counts, most frequent
first::

    the (1203/1210) The (5) THE (2)

Training counts every word that does not start a sentence. Application follows ``truecase.perl``: at a sentence start, a
word gets its most frequent form; elsewhere, a form seen in training is kept, another form of a known word is replaced
by the most frequent one, and unknown words are kept. (sacremoses does the latter only with ``use_known=True``.) Lines
with ``<``, ``>`` or ``|`` may contain markup or factors and are processed by sacremoses.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache

from sacremoses import MosesPunctNormalizer, MosesTokenizer, MosesTruecaser
from sacremoses.corpus import NonbreakingPrefixes

from rnnsmt.base.errors import InputError
from rnnsmt.base.paths import StrPath
from rnnsmt.base.reading import read_lines
from rnnsmt.base.writing import atomic_text
from rnnsmt.corpus.detokenizer import DELAYED_START, DOTTED_I, SENTENCE_END
from rnnsmt.corpus.words import COLON, ELISION, GERSHAYIM, Words, has_lower_case, hide_addresses, is_plain_word, show

MEMORY_ENTRIES = 250_000
"""Maximum number of cached chunks of a side, up to 70 MB in every process; the cache is then cleared."""

MEMORY_CHUNK = 100
"""Maximum length of a cached chunk in characters; longer ones rarely recur."""

_NEEDED = {
    r"\r": "\r", r"\(": "(", r"\)": ")", r" +": "  ", r"\) ([.!:?;,])": ") ", r"\( ": "( ", r" \)": " )",
    r"(\d) %": " %", r" :": " :", r" ;": " ;", r"`": "`", r"''": "''", "„": "„", "“": "“", "”": "”", "–": "–",
    "—": "—", "´": "´", "([a-zA-Z])‘([a-zA-Z])": "‘", "([a-zA-Z])’([a-zA-Z])": "’", "‘": "‘", "‚": "‚", "’": "’",
    "´´": "´´", "…": "…", "\u00a0«\u00a0": "«", "«\u00a0": "«", "«": "«", "\u00a0»\u00a0": "»", "\u00a0»": "»",
    "»": "»", "\u00a0%": "\u00a0%", "nº\u00a0": "nº\u00a0", "\u00a0:": "\u00a0:", "\u00a0ºC": "\u00a0ºC",
    "\u00a0cm": "\u00a0cm", "\u00a0\\?": "\u00a0?", "\u00a0\\!": "\u00a0!", "\u00a0;": "\u00a0;",
    ",\u00a0": ",\u00a0", r'"([,.]+)': '"', r',"': ',"', r'(\.+)"(\s*[^<])': '."',
    "(\\d)\u00a0(\\d)": "\u00a0",
}  # fmt: skip
"""A string that is contained in every match of a substitution, by the pattern of the substitution."""

_DIGITS = frozenset("0123456789")

VERSION = 4
"""Version of the rules. Increase it, and the version of the stage ``corpus prepare``, when tokens change."""

_SAMPLE = """No. 5, Mr. Smith's dog isn't in the U.S., "is it" ... 1,250.5 a-b (c) [d] & <e> rock 'n' roll etc.
« L'eau » d'aujourd'hui, l'11 mai: un po' di pane; c’est ; l’eau ! EU:n S:t il·lusió м'яч 'слово' צה״ל ''a''
Ẹ̀kọ́ ง่าย क्‍या می‌خواهم 𞤀𞤣𞤤𞤢𞤥 أهلا، سلام؟ ठीक है। 我去北京。 სახლი. 25 m² 15°C C++ CO₂ x_1 R&D #tag
jo@example.org https://example.org/a?b=(1). /usr/bin 10:30 03/05/2024 km/h and/or <b> &lt; 👍🏽👨‍👩‍👧🇫🇷 1️⃣ ☺ €5 5 %
https://example.org/a。 m⁻² H⁺ 5 %:n 5:- GTK+ US$5 $CA o‘zbek ta’ 1990–95 1'000 '90s smb://a doi:10.1000/182 *.txt
{n} %(n)s :a_b:"""
"""Text with an example of every rule."""


def has_rules(lang: str) -> bool:
    """Return whether sacremoses has abbreviations or characters of a language, or this program has rules for it."""
    ours = ELISION | COLON | GERSHAYIM | DOTTED_I
    return lang in NonbreakingPrefixes().available_langs or lang in ("ja", "ko") or lang in ours


@cache
def tokenizer_version(lang: str) -> str:
    """Return the version of the tokeniser of a language, which a trained system records: ``4-1d9a03c4``.

    Its second part is a checksum of the tokens of a sample text and of the abbreviations of the language; it changes
    with a version of sacremoses or regex that has other rules.
    """
    tokenizer = Tokenizer(lang)
    tokens = [tokenizer(line) for line in _SAMPLE.splitlines()]
    content = "\n".join([*tokens, *sorted(NonbreakingPrefixes().words(lang))])
    return f"{VERSION}-{hashlib.blake2b(content.encode(), digest_size=4).hexdigest()}"


class Normalizer:
    """Moses' ``normalize-punctuation.perl`` for one language: quotes, dashes, spaces around punctuation, numbers."""

    def __init__(self, lang: str) -> None:
        rules = MosesPunctNormalizer(lang).substitutions
        # a substitution that is not in _NEEDED is always tried: the empty string is in every line
        self._rules = [(_NEEDED.get(pattern, ""), re.compile(pattern), by) for pattern, by in rules]

    def __call__(self, text: str) -> str:
        """Return the line with normalised punctuation, without spaces at the ends."""
        text, hidden = hide_addresses(text)
        for needed, pattern, by in self._rules:
            if needed in text:
                text = pattern.sub(by, text)
        return show(text.strip(), hidden)


class _Moses(MosesTokenizer):
    """sacremoses' tokeniser with sets instead of lists and strings, and with the lower-case letters of Unicode."""

    def __init__(self, lang: str) -> None:
        super().__init__("")  # for Chinese, Japanese and Korean, sacremoses has letters that are punctuation
        self.lang = lang if lang in ("en", "fr") else ""  # other apostrophes are those of Words
        self.alpha = frozenset(self.IsAlpha)
        entries: list[list[str]] = [entry.split() for entry in NonbreakingPrefixes().words(lang)]
        self.NONBREAKING_PREFIXES = frozenset(entry[0] for entry in entries if len(entry) == 1)
        self.NUMERIC_ONLY_PREFIXES = frozenset(entry[0] for entry in entries if len(entry) > 1)

    def islower(self, text: str) -> bool:
        """Return whether a character is a lower-case letter."""
        return has_lower_case(text)

    def isanyalpha(self, text: str) -> bool:
        """Return whether any character is a letter."""
        return not self.alpha.isdisjoint(text)


_ENTITIES = {
    "&": "&amp;", "|": "&#124;", "<": "&lt;", ">": "&gt;", "'": "&apos;", '"': "&quot;", "[": "&#91;", "]": "&#93;",
}  # fmt: skip
"""Entities of Moses, in the order in which the characters are replaced."""


def escaped(text: str) -> str:
    """Replace special characters of Moses' files by entities."""
    for char, entity in _ENTITIES.items():
        if char in text:
            text = text.replace(char, entity)
    return text


class Tokenizer:
    """Moses' ``tokenizer.perl`` for one language, with the words of ``Words``.

    Args:
        lang: two-letter code; determines the treatment of apostrophes and of abbreviations with a full stop.
        escape: write ``& | < > ' " [ ]`` as entities, as Moses does (``&apos;``).
    """

    def __init__(self, lang: str, escape: bool = True) -> None:
        self._moses = _Moses(lang)
        self._words = Words(lang, self._moses.IsAlnum)
        self._escape = escape
        # ordinary chunks: an apostrophe only between letters or digits, no comma at the beginning, no two dots in a
        # row, no control characters
        quote = '"' if lang in GERSHAYIM else ""
        inner = rf"(?:(?<=\w)['{quote}](?=\w)|[^\s',.{quote}\x00-\x1f\x7f]|(?<!\.)\.(?!\.)|(?<=[^\s,]),(?!,))"
        self._ordinary = re.compile(rf"(?!,){inner}+\Z")
        self._memory: dict[str, str | tuple[str, str, str, str]] = {}

    def __call__(self, text: str) -> str:
        """Return the tokens of the line, separated by one space."""
        chunks = text.split()
        memory = self._memory
        tokens = []
        for number, chunk in enumerate(chunks, 1):
            answer = memory.get(chunk)
            if answer is None:
                if not self._ordinary.match(chunk):
                    return self._plain(text)
                answer = self._learn(chunk)
            if isinstance(answer, tuple):
                following = chunks[number][0] if number < len(chunks) else ""
                kind = 3 if not following else 1 if has_lower_case(following) else 2 if following in _DIGITS else 0
                answer = answer[kind]
            tokens.append(answer)
        return " ".join(tokens)

    def _learn(self, chunk: str) -> str | tuple[str, str, str, str]:
        """Tokenise an ordinary chunk and cache the result.

        Returns:
            The tokens; or four alternatives, if the next chunk begins with another character, a lower-case letter or a
            digit, and for the last chunk of a line.
        """
        answer: str | tuple[str, str, str, str]
        letters = chunk[:-1] if chunk.endswith((",", ".")) else chunk
        if not is_plain_word(letters):
            answer = self._plain(chunk)
            if chunk.endswith("."):
                other, lower, digit = (self._plain(f"{chunk} {following}")[:-2] for following in "Xx1")
                answer = answer if answer == lower else (other, lower, digit, answer)
        elif chunk.endswith("."):
            split = f"{letters} ."
            numeric = letters in self._moses.NUMERIC_ONLY_PREFIXES
            other = chunk if letters in self._moses.NONBREAKING_PREFIXES and not numeric else split
            answer = (other, chunk, chunk if numeric else other, split)
        else:
            answer = f"{letters} ," if chunk.endswith(",") else chunk
        if len(chunk) <= MEMORY_CHUNK:
            if len(self._memory) >= MEMORY_ENTRIES:
                self._memory.clear()
            self._memory[chunk] = answer
        return answer

    def _plain(self, text: str) -> str:
        text, hidden = self._words.hide(text)
        tokens: str = self._moses.tokenize(text, return_str=True, escape=False)
        if tokens.endswith(".") and not tokens.endswith((" .", "..")):
            # as in Moses, which sacremoses lacks: the full stop of a line is never that of an abbreviation
            tokens = f"{tokens[:-1]} ." if len(tokens) > 1 else tokens
        tokens = show(tokens, hidden)
        return escaped(tokens) if self._escape else tokens


_MARKUP = re.compile("[<>|]")

_TAG = re.compile(r"[^<]*<\S[^>]*>")
"""Beginning of a token that contains a tag."""

_COUNT = re.compile(r"\(\d+(?:\.\d+)?(?:/\d+(?:\.\d+)?)?\)\Z")
"""Count of a form: ``(n)``, or ``(n/total)`` for the most frequent one."""


class Casing(dict[str, Counter[str]]):
    """Truecasing model: counts of the forms of every lower-cased word."""

    @property
    def figures(self) -> dict[str, int]:
        """Return the figures for the last line of the log: words, and their forms."""
        return {"words": len(self), "forms": sum(map(len, self.values()))}


def learn_casing(lines: Iterable[str]) -> Casing:
    """Count the forms of every word that is not the first of a sentence, by lower-cased word."""
    cased = re.compile(MosesTruecaser().SKIP_LETTERS_REGEX.pattern)
    has_case: dict[str, bool] = {}
    forms: Counter[str] = Counter()
    for line in lines:
        first = True
        for token in line.split():
            if token in DELAYED_START or ("<" in token and _TAG.match(token)):
                continue
            if not first and token in SENTENCE_END:
                first = True
                continue
            known = has_case.get(token)
            if known is None:
                known = has_case[token] = bool(cased.search(token))
            if known and not first:
                forms[token] += 1
            first = False
    casing = Casing()
    for form, count in forms.items():
        casing.setdefault(form.lower(), Counter())[form] = count
    return casing


def save_casing(casing: Mapping[str, Mapping[str, int]], path: StrPath) -> None:
    """Write a model in Moses' format, words in alphabetical order.

    Equally frequent forms are in order of their first occurrence.
    """
    with atomic_text(path) as out:
        for word in sorted(casing):
            forms = sorted(casing[word].items(), key=lambda item: -item[1])
            (best, count), *others = forms
            parts = [f"{best} ({count}/{sum(casing[word].values())})", *(f"{form} ({n})" for form, n in others)]
            out.write(" ".join(parts) + "\n")


class Truecaser:
    """Truecaser with a trained model."""

    def __init__(self, path: StrPath) -> None:
        """Read a model written by ``save_casing`` or by Moses."""
        self.best: dict[str, str] = {}
        self.known: set[str] = set()
        for number, line in enumerate(read_lines(path), 1):
            fields = line.split()
            if not fields or len(fields) % 2 or not all(_COUNT.match(count) for count in fields[1::2]):
                raise InputError(
                    f'{path}, line {number}: expected "word (count/total) ..."; train the truecasing model again'
                )
            self.best[fields[0].lower()] = fields[0]
            self.known.update(fields[0::2])
        if not self.best:
            raise InputError(f"{path}: the truecasing model is empty; train it on tokenised text")
        self._moses = MosesTruecaser()
        self._moses.model = {"best": self.best, "known": self.known}

    def __call__(self, line: str) -> str:
        """Return the truecased line, tokens separated by one space."""
        if _MARKUP.search(line):
            text: str = self._moses.truecase(line, return_str=True, use_known=True)
            return text
        tokens = line.split()
        first = True
        for i, token in enumerate(tokens):
            if first or token not in self.known:
                tokens[i] = self.best.get(token.lower(), token)
            if tokens[i] in SENTENCE_END:
                first = True
            elif tokens[i] not in DELAYED_START:
                first = False
        return " ".join(tokens)
