"""Write the embedded corpus: English-French text from a synchronous grammar, the same for the same seed.

In-domain text is news of a harbour town, general text comes from technical manuals and laws, where many words mean
something else, with a sixth of harbour news in it and the faults of crawled text. Three in ten pairs of both bitexts
are translated carelessly, as crawled text often is: adjectives in English order, in the wrong gender or left out, verbs
in another form. A phrase table gives such a pair, seen once, the probability of a good one; the other words of the
phrase tell, which is what the RNN Encoder-Decoder looks at. They are there on purpose, to give it something to do;
French text alone, dev and test have none. Every sentence of dev and test is absent from the training text, and some of
their names are too. Numbers of lines at --scale 1: 4,000 in-domain pairs, 16,000 general pairs, 20,000 monolingual
lines, 400 for dev, 500 for test; dev and test do not become smaller.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from random import Random

from rnnsmt.demo.manuals import GeneralSpeaker
from rnnsmt.demo.news import HarbourSpeaker
from rnnsmt.demo.noise import Pair
from rnnsmt.demo.sentences import SentenceSpeaker
from rnnsmt.io import atomic_binary
from rnnsmt.parallel import map_chunks

IN_DOMAIN, GENERAL, MONO, DEV, TEST = 4000, 16000, 20000, 400, 500

HARBOUR_IN_GENERAL = 1 / 6
"""Share of harbour news in the general bitext: what data selection should find."""

HARBOUR_IN_MONO = 0.5

CARELESS = 0.3
"""Share of careless translations in both bitexts; French text, dev and test have none."""


def sentence(seed: int, part: str, harbour_share: float, number: int, style: int = 0, careless: float = 0.0) -> Pair:
    """One pair of a part of the corpus.

    Args:
        seed: of the corpus.
        part: names the random stream.
        harbour_share: of harbour news; the rest is general.
        number: of the sentence in its part; it does not depend on the others.
        style: another number gives other translations of the same English sentences.
        careless: share of careless translations.
    """
    meaning, ways = Random(f"{seed} {part} {number}"), Random(f"{seed} {part} {number} {style}")
    kind: type[HarbourSpeaker] | type[GeneralSpeaker]
    kind = HarbourSpeaker if meaning.random() < harbour_share else GeneralSpeaker
    speaker: SentenceSpeaker = kind(meaning, ways)
    speaker.careless = careless > 0 and Random(f"{seed} {part} {number} careless").random() < careless
    return speaker.sentence()


def sentences(seed: int, part: str, harbour_share: float, style: int = 0, careless: float = 0.0) -> Iterator[Pair]:
    """Endless pairs of one part of the corpus; see ``sentence``."""
    return (sentence(seed, part, harbour_share, number, style, careless) for number in count())


def first_sentences(
    lines: int, seed: int, part: str, harbour_share: float, careless: float = 0.0, threads: int = 1
) -> list[Pair]:
    """The first pairs of one part of the corpus, written by several processes; see ``sentence``."""
    chunks = map_chunks(partial(partial, _numbered, seed, part, harbour_share, careless), range(lines), threads)
    return [pair for chunk in chunks for pair in chunk]


def _numbered(seed: int, part: str, harbour_share: float, careless: float, numbers: Iterable[int]) -> list[Pair]:
    return [sentence(seed, part, harbour_share, number, careless=careless) for number in numbers]


def unseen(pairs: Iterable[Pair], known: set[str]) -> Iterator[Pair]:
    """The pairs of which neither side is known; each once."""
    for pair in pairs:
        if pair[0] not in known and pair[1] not in known:
            known.add(pair[0])
            yield pair


def write_pairs(folder: Path, name: str, pairs: Iterable[tuple[bytes, bytes]]) -> None:
    """Write both sides of a bitext, compressed."""
    with atomic_binary(folder / f"{name}.en.gz") as source, atomic_binary(folder / f"{name}.fr.gz") as target:
        for left, right in pairs:
            source.write(left.replace(b"\n", b" ") + b"\n")
            target.write(right.replace(b"\n", b" ") + b"\n")
