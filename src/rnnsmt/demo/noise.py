"""Typical errors of crawled text, inserted into clean sentence pairs."""

from collections.abc import Iterable, Iterator
from random import Random

from rnnsmt.demo.entries import phrases
from rnnsmt.demo.lexicon import general_phrases

Pair = tuple[str, str]

BOILERPLATE = phrases(general_phrases.BOILERPLATE)

# probability of each error in a pair of the general text
FAULTS = {
    "boilerplate": 0.04,
    "misaligned": 0.03,
    "untranslated": 0.02,
    "mojibake": 0.015,
    "truncated": 0.012,
    "latin-1": 0.01,
    "spaces": 0.01,
    "merged": 0.008,
    "capitals": 0.008,
    "controls": 0.007,
    "empty": 0.007,
    "markup": 0.006,
    "swapped": 0.005,
    "endless": 0.004,
    "separator": 0.004,
}


def with_faults(pairs: Iterable[Pair], rng: Random, scale: float = 1.0) -> Iterator[tuple[bytes, bytes]]:
    """Yield the pairs as bytes, some of them with errors.

    Args:
        pairs: clean pairs.
        rng: random generator of the errors.
        scale: factor of the probabilities in ``FAULTS``.
    """
    faults, chances = list(FAULTS), [scale * chance for chance in FAULTS.values()]
    before = ("", "")
    for pair in pairs:
        (fault,) = rng.choices([*faults, ""], [*chances, 1 - sum(chances)])
        source, target = _spoil(fault, pair, before, rng) if fault else pair
        yield source.encode("utf-8"), _encode(target, fault)
        before = pair


def _encode(text: str, fault: str) -> bytes:
    """Encode a target side."""
    return text.encode("latin-1", "ignore") if fault == "latin-1" else text.encode("utf-8")


def _spoil(fault: str, pair: Pair, before: Pair, rng: Random) -> Pair:  # noqa: PLR0911, PLR0912 - a list of faults
    """Insert an error into a pair; ``before`` is the previous pair."""
    source, target = pair
    match fault:
        case "boilerplate":
            entry = rng.choice(BOILERPLATE)
            return " ".join(entry.english), " ".join(entry.french[0])
        case "misaligned":
            return source, before[1]
        case "untranslated":
            return (source, source) if rng.random() < 0.7 else (target, target)
        case "swapped":
            return target, source
        case "mojibake":
            return source, target.encode("utf-8").decode("cp1252", "replace")
        case "truncated":
            return source, target[: len(target) // 5]
        case "merged":
            return source, f"{before[1]} {target}"
        case "controls":
            at = rng.randrange(1, len(target) + 1)
            return source, target[:at] + rng.choice("\x00\x07\x0b\x1b\x85\u2028\x9d") + target[at:]
        case "empty":
            return rng.choice([("", target), (source, ""), ("", ""), ("   ", target)])
        case "endless":
            return " ".join([source] * 12), " ".join([target] * 12)
        case "capitals":
            return source.upper(), target.upper()
        case "markup":
            return f"<b>{source}</b>", f"<b>{target}</b> &nbsp;"
        case "separator":
            return source.replace(" ", " ||| ", 1), target.replace(" ", " ||| ", 1)
        case "spaces":
            return "  " + source.replace(" ", "\t", 1) + " ", target.replace(" ", "  ") + "\r"
    return pair
