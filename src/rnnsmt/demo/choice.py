"""Random choices, and the vocabulary of the domains."""

from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from random import Random
from types import ModuleType
from typing import TypeVar

from rnnsmt.demo import entries
from rnnsmt.demo.entries import AdjectiveEntry, FixedPhrase, Noun, VerbEntry
from rnnsmt.demo.lexicon import common, general, general_phrases, harbour

Item = TypeVar("Item")

USUAL = 0.62
"""Probability of the first of several French translations."""


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


KINDS = "PGVOLAET"
"""Semantic classes of nouns, see ``entries.Noun``."""


def _merge(own: Sequence[Item], shared: Sequence[Item]) -> list[Item]:
    """Merge two lists that are sorted by frequency: two words of the domain, then a shared one, and so on."""
    merged: list[Item] = []
    rest = list(shared)
    for i, item in enumerate(own):
        merged.append(item)
        if i % 2 and rest:
            merged.append(rest.pop(0))
    return merged + rest


def _domain(lexicon: ModuleType, fixed: ModuleType, names: float, dialogue: float) -> Domain:
    """Build a domain from its own and the shared lexicon."""
    own_nouns, shared_nouns = entries.nouns(lexicon.NOUNS), entries.nouns(common.NOUNS)
    own_adjectives = entries.adjectives(lexicon.ADJECTIVES)
    shared_adjectives = entries.adjectives(common.ADJECTIVES)
    verbs = _merge(entries.verbs(lexicon.VERBS), entries.verbs(common.VERBS))
    plain = [v for v in verbs if not v.recipients and v.objects not in ("", "I")]
    return Domain(
        nouns={
            k: _merge([n for n in own_nouns if n.kind == k], [n for n in shared_nouns if n.kind == k]) for k in KINDS
        },
        adjectives={k: _merge([a for a in own_adjectives if k in a.kinds], shared_adjectives) for k in KINDS},
        transitive={k: [v for v in plain if k in v.subjects] for k in KINDS},
        intransitive={k: [v for v in verbs if not v.objects and k in v.subjects] for k in KINDS},
        giving=[v for v in verbs if v.recipients],
        planning=[v for v in verbs if v.objects == "I"],
        saying=entries.verbs(common.SAYING),
        acting_on_things=[v for v in plain if set(v.objects) & set("VO") and set(v.subjects) & set("PG")],
        modifiers=entries.phrases(fixed.MODIFIERS),
        places=entries.phrases(fixed.PLACES),
        times=entries.phrases(fixed.TIMES),
        openings=entries.phrases(common.OPENINGS),
        adverbs=entries.phrases(common.ADVERBS),
        names=names,
        dialogue=dialogue,
    )


@cache
def harbour_domain() -> Domain:
    """Return the domain of news of a harbour town."""
    return _domain(harbour, harbour, 0.14, 1.0)


@cache
def general_domain() -> Domain:
    """Return the domain of technical manuals and law."""
    return _domain(general, general_phrases, 0.01, 0.1)
