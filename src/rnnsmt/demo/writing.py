"""Generation of the embedded corpus: English-French text from a synchronous grammar, reproducible from the seed.

In-domain text is news of a harbour town. General text consists of technical manuals and laws, in which many words have
another meaning; one sixth of it is harbour news, and it has the errors of crawled text. 30 % of the pairs of both
parallel corpora are translated carelessly, as is common in crawled text: adjectives in English order, with the wrong
gender or left out, verbs in another form. In a phrase table, such a pair that was seen once has the probability of a
good one; only the other words of the phrase reveal the error, which the RNN Encoder-Decoder can learn. The errors are
intended to give it a task; French monolingual text, dev and test have none. No sentence of dev and test occurs in the
training text, and some of their names do not either. Numbers of lines at --scale 1: 4,000 in-domain pairs, 16,000
general pairs, 20,000 monolingual lines, 400 for dev, 500 for test; the sizes of dev and test do not depend on --scale.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from random import Random

from rnnsmt.base.io import atomic_binary
from rnnsmt.base.parallel import map_chunks
from rnnsmt.demo.entries import phrases
from rnnsmt.demo.sentences import GeneralSpeaker, HarbourSpeaker, SentenceSpeaker

Pair = tuple[str, str]

IN_DOMAIN, GENERAL, MONO, DEV, TEST = 4000, 16000, 20000, 400, 500

HARBOUR_IN_GENERAL = 1 / 6
"""Share of harbour news in the general text, which data selection should find."""

HARBOUR_IN_MONO = 0.5
"""Share of harbour news in the monolingual text."""

CARELESS = 0.3
"""Share of careless translations in both parallel corpora; monolingual text, dev and test have none."""

BOILERPLATE = phrases("general", "boilerplate")

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


def sentence(seed: int, part: str, harbour_share: float, number: int, style: int = 0, careless: float = 0.0) -> Pair:
    """Return one sentence pair of a part of the corpus.

    Args:
        seed: seed of the corpus.
        part: name of the part, which selects the random stream.
        harbour_share: share of harbour news; the rest is general text.
        number: number of the sentence in its part; sentences are independent of each other.
        style: a different number gives different translations of the same English sentences.
        careless: share of careless translations.
    """
    meaning, ways = Random(f"{seed} {part} {number}"), Random(f"{seed} {part} {number} {style}")
    kind: type[HarbourSpeaker] | type[GeneralSpeaker]
    kind = HarbourSpeaker if meaning.random() < harbour_share else GeneralSpeaker
    speaker: SentenceSpeaker = kind(meaning, ways)
    speaker.careless = careless > 0 and Random(f"{seed} {part} {number} careless").random() < careless
    return speaker.sentence()


def sentences(seed: int, part: str, harbour_share: float, style: int = 0, careless: float = 0.0) -> Iterator[Pair]:
    """Yield pairs of one part of the corpus without end; see ``sentence``."""
    return (sentence(seed, part, harbour_share, number, style, careless) for number in count())


def first_sentences(
    lines: int, seed: int, part: str, harbour_share: float, careless: float = 0.0, threads: int = 1
) -> list[Pair]:
    """Return the first pairs of one part of the corpus, generated in several processes; see ``sentence``."""
    chunks = map_chunks(partial(partial, _numbered, seed, part, harbour_share, careless), range(lines), threads)
    return [pair for chunk in chunks for pair in chunk]


def _numbered(seed: int, part: str, harbour_share: float, careless: float, numbers: Iterable[int]) -> list[Pair]:
    """Return the pairs with these numbers."""
    return [sentence(seed, part, harbour_share, number, careless=careless) for number in numbers]


def unseen(pairs: Iterable[Pair], known: set[str]) -> Iterator[Pair]:
    """Yield the pairs of which neither side is in ``known``, without duplicates."""
    for pair in pairs:
        if pair[0] not in known and pair[1] not in known:
            known.add(pair[0])
            yield pair


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


def write_pairs(folder: Path, name: str, pairs: Iterable[tuple[bytes, bytes]]) -> None:
    """Write both sides of a parallel corpus to compressed files; line breaks inside a segment become spaces."""
    with atomic_binary(folder / f"{name}.en.gz") as source, atomic_binary(folder / f"{name}.fr.gz") as target:
        for left, right in pairs:
            source.write(left.replace(b"\n", b" ") + b"\n")
            target.write(right.replace(b"\n", b" ") + b"\n")
