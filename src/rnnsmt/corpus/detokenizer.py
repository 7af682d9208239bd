"""Detokenisation: from the tokens of a line to running text.

sacremoses' detokeniser has Moses' rules for spaces beside punctuation and quotation marks, for English contractions and
French punctuation. The rules here are for languages and scripts for which Moses has none, and for the tokens of
``rnnsmt.corpus.words``. Tokens that belong together are joined first; sacremoses then sees one word.
"""

from functools import cache
from typing import Any, NamedTuple

import regex
from sacremoses import MosesDetokenizer

from rnnsmt.config.languages import WITHOUT_SPACES
from rnnsmt.corpus.words import (
    COLON,
    CONSONANT,
    ELISION,
    LETTER,
    SEPARATORS,
    SHORTENED,
    TRUNCATION,
    WORD,
    is_protected,
)

SENTENCE_END = frozenset(".:?!")
"""Tokens after which a sentence starts."""

DELAYED_START = frozenset(["(", "[", '"', "'", "&apos;", "&quot;", "&#91;", "&#93;"])
"""Tokens that may precede the first word of a sentence."""

MOSES_RULES = frozenset(["en", "fr", "ko"])
"""Languages with rules of their own in sacremoses, other than those of this module."""

DOTTED_I = frozenset(["tr", "az", "crh", "gag"])
"""Languages in which the capital letter of i is İ."""

PERCENT_FIRST = frozenset(["tr", "az", "eu", "ku"])
"""Languages with the sign % before the number."""

WIDE_PUNCTUATION = frozenset(["fr", "br", "oc"])
"""Languages with a space before ``? ! : ; %`` and inside of ``« »``. Moses has this rule for French."""

WIDE_CURRENCY = frozenset(["nl", "fy", "pt"])
"""Languages with a space between a currency sign and the number after it (``€ 5``)."""

NARROW_CURRENCY = frozenset(["bn", "km"])
"""Languages without a space between a number and the currency sign after it (``5৳``)."""

_AS_WORD = "\x00"
"""Character before a token that is an ordinary word for sacremoses, with a space before and after it."""

_CLOSING = {
    "«": "»", "»": "«»", "‹": "›", "›": "‹›", "„": "“”„»", "‟": "”", "“": "”“", "”": "”", "‚": "‘’", "‛": "’", "‘": "’",
    "’": "’",
}  # fmt: skip
"""The quotation marks that can close a quotation, by the one that opens it."""

_GUILLEMETS, _ONLY_OPENING = "«»‹›", "«‹„‚‘‟‛"

_QUOTATION_MARK = regex.compile(rf"(?<!\S)[{''.join(_CLOSING)}](?!\S)")

_MARKED = regex.compile(rf"{_AS_WORD}([{''.join(_CLOSING)}])(?!\w)")

_WIDE_SIGN = regex.compile(rf"(?<=[^\s(\[{{]){_AS_WORD}(?=[?!:;%])")
"""The place of a space before punctuation after a quotation mark, which sacremoses takes for an opening one."""

_WIDE = "、。，．！？：；（）「」『』【】《》〈〉［］｛｝"
"""Chinese and Japanese punctuation, without spaces on either side."""

_CJK = r"[\p{Han}\p{Hiragana}\p{Katakana}]"

_BEFORE = rf"[[\p{{Terminal_Punctuation}}{_WIDE}՝٪®™℠]--[\x00-\x7f៖]]"
"""Punctuation at the end of phrases and sentences, of all scripts but Latin, without a space before it; in Khmer, the
colon has one."""

_PARTICLE = (
    "(?:(?:은|는|이|가|을|를|의|에게?|에서|께서?|와|과|(?:으|이)?나|이?란|으?로|부터|까지|처럼|보다|이?라[고는]|이며|이고|인지?)"
    "[은는도만의]?|도|만|이?다|입니다)"
)
"""Korean particles, which follow a word in brackets or quotation marks without a space."""

_LEFT, _RIGHT = "\u061c\u200e\u200f\u202c\u2069", "\u202a\u202b\u202d\u202e\u2066-\u2068"
"""Marks of direction at the end of what precedes (if anything does), and at the beginning of what follows."""

_TAG = regex.compile(r"(?<!\S)< (/ )?(\p{L}[\w:-]*) >(?!\S)")

_ELIDED_BEFORE_DIGIT = r"(?i:(?<=(?<!\S)(?:[cdjlmnst]|(?:jus|lors|puis)?qu)) ' (?=\d))"
"""``l ' 11``: Moses separates the apostrophe on both sides."""


class _Rule(NamedTuple):
    """A substitution in texts that have one of some signs."""

    signs: frozenset[str]
    pattern: Any
    by: str


