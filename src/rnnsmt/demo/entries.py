"""Lexicon of the demo corpus: entries of ``lexicon/*.tsv``, vocabulary of each domain, random choice of words."""

import re
from bisect import bisect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from random import Random
from typing import TypeVar

from rnnsmt.demo import english
from rnnsmt.demo.english import Verb
from rnnsmt.demo.french import Adjective, noun_plural
from rnnsmt.demo.tables import LexiconRow, read_table

Item = TypeVar("Item")

DOMAINS = ("common", "harbour", "conversation", "general")

KINDS = "PGVOLAET"
"""Semantic classes of nouns, see ``Noun``."""

USES = ("adverb", "opening", "joining", "month", "number", "modifier", "place", "time", "boilerplate")
"""Uses of fixed phrases."""

NAME_PARTS = {
    "feminine": ("whole",),
    "masculine": ("whole",),
    "surname": ("first", "middle", "last"),
    "place": ("first", "middle", "last"),
    "ship": ("first", "middle", "last"),
}
"""Parts of proper names by kind."""

PREPOSITIONS = frozenset(["à", "de", "dans", "sur", "avec", "contre", "par"])

FRENCH_NOUN = re.compile(r"(?P<words>[^/@]+) (?P<gender>[mf])(/(?P<plural>[^/@]+?))?( @(?P<context>pl|adj))?")

USUAL = 0.62
"""Probability of the first of several French translations."""


@dataclass(frozen=True)
class FrenchNoun:
    """French translation of a noun.

    Attributes:
        context: "pl" or "adj" if it is used mainly in the plural or with an adjective, and not otherwise.
    """

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
    """Verb with its frame: classes of subjects, objects and recipients; I is an infinitive, S a clause."""

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


@dataclass(frozen=True)
class Domain:
    """Vocabulary of a domain, by semantic class where necessary, and its style.

    Attributes:
        names: probability that a person or a vessel has a name.
        dialogue: relative frequency of personal pronouns as subjects.
    """

    nouns: dict[str, list[Noun]]
    adjectives: dict[str, list[AdjectiveEntry]]
    transitive: dict[str, list[VerbEntry]]
    intransitive: dict[str, list[VerbEntry]]
    giving: list[VerbEntry]
    planning: list[VerbEntry]
    saying: list[VerbEntry]
    acting_on_things: list[VerbEntry]
    modifiers: list[FixedPhrase]
    places: list[FixedPhrase]
    times: list[FixedPhrase]
    openings: list[FixedPhrase]
    adverbs: list[FixedPhrase]
    names: float
    dialogue: float


def noun(row: LexiconRow) -> Noun:
    """Return the entry of a line of ``nouns.tsv``."""
    translations = []
    for text in row.alternatives():
        match = FRENCH_NOUN.fullmatch(text)
        if not match:
            raise row.error(f"{text!r} is not a valid noun entry; write 'noun m', 'noun f/plural' or 'noun m @pl'")
        words = match["words"]
        plural = match["plural"] or noun_plural(words)
        translations.append(FrenchNoun(words.split(), plural.split(), match["gender"] == "f", match["context"] or ""))
    if all(translation.context for translation in translations):
        raise row.error("every French noun has @; at least one must be without @")
    kind = row.one_of("class", tuple(KINDS))
    return Noun(row["english"], row["plural"] or english.plural(row["english"]), translations, kind)


def adjective(row: LexiconRow) -> AdjectiveEntry:
    """Return the entry of a line of ``adjectives.tsv``."""
    translations = []
    for text in row.alternatives():
        masculine, _, feminine = text.strip("<!").partition("/")
        translations.append(Adjective(masculine, feminine, before=text.startswith("<"), invariable=text.endswith("!")))
    kinds = KINDS if row["classes"] == "*" else row.letters("classes", KINDS)
    return AdjectiveEntry(row["english"], translations, kinds)


def verb(row: LexiconRow) -> VerbEntry:
    """Return the entry of a line of ``verbs.tsv``."""
    translations = []
    for text in row.alternatives():
        infinitive, *fixed = text.removeprefix("se ").removeprefix("s'").split()
        if not infinitive.endswith(("er", "ir", "re")):
            raise row.error(
                f"{infinitive!r} is not an infinitive; the entry must begin with an infinitive in -er, -ir or -re"
            )
        preposition = fixed.pop() if fixed and fixed[-1] in PREPOSITIONS else ""
        translations.append(FrenchVerb(infinitive, text.startswith(("se ", "s'")), fixed, preposition))
    forms = Verb(row["english"], row["past"], row["participle"])
    objects = row["objects"] if row["objects"] in ("I", "S") else row.letters("objects", KINDS)
    return VerbEntry(forms, translations, row.letters("subjects", KINDS), objects, row.letters("recipients", KINDS))


