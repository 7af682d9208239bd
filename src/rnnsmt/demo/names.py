"""Invented proper names; some come again and again, others appear once."""

from random import Random

from rnnsmt.demo.lexicon.names import GIVEN_FEMININE, GIVEN_MASCULINE, PLACE, SHIP, SURNAME

KNOWN = 0.7
"""How often a name is one of the well-known ones."""

WELL_KNOWN = 60


def _make(syllables: tuple[str, ...], rng: Random) -> str:
    name = "".join(rng.choice(part.split()) for part in syllables)
    return name[:-1] if name.endswith("-") else name


def _pool(syllables: tuple[str, ...]) -> list[str]:
    rng = Random("names")
    return [_make(syllables, rng) for _ in range(WELL_KNOWN)]


_SURNAMES, _PLACES, _SHIPS = _pool(SURNAME), _pool(PLACE), _pool(SHIP)


def _name(pool: list[str], syllables: tuple[str, ...], rng: Random) -> str:
    if rng.random() < KNOWN:
        return pool[int(WELL_KNOWN * rng.random() ** 2)]
    return _make(syllables, rng)


def person(rng: Random, feminine: bool) -> tuple[str, str]:
    """Given name and surname."""
    given = (GIVEN_FEMININE if feminine else GIVEN_MASCULINE).split()
    return given[int(len(given) * rng.random() ** 1.5)], _name(_SURNAMES, SURNAME, rng)


def place(rng: Random) -> str:
    """A town."""
    return _name(_PLACES, PLACE, rng)


def ship(rng: Random) -> str:
    """A boat."""
    return _name(_SHIPS, SHIP, rng)
