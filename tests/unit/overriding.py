"""Command lines of tests with other values for some of their options."""

from collections.abc import Iterable, Sequence


def overridden(words: Iterable[object], options: Sequence[object]) -> list[str]:
    """Return words without the options that are given with other values, and these options."""
    given = {str(word) for word in options if str(word).startswith("--")}
    kept, keeps = [], True
    for word in map(str, words):
        keeps = word not in given if word.startswith("--") else keeps
        if keeps:
            kept.append(word)
    return [*kept, *map(str, options)]
