"""Moses' punctuation normaliser, tokeniser, detokeniser and truecaser, as in sacremoses but faster.

The output is identical to that of ``sacremoses.MosesPunctNormalizer``, ``MosesTokenizer``, ``MosesDetruecaser`` and
``MosesDetokenizer`` (the tests compare them on real text), except that the detokeniser removes spaces around
punctuation of other scripts, too. Two properties make normalisation and tokenisation faster:

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

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from sacremoses import MosesDetokenizer, MosesDetruecaser, MosesPunctNormalizer, MosesTokenizer, MosesTruecaser
from sacremoses.corpus import NonbreakingPrefixes

from rnnsmt.base.io import InputError, atomic_text, read_lines

MEMORY_ENTRIES = 500_000
"""Maximum number of cached chunks; the cache is then cleared."""

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


def has_rules(lang: str) -> bool:
    """Return whether sacremoses has rules for a language: its non-breaking prefixes, or its characters."""
    return lang in NonbreakingPrefixes().available_langs or lang in ("ja", "ko")


class Normalizer:
    """Moses' ``normalize-punctuation.perl`` for one language: quotes, dashes, spaces around punctuation, numbers."""

    def __init__(self, lang: str) -> None:
        rules = MosesPunctNormalizer(lang).substitutions
        # a substitution that is not in _NEEDED is always tried: the empty string is in every line
        self._rules = [(_NEEDED.get(pattern, ""), re.compile(pattern), by) for pattern, by in rules]

    def __call__(self, text: str) -> str:
        """Return the line with normalised punctuation, without spaces at the ends."""
        for needed, pattern, by in self._rules:
            if needed in text:
                text = pattern.sub(by, text)
        return text.strip()


class _Moses(MosesTokenizer):
    """sacremoses' tokeniser with precomputed character sets.

    The original builds a set of all letters for every full stop.
    """

    def __init__(self, lang: str) -> None:
        super().__init__(lang)
        self.lower, self.alpha = frozenset(self.IsLower), frozenset(self.IsAlpha)

    def islower(self, text: str) -> bool:
        """Return whether all characters are lower-case letters."""
        return self.lower.issuperset(text)

    def isanyalpha(self, text: str) -> bool:
        """Return whether any character is a letter."""
        return not self.alpha.isdisjoint(text)


class Tokenizer:
    """Moses' ``tokenizer.perl`` for one language.

    Args:
        lang: two-letter code; determines the treatment of apostrophes and of abbreviations with a full stop.
        escape: write ``& | < > ' " [ ]`` as entities, as Moses does (``&apos;``).
    """

    def __init__(self, lang: str, escape: bool = True) -> None:
        self._moses = _Moses(lang)
        self._escape = escape
        # ordinary chunks: an apostrophe only between letters or digits, no comma at the beginning, no two dots in a
        # row, no control characters
        inner = r"(?:(?<=\w)'(?=\w)|[^\s',.\x00-\x1f\x7f]|(?<!\.)\.(?!\.)|(?<=[^\s,]),(?!,))"
        self._ordinary = re.compile(rf"(?!,){inner}+\Z")
        self._lower = self._moses.lower
        self._alnum = frozenset(MosesTokenizer.IsAlnum)
        self._memory: dict[str, str | tuple[str, str, str]] = {}

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
                answer = answer[1 if following in self._lower else 2 if following in _DIGITS else 0]
            tokens.append(answer)
        return " ".join(tokens)

    def _learn(self, chunk: str) -> str | tuple[str, str, str]:
        """Tokenise an ordinary chunk and cache the result.

        Returns:
            The tokens; or three alternatives, if the next chunk begins with another character, a lower-case letter or a
            digit.
        """
        answer: str | tuple[str, str, str]
        if self._alnum.issuperset(chunk.removesuffix(",")) and "DOTMULTI" not in chunk:
            # only letters and digits: one token ("DOTMULTI" is a placeholder for dots in sacremoses)
            answer = f"{chunk[:-1]} ," if chunk.endswith(",") else chunk
        elif chunk.endswith("."):
            after = [self._plain(f"{chunk} {following}")[:-2] for following in "Xx1"]
            answer = after[0] if after[0] == after[1] == after[2] else (after[0], after[1], after[2])
        else:
            answer = self._plain(chunk)
        if len(chunk) <= MEMORY_CHUNK:
            if len(self._memory) >= MEMORY_ENTRIES:
                self._memory.clear()
            self._memory[chunk] = answer
        return answer

    def _plain(self, text: str) -> str:
        tokens: str = self._moses.tokenize(text, return_str=True, escape=self._escape)
        return tokens


_CLOSING = "،؛؟۔।॥၊။។፣።"
"""Punctuation of Arabic, Indic, Burmese, Khmer and Ethiopic text: there is no space before it."""

_INNER = "、。，．！？：；（）「」『』【】《》〈〉［］｛｝\u200c\u200d"
"""Punctuation of Chinese and Japanese text, and the joiners inside of words: there is no space on either side."""

_SPACE = re.compile(f" (?=[{_CLOSING}{_INNER}])|(?<=[{_INNER}]) ")


class Detokenizer:
    """Conversion of a line of tokens into running text.

    Moses' detokeniser leaves spaces around punctuation of other scripts (``، ؟ । ，``) and around joiners, which the
    tokeniser separates; they are removed.

    Args:
        lang: two-letter code; determines the treatment of apostrophes and of spaces around punctuation.
        detruecase: capitalise sentence starts.
        detokenize: join tokens and replace entities.
    """

    def __init__(self, lang: str, detruecase: bool = True, detokenize: bool = True) -> None:
        self._detruecaser = MosesDetruecaser() if detruecase else None
        self._detokenizer = MosesDetokenizer(lang) if detokenize else None

    def __call__(self, line: str) -> str:
        """Return the line as running text."""
        tokens = line.split()
        if self._detruecaser and tokens:
            tokens = self._detruecaser.detruecase(line)
        if self._detokenizer and tokens:
            text: str = self._detokenizer.detokenize(tokens)
            return text if text.isascii() else _SPACE.sub("", text)
        return " ".join(tokens)


SENTENCE_END = frozenset(".:?!")
"""Tokens after which a sentence starts."""

DELAYED_START = frozenset(["(", "[", '"', "'", "&apos;", "&quot;", "&#91;", "&#93;"])
"""Tokens that may precede the first word of a sentence."""

_MARKUP = re.compile("[<>|]")

_TAG = re.compile(r"[^<]*<\S[^>]*>")
"""Beginning of a token that contains a tag."""

_COUNT = re.compile(r"\(\d+(?:\.\d+)?(?:/\d+(?:\.\d+)?)?\)\Z")
"""Count of a form: ``(n)``, or ``(n/total)`` for the most frequent one."""

Casing = dict[str, Counter[str]]
"""Counts of the forms of every lower-cased word."""


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
    casing: Casing = {}
    for form, count in forms.items():
        casing.setdefault(form.lower(), Counter())[form] = count
    return casing


def save_casing(casing: Casing, path: str | Path) -> None:
    """Write a model in Moses' format, words in alphabetical order.

    Equally frequent forms are in order of their first occurrence.
    """
    with atomic_text(path) as out:
        for word in sorted(casing):
            forms = sorted(casing[word].items(), key=lambda item: -item[1])
            (best, count), *others = forms
            parts = [f"{best} ({count}/{casing[word].total()})", *(f"{form} ({n})" for form, n in others)]
            out.write(" ".join(parts) + "\n")


class Truecaser:
    """Truecaser with a trained model."""

    def __init__(self, path: str | Path) -> None:
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
