"""What a word is: the characters of a line that the tokeniser must not separate, in every language.

Moses' tokeniser separates every character that is not a letter or a digit, except for full stops, commas in numbers,
hyphens, and some apostrophes. sacremoses knows the letters of an older version of Unicode, and not all rules of
languages. Here, words follow Unicode (the properties and grapheme clusters of the module ``regex``):

* letters, marks and numbers are parts of words, and so are joiners and other format characters inside of them;
* a sign inside of a word stays: ``il·lusió``, ``צה״ל``, ``AT&T``, ``GTK+``, ``US$5``, ``10:30``, ``03/05/2024``,
  ``km/h``, ``x_1``, ``%s``, ``{name}``; but a slash between longer words separates them;
* an apostrophe is part of a word (``м'яч``, ``'n man``, ``un po'``), unless it is one of a pair of quotation marks;
* emoji with their modifiers and joiners, without spaces between them, are one token;
* addresses and paths are tokens (``PROTECTED``), as with Moses' option ``-protected``.

``Words.hide`` replaces the parts that sacremoses would separate by letters that it knows, and ``show`` puts them back
into the tokens: tokenisation keeps the order of the characters.
"""

import re
from collections.abc import Collection
from functools import cache
from html import unescape
from typing import Any

import regex

from rnnsmt.config.languages import WITHOUT_SPACES

ELISION = frozenset(["fr", "ca", "ga", "it", "oc", "lb", "rm", "co", "sc", "fur", "lij", "pms", "lmo", "vec", "scn"])
"""Languages in which an apostrophe in a word ends a token (``l' eau``). Moses has this rule for the first four."""

TRUNCATION = frozenset(["it", "co", "sc", "fur", "lij", "pms", "lmo", "vec", "scn"])
"""Languages of ``ELISION`` that also have apostrophes at the end of words, after vowels (``un po' di pane``)."""

LATIN_APOSTROPHES = WITHOUT_SPACES | {"ko"}
"""Languages with apostrophes only in words of other languages: quotation marks may stand beside letters."""

QUOTED = frozenset(["en", *(ELISION - TRUNCATION), *LATIN_APOSTROPHES])
"""Languages in which every apostrophe at the edge of a word is a token, as in Moses."""

COLON = frozenset(["fi", "sv", "se", "smn", "sms", "sma", "smj", "fit", "fkv", "krl", "olo", "vep"])
"""Languages with a colon before the ending of a word (``EU:n``, ``S:t``). Moses has this rule for the first two."""

GERSHAYIM = frozenset(["he", "iw", "yi", "ji"])
"""Languages in which ``"`` is also written for gershayim, inside of a word (``צה"ל``)."""

SEPARATORS = "\u200b་༌"
"""Separators of words and syllables in languages without spaces: zero-width space, Tibetan tsheg. They are tokens."""

_LETTER, _LOWER, _DIGIT = "ƻ", "ƛ", "᱐"
"""Characters that stand for parts of words: a letter without case, a lower-case letter, and a digit."""

_FLAGS = regex.VERBOSE | regex.V1

_STAND_IN = regex.compile(f"[{_LETTER}{_LOWER}{_DIGIT}]")

WORD = r"[\p{Alphabetic}\p{M}\p{N}]"
"""Character of a word."""

LETTER = r"[\p{Alphabetic}\p{M}]"

CONSONANT = r"(?i:[^\W\d_aeiouàèéìíòóùú])"
"""Consonant of Italian and the other languages ``TRUNCATION``: an apostrophe after it is an elision."""

SHORTENED = r"(?:\d0s|em|[Tt]is|[Tt]was)"
"""English words after an apostrophe at their beginning. Others may be the first word of a quotation."""

_EMOJI = r"[\p{Extended_Pictographic}--[©®™]]"

_END = r"\s<>\"“”«»—[\p{Terminal_Punctuation}--[.,;:!?]][[\p{Ps}\p{Pe}]--[{}]]"
"""Characters that end an address of a page: punctuation of all scripts. Brackets may be in it in pairs."""

_PAGE = rf"(?:\([^{_END}]*\)|\[[^{_END}]*\]|[^{_END}])+(?<![.,;:!?'’}}…])"
_URL = rf"""(?<![\w.+-])[a-zA-Z][a-zA-Z0-9.+-]{{0,15}}+://{_PAGE} | (?<![\w.@])www\.{_PAGE}
    | (?<![\w.+:-])(?:(?:mailto|sip|xmpp|doi|urn|magnet|arXiv):(?=[\w?/])|tel:(?=[+\d])|data:(?=\w+/)){_PAGE}
    | (?<![\w.@-])(?:localhost|(?:[\w-]++\.)+[a-z]{{2,}}):\d{{2,5}}(?!\d)(?:/{_PAGE})?
    | (?<![\w./])10\.\d{{4,9}}/{_PAGE}"""  # the last one is a DOI