def _rule(signs: str, pattern: str, by: str = "") -> _Rule:
    """Create a rule; the signs are characters, or, in brackets, a class of characters other than letters."""
    found = _characters(signs) if signs.startswith("[[") else frozenset(signs)
    return _Rule(found, regex.compile(pattern, regex.V1), by)


@cache
def _characters(kind: str) -> frozenset[str]:
    """Return the characters of a class, without those of the planes that have only letters."""
    return frozenset(regex.findall(kind, "".join(map(chr, range(0x1FB00))), regex.V1))


@cache
def _joining(lang: str) -> list[_Rule]:
    """Return the rules that join tokens, for sacremoses."""
    rules = [
        _rule("/", rf"(?<={WORD}-?) / (?={'-?' if lang == 'de' else ''}{WORD})", "/"),  # Feuerwehrmann/-frau
        _rule(
            r"[[\p{Sc}]]",
            r"(?<=\d) (?=\p{Sc}(?:\Z| (?!\d)))",
            "" if lang in NARROW_CURRENCY else f" {_AS_WORD}",
        ),
        _rule(r"[[\p{Sc}]]", r"(?<!\S)- (\p{Sc}) (?=\d)", rf"-\1{' ' if lang in WIDE_CURRENCY else ''}"),
        _rule("#¶", r"(?<!\S)[\#¶]\K (?=\d)"),
        _rule("*=#~<>&|§", r" (?<=(?<!\S)([*=\#~<>&|§]) )(?=\1(?!\S))"),
        _rule("=>", r" (?<=(?<!\S)[-=<>!] )(?=[=>](?!\S))"),
    ]
    if lang in WIDE_CURRENCY:
        rules.append(_rule(r"[[\p{Sc}]]", r"(?<!\S)(?=\p{Sc} \d)", _AS_WORD))
    if lang not in WIDE_PUNCTUATION:
        rules.append(_rule("‰", r"(?<=\d) (?=‰(?!\S))"))
    else:
        rules.append(_rule("?!", r"(?<=(?<!\S)[?!]) (?=[?!](?!\S))"))
        rules.append(_rule("?!:;%", r"(?<!\S)(?=(?:[?!]++|[:;%])(?!\S))", _AS_WORD))
    if lang == "en":
        rules.append(_rule("'’", rf"(?<!\S)(?=['’]{SHORTENED}(?!\S))", _AS_WORD))
        rules.append(_rule("’", r" (?=’\p{L})"))
    if lang in ELISION:
        apostrophe = "’" if lang in MOSES_RULES else "['’]"
        rules.append(_rule("'’", rf"(?<={CONSONANT if lang in TRUNCATION else LETTER}{apostrophe}) (?={WORD})"))
        rules.append(_rule("'", _ELIDED_BEFORE_DIGIT, "'"))
    if lang in WITHOUT_SPACES:
        rules.append(_rule(SEPARATORS, rf" ([{SEPARATORS}]) ", r"\1"))
    if lang in PERCENT_FIRST:
        rules.append(_rule("%", r"(?<!\S)(?<!\d )% (?=\d)", "%"))
    if lang == "el":
        rules.append(_rule("·", r" (?=·)"))
    return rules


@cache
def _spacing(lang: str) -> list[_Rule]:
    """Return the rules that remove spaces from the text of sacremoses."""
    rules = [
        _rule(_BEFORE, f" (?={_BEFORE})"),
        _rule(_WIDE, f"(?<=[{_WIDE}]) "),
        _rule(f"[[{_LEFT}]]", rf"(?<=\A[{_LEFT}]+) | (?=[{_LEFT}]+(?!{WORD}|[{_LEFT}]))"),
        _rule(f"[[{_RIGHT}]]", rf"(?<=(?<!\S)[{_RIGHT}]+) "),
        _rule("-", r"""(?<=\w["')”“»«’‘]) (?=-\p{L}[\p{L}\p{M}])"""),  # "path"-Wert
    ]
    if lang == "ko":
        rules.append(_rule(""")]"'”’""", rf"""(?<=[\w.?!][)\]"'”’]) (?={_PARTICLE}(?!\p{{L}}))"""))  # "값"을
    else:
        rules.append(_rule("“‘", rf"(?<={_CJK}) (?=[“‘])"))
        rules.append(_rule("”’", rf"(?<=[”’]) (?={_CJK})"))
    if lang in COLON:
        rules.append(_rule(":", r"""(?<=["')”»’]) (?=:\p{Ll})"""))  # "path":n
    return rules


def _capital(char: str, lang: str) -> str:
    """Return the title case of a letter; the letter itself where title case would change its number of letters."""
    if char == "i" and lang in DOTTED_I:
        return "İ"
    title = char.title()
    return title if len(title) == 1 or "\ufb00" <= char <= "\ufb17" else char


