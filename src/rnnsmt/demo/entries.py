"""Parser of the word tables in ``rnnsmt.demo.lexicon``.

A line has the form ``english | french ; french ...``. The French words are equivalent translations, the most usual one
first. English nouns may have an irregular plural after ``/``; verbs have their three principal forms. French nouns are
followed by their gender and, after ``/``, by an irregular plural; adjectives by an irregular feminine; ``<`` marks an
adjective before the noun, ``!`` an invariable phrase; ``@pl`` (``@adj``) marks a word that is used mainly in the plural
(with an adjective) and not otherwise. Verbs have a frame: classes of subjects ``>`` classes of objects ``>`` classes of
recipients; ``I`` is an infinitive.
"""

from dataclasses import dataclass

from rnnsmt.demo import english
from rnnsmt.demo.english import Verb
from rnnsmt.demo.french import Adjective, noun_plural


@dataclass(frozen=True)
class FrenchNoun:
    """French translation of a noun."""

    singular: list[str]
    plural: list[str]
    feminine: bool
    context: str = ""


@dataclass(frozen=True)
class Noun:
    """Noun of a semantic class: P(erson), G(roup), V(essel), O(bject), L(place), A(bstract), E(vent), T(ime)."""

    singular: str
    plural: str
    french: list[FrenchNoun]
    kind: str


@dataclass(frozen=True)
class FrenchVerb:
    """French translation of a verb: reflexive or not, fixed words after it, preposition of its object."""

    infinitive: str
    reflexive: bool
    fixed: list[str]
    preposition: str


@dataclass(frozen=True)
class VerbEntry:
    """Verb with its frame."""

    english: Verb
    french: list[FrenchVerb]
    subjects: str
    objects: str
    recipients: str = ""


@dataclass(frozen=True)
class AdjectiveEntry:
    """Adjective with the classes of nouns that it modifies."""

    english: str
    french: list[Adjective]
    kinds: str


@dataclass(frozen=True)
class FixedPhrase:
    """Fixed expression: English words, and alternative French translations with their marks."""

    english: list[str]
    french: list[list[str]]


PREPOSITIONS = frozenset(["à", "de", "dans", "sur", "avec", "contre", "par"])


def _rows(table: str) -> list[list[str]]:
    """Split a table into lines and fields."""
    return [[field.strip() for field in line.split("|")] for line in table.strip().splitlines() if line.strip()]


def _alternatives(field: str) -> list[str]:
    """Split the alternative translations of a field."""
    return [part.strip() for part in field.split(";")]


def nouns(tables: dict[str, str]) -> list[Noun]:
    """Return all nouns of a lexicon, the most frequent ones of every class first."""
    found = []
    for kind, table in tables.items():
        for left, right in _rows(table):
            singular, _, plural = left.partition("/")
            french = [_french_noun(part) for part in _alternatives(right)]
            found.append(Noun(singular, plural or english.plural(singular), french, kind))
    return found


def _french_noun(text: str) -> FrenchNoun:
    """Parse a French noun."""
    text, _, context = text.partition("@")
    text, _, plural = text.partition("/")
    words, gender = text.strip().rsplit(" ", 1)
    return FrenchNoun(words.split(), (plural.strip() or noun_plural(words)).split(), gender == "f", context.strip())


def adjectives(tables: dict[str, str]) -> list[AdjectiveEntry]:
    """Return all adjectives of a lexicon."""
    return [
        AdjectiveEntry(left, [_french_adjective(part) for part in _alternatives(right)], kinds)
        for kinds, table in tables.items()
        for left, right in _rows(table)
    ]


def _french_adjective(text: str) -> Adjective:
    """Parse a French adjective."""
    before, invariable = text.startswith("<"), text.endswith("!")
    masculine, _, feminine = text.strip("<!").partition("/")
    return Adjective(masculine, feminine, before, invariable)


def verbs(table: str) -> list[VerbEntry]:
    """Return all verbs of a lexicon."""
    found = []
    for left, right, *frame in _rows(table):
        subjects, objects, *recipients = frame[0].split(">") if frame else ("PG", "S")
        french = [_french_verb(part) for part in _alternatives(right)]
        found.append(VerbEntry(Verb(*left.split("/")), french, subjects, objects, "".join(recipients)))
    return found


def _french_verb(text: str) -> FrenchVerb:
    """Parse a French verb."""
    reflexive = text.startswith(("se ", "s'"))
    infinitive, *fixed = text.removeprefix("se ").removeprefix("s'").split()
    preposition = fixed.pop() if fixed and fixed[-1] in PREPOSITIONS else ""
    return FrenchVerb(infinitive, reflexive, fixed, preposition)


def phrases(table: str) -> list[FixedPhrase]:
    """Return the fixed expressions of a table."""
    found = []
    for left, right in _rows(table):
        found.append(FixedPhrase(left.split(), [part.split() for part in _alternatives(right)]))
    return found