_ENDING = r"(?:-?[[\p{L}\p{M}]--[a-zA-Z]]++|-\p{L}[\p{L}\p{M}]++)"  # jo@example.orgಗೆ, jo@example.org-Adresse
_NAME = r"(?:/(?:[\w~%+@-]|\.(?=[\w~%+@-]))++)+/?"  # of a file or page, with its directories

PROTECTED = rf"""
    {_URL}
    | (?<![\w.+%@-])[\w.+%-]{{1,64}}+@(?:[\w-]++\.)+(?:[a-zA-Z]{{2,}}+|\p{{L}}[\p{{L}}\p{{M}}]++){_ENDING}?+
    | (?<![\w.@-])(?:[\w-]++\.)+[a-z]{{2,}}{_NAME}  # example.org/page
    | (?<![^\s("'\[{{«“‘=])(?:~|\.{{1,2}})?{_NAME}  # /usr/bin
    | (?<!\w)(?:\p{{L}}:|\\\\[\w.-]++)(?:\\(?:[\w~%+$-]|\.(?=[\w~%+-]))++)+  # C:\Windows, \\server\share
    | (?<![^\s("'\[{{«“‘,;])\*(?:\.[\p{{L}}\d]++)+(?!\w)  # *.txt
"""
"""Addresses of pages and persons, and paths (verbose regular expression)."""

_OF_PROTECTED = frozenset("/@\\:*")
"""Every part of the form ``PROTECTED`` has one of these characters, or begins with ``www.``."""

_CLUSTER = rf"(?:\p{{RI}}{{1,2}} | (?={_EMOJI})\X)++ | (?=[^\w\s]\p{{M}})\X"
"""Emoji with their modifiers and joiners, without spaces between them; or a sign with marks."""

_LETTERS = r"[[\p{Alphabetic}\p{M}\p{Nd}]--[\x00-\x7f]]++"

_ONLY_LETTERS = regex.compile(r"[\p{Alphabetic}\p{M}\p{Nd}]++")

_UNIT = r"(?:[kcdmµμnMGT]?(?:[mglLsWJVANBb]|Hz|Pa|bit|mol)|[hdat]|ha|[kMG]Wh|min|rpm)[²³]?"

_PLACE = r"[$%\#]?\{[\p{L}\d_$][\w.:$-]*+\}|\{\{[\w.$-]++\}\}|%\([\w.]++\)[disuf]|(?<!\w):[a-z][a-z0-9_+-]++:(?!\w)"
"""Names that a program replaces by text (``{name}``, ``${x}``, ``%(n)s``), and emoji (``:smile:``)."""

_INSIDE = rf"""
    (?<={WORD})\p{{No}} | \p{{No}}(?={WORD})
    | (?<={WORD})[\u200c\u200d]++ | [\u200c\u200d]++(?={WORD})
    | [\u058a\u05be\u1400\u1806\u2010\u2011\u104c-\u104f]  # hyphens, Burmese particles
    | (?<={WORD})[°′″‴՛՜՞॰૰੶৽׳] | °(?=\p{{L}})
    | (?<={WORD})(?:::|&(?!\w{{2,8}};)|[@\#=*^×÷+±−~·‧··՟״])(?={WORD}) | (?<=\d)%(?=-?\p{{L}})
    | (?<={WORD})[⁺⁻₊₋]\p{{No}}*+
    | (?<={WORD})\+\+ | (?<=\d|(?<!{WORD})\p{{L}}|(?<!{WORD}|\+)\p{{Lu}}{WORD}*)\+
    | (?<=(?<!{WORD})\p{{Lu}})\#(?!{WORD})
    | (?<=(?<![\p{{L}}\p{{M}}])[A-Z]{{1,3}})\p{{Sc}} | (?<!{WORD})\p{{Sc}}(?=[A-Z]{{2,3}}(?!{WORD}))  # US$, R$; $CA
    | (?<!{WORD})(?:[@\#](?=[\p{{L}}_]) | [+±−~≈≤≥§№](?=\d))
    | (?<!{WORD})%(?=(?:\d\$)?[disux](?!{WORD})) | (?<=%\d)\$(?=[disux](?!{WORD})) | {_PLACE}
    | (?<={WORD}_{{0,3}})_ | _(?=_{{0,3}}{WORD})
    | (?<=\p{{Nd}})[:∶/⁄∕–٫٬\p{{Sc}}](?=\p{{Nd}})
    | (?<=(?<!{WORD})\p{{L}})/(?=\p{{L}}(?!{WORD})) | (?<=(?<![\p{{L}}\p{{M}}]){_UNIT})/(?={_UNIT}(?!{WORD}))
"""
"""Signs and other characters of words that are not letters."""

