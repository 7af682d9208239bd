"""Invented proper names: some are frequent, others occur only once."""

from random import Random

from rnnsmt.demo.lexicon.names import GIVEN_FEMININE, GIVEN_MASCULINE, PLACE, SHIP, SURNAME

KNOWN = 0.7
"""Probability that a name is one of the frequent ones."""

WELL_KNOWN = 60
"""Number of frequent names of each kind."""


def _make(syllables: tuple[str, ...], rng: Random) -> str:
    """Compose a name of random syllables."""
    name = "".join(rng.choice(part.split()) for part in syllables)
    return name[:-1] if name.endswith("-") else name


def _pool(syllables: tuple[str, ...]) -> list[str]:
    """Return the frequent names of one kind, which do not depend on the seed of the corpus."""
    rng = Random("names")
    return [_make(syllables, rng) for _ in range(WELL_KNOWN)]


_SURNAMES, _PLACES, _SHIPS = _pool(SURNAME), _pool(PLACE), _pool(SHIP)


def _name(pool: list[str], syllables: tuple[str, ...], rng: Random) -> str:
    """Draw a frequent name, or compose a new one."""
    if rng.random() < KNOWN:
        return pool[int(WELL_KNOWN * rng.random() ** 2)]
    return _make(syllables, rng)


def person(rng: Random, feminine: bool) -> tuple[str, str]:
    """Draw a given name and a surname."""
    given = (GIVEN_FEMININE if feminine else GIVEN_MASCULINE).split()
    return given[int(len(given) * rng.random() ** 1.5)], _name(_SURNAMES, SURNAME, rng)


def place(rng: Random) -> str:
    """Draw the name of a town."""
    return _name(_PLACES, PLACE, rng)


def ship(rng: Random) -> str:
    """Draw the name of a ship."""
    return _name(_SHIPS, SHIP, rng)