def fixed_phrase(row: LexiconRow) -> FixedPhrase:
    """Return the entry of a line of ``phrases.tsv``."""
    row.one_of("use", USES)
    return FixedPhrase(row["english"].split(), [text.split() for text in row.alternatives()])


def entries(table: str, domain: str, parse: Callable[[LexiconRow], Item]) -> list[Item]:
    """Return the entries of a domain in a table of the lexicon, the most frequent ones first."""
    return [parse(row) for row in read_table(table) if row.one_of("domain", DOMAINS) == domain]


def phrases(domain: str, use: str) -> list[FixedPhrase]:
    """Return the fixed expressions of a domain for one use."""
    rows = (row for row in read_table("phrases") if row.one_of("domain", DOMAINS) == domain)
    return [fixed_phrase(row) for row in rows if row["use"] == use]


def names() -> dict[str, list[list[str]]]:
    """Return the given names, and the syllables of other names, by kind and part."""
    parts: dict[str, list[list[str]]] = {kind: [] for kind in NAME_PARTS}
    for row in read_table("names"):
        kind = row.one_of("kind", tuple(NAME_PARTS))
        expected = NAME_PARTS[kind][len(parts[kind]) :][:1]
        if row["part"] not in expected:
            raise row.error(
                f"part {row['part']!r} of {kind}; the parts must be {', '.join(NAME_PARTS[kind])} in this order"
            )
        parts[kind].append(row["words"].split())
    return parts


def _merge(domain_items: Sequence[Item], shared: Sequence[Item]) -> list[Item]:
    """Merge two lists that are sorted by frequency: two words of the domain, then a shared one, and so on."""
    merged: list[Item] = []
    rest = list(shared)
    for i, item in enumerate(domain_items):
        merged.append(item)
        if i % 2 and rest:
            merged.append(rest.pop(0))
    return merged + rest


def _domain(domain: str, names: float, dialogue: float) -> Domain:
    """Return a domain with its part and the common part of the lexicon."""
    own_nouns, common_nouns = (entries("nouns", d, noun) for d in (domain, "common"))
    own_adjectives, common_adjectives = (entries("adjectives", d, adjective) for d in (domain, "common"))
    verbs = _merge(entries("verbs", domain, verb), entries("verbs", "common", verb))
    plain = [v for v in verbs if not v.recipients and v.objects not in ("", "I", "S")]
    return Domain(
        nouns={
            k: _merge([n for n in own_nouns if n.kind == k], [n for n in common_nouns if n.kind == k]) for k in KINDS
        },
        adjectives={
            k: _merge([a for a in own_adjectives if k in a.kinds], [a for a in common_adjectives if k in a.kinds])
            for k in KINDS
        },
        transitive={k: [v for v in plain if k in v.subjects] for k in KINDS},
        intransitive={k: [v for v in verbs if not v.objects and k in v.subjects] for k in KINDS},
        giving=[v for v in verbs if v.recipients],
        planning=[v for v in verbs if v.objects == "I"],
        saying=[v for v in verbs if v.objects == "S"],
        acting_on_things=[v for v in plain if set(v.objects) & set("VO") and set(v.subjects) & set("PG")],
        modifiers=phrases(domain, "modifier"),
        places=phrases(domain, "place"),
        times=phrases(domain, "time"),
        openings=phrases("common", "opening"),
        adverbs=phrases("common", "adverb"),
        names=names,
        dialogue=dialogue,
    )


@cache
def harbour_domain() -> Domain:
    """Return the domain of news of a harbour town."""
    return _domain("harbour", names=0.14, dialogue=1.0)


@cache
def general_domain() -> Domain:
    """Return the domain of technical manuals and law."""
    return _domain("general", names=0.01, dialogue=0.1)


@cache
def _weights(size: int) -> list[float]:
    """Return the cumulative Zipf-Mandelbrot weights of this number of ranks."""
    return list(accumulate(1 / (rank + 2.7) for rank in range(size)))


def zipf(items: Sequence[Item], rng: Random) -> Item:
    """Draw one of the items; the probability of rank n is about proportional to 1/n (Zipf-Mandelbrot)."""
    weights = _weights(len(items))
    return items[bisect(weights, rng.random() * weights[-1], 0, len(items) - 1)]


def free(items: Sequence[Item], style: Random) -> Item:
    """Draw one of several good translations: the first with probability ``USUAL``, otherwise one of the others."""
    if len(items) == 1 or style.random() < USUAL:
        return items[0]
    return items[1 + int(style.random() * (len(items) - 1))]