_PLACEHOLDER = "DOTMULTI"
"""Text that sacremoses, as Moses, replaces by dots."""

_PLAIN = '.,;!?()"'
"""Signs that no rule here concerns, except for ``"`` in the languages ``GERSHAYIM``."""


_OTHER_WORDS = regex.compile(rf"{_PLACEHOLDER} | (?<!\p{{L}})'{SHORTENED} | \d'\d", regex.VERBOSE)
"""Parts of words of plain characters that sacremoses would separate or replace."""


@cache
def _pattern(lang: str, protected: bool) -> Any:
    """Return the pattern of the characters to hide, with a group for every treatment, see ``Words.hide``.

    Args:
        protected: whether the text may have parts of the form ``PROTECTED``.
    """
    plain, apostrophe, quotes = _PLAIN, "['’‘]", "'’‘"
    groups = {"letters": _LETTERS}  # the alternatives are in the order of their frequency
    inside = _INSIDE
    if lang in WITHOUT_SPACES:
        groups["between"] = rf"(?<={WORD})[{SEPARATORS}](?={WORD})"
        inside += rf"| [{SEPARATORS}](?<={WORD}.|\u200b(?={WORD})) | (?<={WORD})[\p{{Cf}}--\u200b]++(?={WORD})"
    else:
        inside += rf"| (?<={WORD})\p{{Cf}}++(?={WORD})"
    if lang in COLON:
        inside += r"| [%\p{Sc}°§](?=:\p{Ll}) | (?<=\d):[-–](?![\w-])"  # 5 %:n, 10 €:n; 5:-
        inside += r"| :(?=\p{Ll}) | (?<=[\p{Lu}\d]):(?=\p{Lu}{1,5}(?!\p{L}))"
    if lang == "de":
        inside += r"| (?<=\p{L}):(?=in(?:nen)?(?!\p{L}))"  # Leser:innen
    if lang in GERSHAYIM:
        plain, quotes = plain.replace('"', ""), quotes + '"'
        inside += r"""| (?<=\p{Hebrew}\p{M}*)"(?=\p{Hebrew})"""
    if lang in ("en", "fr"):
        apostrophe = "[’‘]"  # sacremoses has the rules for the other one
        inside += r"| (?<=\d)'(?=\d)"  # 1'000
        groups["contracted" if lang == "en" else "elided"] = r"(?<=\p{L})’(?=\p{L})"
        if lang == "en":
            inside += rf"| (?<![\w'’])['’](?={SHORTENED}(?!\w|['’]))"
    elif lang in ELISION:
        groups["elided"] = rf"(?<={CONSONANT if lang in TRUNCATION else LETTER})['’](?={WORD})"
    part = r"[\p{Latin}\p{M}\p{Nd}]" if lang in LATIN_APOSTROPHES else WORD
    groups["apostrophe"] = rf"(?<={part}){apostrophe}(?={part})"
    groups |= {"inside": inside, "alone": _CLUSTER}
    if lang not in QUOTED:
        groups["edge"] = f"[{quotes}]"
    signs = "|".join(f"(?P<{name}>{part})" for name, part in groups.items())
    # the lookahead is for speed
    parts = [rf"(?=[^\sA-Za-z0-9{plain}])(?:{signs})", f"(?P<placeholder>{_PLACEHOLDER})"]
    if protected:
        parts.insert(0, f"(?P<protected>{PROTECTED})")
    return regex.compile(" | ".join(parts), _FLAGS)


_IS_WORD = regex.compile(WORD)
_UPPER = regex.compile(r"\p{Lu}")