def detruecased(tokens: list[str], lang: str) -> list[str]:
    """Return tokens with a capital letter at the beginning of sentences, as Moses' ``detruecase.perl``.

    Addresses are not changed, and scripts with one case have no capital letters. Dutch *ij* is one letter.
    """
    cased = []
    start = True
    for token in tokens:
        if start and not is_protected(token):
            letters = 2 if lang == "nl" and token.startswith("ij") else 1
            cased.append("".join(_capital(char, lang) for char in token[:letters]) + token[letters:])
        else:
            cased.append(token)
        if token in SENTENCE_END:
            start = True
        elif token not in DELAYED_START:
            start = False
    return cased


class Detokenizer:
    """Conversion of a line of tokens into running text.

    Args:
        lang: two-letter code; determines the treatment of apostrophes and of spaces around punctuation.
        detruecase: capitalise sentence starts.
        detokenize: join tokens and replace entities.
    """

    def __init__(self, lang: str, detruecase: bool = True, detokenize: bool = True) -> None:
        self._lang, self._detruecase = lang, detruecase
        self._moses = MosesDetokenizer(lang if lang in MOSES_RULES else "") if detokenize else None
        self._joining, self._spacing = _joining(lang), _spacing(lang)

    def __call__(self, line: str) -> str:
        """Return the line as running text."""
        tokens = line.replace(_AS_WORD, "").split()
        if self._detruecase:
            tokens = detruecased(tokens, self._lang)
        if self._moses is None or not tokens:
            return " ".join(tokens)
        text = " ".join(tokens).replace(" @-@ ", "-")
        if "&" in text:
            text = self._moses.unescape_xml(text)
        if "< / " in text:
            text = _with_tags(text)
        characters = set(text)
        quoted = not characters.isdisjoint(_CLOSING)
        if quoted:
            text = _QUOTATION_MARK.sub(rf"{_AS_WORD}\g<0>", text)
        text = _apply(self._joining, text, characters)
        text = self._moses.detokenize(text.split(" "), unescape=False)
        if quoted:
            text = _with_quotations(text, self._lang)
        if self._lang in WIDE_PUNCTUATION:
            text = _WIDE_SIGN.sub(" ", text)
        text = text.replace(_AS_WORD, "")
        return _apply(self._spacing, _closing_quote(text).replace(",..", ", .."), characters)


def _apply(rules: list[_Rule], text: str, characters: set[str]) -> str:
    """Apply the rules for the characters of a text."""
    for rule in rules:
        if not rule.signs.isdisjoint(characters):
            text = rule.pattern.sub(rule.by, text)
    return text


def _closing_quote(text: str) -> str:
    """Remove the space before a quotation mark at the end of a text, which can only be a closing one."""
    quoted = text.rstrip(".,;:!?)]")
    return f"{quoted[:-2]}{text[len(quoted) - 1 :]}" if quoted.endswith((' "', " '")) else text


def _with_tags(text: str) -> str:
    """Join the tokens of pairs of tags, and what is between them: ``< b > x < / b >``."""
    opened: list[tuple[str, int]] = []  # names of opening tags, and their numbers
    tags = list(_TAG.finditer(text))
    paired: set[int] = set()
    for number, tag in enumerate(tags):
        if not tag[1]:
            opened.append((tag[2], number))
        elif opened and opened[-1][0] == tag[2]:
            paired |= {number, opened.pop()[1]}
    parts, begin = [], 0
    for number in sorted(paired):
        tag = tags[number]
        closes = tag[1] is not None
        parts.append(text[begin : tag.start() - (closes and tag.start() > 0)])
        parts.append(f"</{tag[2]}>" if closes else f"<{tag[2]}>")
        begin = tag.end() + (not closes)
    return "".join([*parts, text[begin:]])


def _with_quotations(text: str, lang: str) -> str:
    """Join typographic quotation marks with what they enclose; a single one, with the word before or after it."""
    space = " " if lang in WIDE_PUNCTUATION else ""
    text, *pieces = _MARKED.split(text)
    signs, texts = pieces[::2], pieces[1::2]
    opened: list[str] = []
    for place, (sign, following) in enumerate(zip(signs, texts, strict=True), 1):
        wide = space if sign in _GUILLEMETS else ""
        if closes := bool(opened) and sign in _CLOSING[opened[-1]]:
            opened.pop()
        elif any(later in _CLOSING[sign] for later in signs[place:]):
            opened.append(sign)
        else:
            opens = sign in _ONLY_OPENING or (sign == "“" and following.lstrip(" ")[:1].isalnum())
            closes = text != "" and not opens
        if closes:
            text = text.rstrip(" ") + wide + sign + following
        else:
            text += sign + wide + following.lstrip(" ")
    return text
