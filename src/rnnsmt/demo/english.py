"""English morphology and orthography: verb forms, a/an, punctuation."""

import re
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

DOUBLED = frozenset(["run", "stop", "set", "plug", "cut", "put", "get"])
"""Verbs that double their last letter before -ing."""
SOFT_START = re.compile(r"(?i)[aeiou]")
HARD_VOWEL = re.compile(r"(?i)(uni|use|usa|eu|one\b|once)")


class Verb(NamedTuple):
    """Principal forms of a verb; words after the first are invariable ("take part in")."""

    base: str
    past: str
    participle: str

    def third(self) -> str:
        """Return the third person singular, e.g. "sails"."""
        return _with_particle(self.base, _third)

    def ing(self) -> str:
        """Return the present participle, e.g. "sailing"."""
        return _with_particle(self.base, _ing)


def _with_particle(text: str, change: Callable[[str], str]) -> str:
    """Apply a function to the first word."""
    head, _, rest = text.partition(" ")
    changed = change(head)
    return f"{changed} {rest}" if rest else changed


@cache
def _third(word: str) -> str:
    if word == "have":
        return "has"
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("s", "sh", "ch", "x", "o", "z")) else "s")


@cache
def _ing(word: str) -> str:
    if word in DOUBLED:
        return word + word[-1] + "ing"
    if word.endswith("ie"):
        return word[:-2] + "ying"
    if word.endswith("e") and not word.endswith(("ee", "oe")):
        return word[:-1] + "ing"
    return word + "ing"


@cache
def plural(text: str) -> str:
    """Return the regular plural of a noun, or of the last word of a compound."""
    if text.endswith("y") and text[-2] not in "aeiou":
        return text[:-1] + "ies"
    return text + ("es" if text.endswith(("s", "sh", "ch", "x")) else "s")


def _article(following: str) -> str:
    """Return "a" or "an" for the following word."""
    if following.startswith(("hour", "honest")):
        return "an"
    return "an" if SOFT_START.match(following) and not HARD_VOWEL.match(following) else "a"


def spell(words: list[str]) -> str:
    """Return the printed sentence; ``a^`` is the indefinite article, ``“`` and ``”`` become straight quotes."""
    words = " ".join(words).split(" ")
    done = [
        _article(words[i + 1]) if word == "a^" and i + 1 < len(words) else word for i, word in enumerate(words) if word
    ]
    text = re.sub(r" ([,.:;!?%)”])", r"\1", " ".join(done))
    text = text.replace(" 's", "'s").replace("“ ", "“").replace("( ", "(")
    text = text.replace("“", '"').replace("”", '"')
    return re.sub(r"^\"?.", lambda match: match.group().upper(), text)