def _apostrophes(text: str, signs: str) -> set[int]:
    """Return the positions of the apostrophes at the edges of words: signs that are not one of a pair.

    A sign before a word opens a quotation, a sign after a word or punctuation closes it. The only sign of a line is a
    quotation mark if a capital letter follows: the quotation ends in another line.

    Args:
        signs: the signs that can be an apostrophe or open or close a quotation, and others that only open one.
    """
    alone: list[int] = []
    opening, pairs = -1, 0
    for at in (found.start() for found in re.finditer(f"[{signs}]", text)):
        before, after = text[at - 1 : at] or " ", text[at + 1 : at + 2] or " "
        starts, ends = _IS_WORD.match(after) is not None, _IS_WORD.match(before) is not None
        apart = before.isspace() and not (after.isspace() and opening >= 0)
        if not ends and (starts or apart):
            if opening >= 0:
                alone.append(opening)
            opening = at
        elif not starts:
            if opening >= 0:
                opening, pairs = -1, pairs + 1
            elif ends:
                alone.append(at)
    if opening >= 0 and (pairs or alone or not _UPPER.match(text, opening + 1)):
        alone.append(opening)
    return set(alone)


class Words:
    """The words of one language.

    Args:
        lang: code of the language.
        known: letters and digits of the tokeniser.
    """

    def __init__(self, lang: str, known: Collection[str]) -> None:
        self._lang = lang
        self._edges = [] if lang in QUOTED else ["'", "’‘‚‛", *('"' if lang in GERSHAYIM else ())]
        self._known = frozenset(known) - {_LETTER, _LOWER, _DIGIT}
        plain = _PLAIN.replace('"', "") if lang in GERSHAYIM else _PLAIN
        self._plain = self._known | frozenset(f"{plain} -" + ("'" if lang in ("en", "fr") else ""))

    def hide(self, text: str) -> tuple[str, list[str]]:
        """Replace the parts of words that the tokeniser would separate, each by one letter that it knows.

        Returns:
            The text, and the parts that were replaced, in their order.
        """
        hidden: list[str] = []
        if self._plain.issuperset(text) and not _OTHER_WORDS.search(text):
            return text, hidden
        apostrophes = {at for signs in self._edges for at in _apostrophes(text, signs)}

        def replaced(match: Any) -> str:
            found: str = match[0]
            group = match.lastgroup
            if group == "edge" and match.start() not in apostrophes:
                return found
            if group == "between" or (group == "letters" and self._known.issuperset(found)):
                return found
            hidden.append(found)
            if group in ("alone", "protected"):
                return f" {_LETTER} "
            letter = _stand_in(found[0])
            return f"{letter} " if group == "elided" else f" {letter}" if group == "contracted" else letter

        protected = not _OF_PROTECTED.isdisjoint(text) or "www." in text
        return _pattern(self._lang, protected).sub(replaced, text), hidden


_ADDRESS = regex.compile(f"{_URL} | {_PLACE} | {_STAND_IN.pattern}", _FLAGS)

_WITH_ADDRESS = re.compile(r"://|(?<!\w):[a-z]|\w:[+?/\w]")
"""Matches in every text that contains an ``_ADDRESS``, except addresses with ``www.``, ``%(`` or ``10.``."""


def hide_addresses(text: str) -> tuple[str, list[str]]:
    """Replace addresses and placeholders by a letter, as ``Words.hide``: their punctuation is not normalised."""
    hidden: list[str] = []
    has_colon = ":" in text and _WITH_ADDRESS.search(text) is not None
    if not (has_colon or "www." in text or "%(" in text or "10." in text):
        return text, hidden

    def replaced(match: Any) -> str:
        hidden.append(match[0])
        return _LETTER

    return _ADDRESS.sub(replaced, text), hidden


def show(text: str, hidden: list[str]) -> str:
    """Put the parts back that were replaced by ``Words.hide`` or ``hide_addresses``."""
    if not hidden:
        return text
    parts = iter(hidden)
    return str(_STAND_IN.sub(lambda _: next(parts), text))


def is_plain_word(text: str) -> bool:
    """Return whether a text consists of letters, marks and digits, and is one token in every context."""
    return _ONLY_LETTERS.fullmatch(text) is not None and _PLACEHOLDER not in text


_IS_PROTECTED = regex.compile(PROTECTED, _FLAGS)


def is_protected(token: str) -> bool:
    """Return whether a token is an address or a path, with or without entities for special characters."""
    plain = unescape(token)
    return (not _OF_PROTECTED.isdisjoint(plain) or "www." in plain) and _IS_PROTECTED.fullmatch(plain) is not None


@cache
def has_lower_case(char: str) -> bool:
    """Return whether a character is a lower-case letter of a script with capital letters, unlike Georgian ones."""
    return char.islower() and char.title() != char


@cache
def _stand_in(char: str) -> str:
    return _DIGIT if char.isnumeric() else _LOWER if has_lower_case(char) else _LETTER
