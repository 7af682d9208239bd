"""Write the embedded corpus: English-French text from a synchronous grammar, the same for the same seed.

In-domain text is news of a harbour town, general text comes from technical manuals and laws, where many words mean
something else, with a sixth of harbour news in it and the faults of crawled text. Every sentence of dev and test is
absent from the training text, and some of their names are too. Numbers of lines at --scale 1: 4,000 in-domain pairs,
16,000 general pairs, 20,000 monolingual lines, 400 for dev, 500 for test; dev and test do not become smaller.
"""

import argparse
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from random import Random

from rnnsmt.demo.manuals import GeneralSpeaker
from rnnsmt.demo.news import HarbourSpeaker
from rnnsmt.demo.noise import Pair, with_faults
from rnnsmt.demo.sentences import SentenceSpeaker
from rnnsmt.io import InputError, atomic_binary, write_lines

IN_DOMAIN, GENERAL, MONO, DEV, TEST = 4000, 16000, 20000, 400, 500

HARBOUR_IN_GENERAL = 1 / 6
"""Share of harbour news in the general bitext: what data selection should find."""

HARBOUR_IN_MONO = 0.5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The stage's options."""
    parser.add_argument("--output-dir", required=True, metavar="DIR")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    parser.add_argument(
        "--scale", type=float, default=1.0, metavar="X", help="times the usual number of training lines"
    )


def run(args: argparse.Namespace) -> dict[str, object]:
    """Write all files of the corpus."""
    if not 0.01 <= args.scale <= 100:
        raise InputError(f"--scale {args.scale}: a number from 0.01 to 100 is needed")
    folder, seed = Path(args.output_dir), args.seed

    def size(lines: int) -> int:
        return max(1, round(args.scale * lines))

    in_domain = list(islice(sentences(seed, "in-domain", 1.0), size(IN_DOMAIN)))
    general = list(islice(sentences(seed, "general", HARBOUR_IN_GENERAL), size(GENERAL)))
    mono = list(islice(sentences(seed, "mono", HARBOUR_IN_MONO), size(MONO)))
    known = {pair[0] for pair in [*in_domain, *general]} | {pair[1] for pair in mono}
    held_out = unseen(sentences(seed, "held-out", 1.0), known)
    dev, test = list(islice(held_out, DEV)), list(islice(held_out, TEST))
    write_pairs(folder, "in-domain", with_faults(in_domain, Random(f"{seed} faults in-domain"), 0.03))
    write_pairs(folder, "general", with_faults(general, Random(f"{seed} faults general")))
    write_lines(folder / "mono.fr.gz", (target for _, target in mono))
    for name, pairs in (("dev", dev), ("test", test)):
        write_lines(folder / f"{name}.en", (source for source, _ in pairs))
        write_lines(folder / f"{name}.fr", (target for _, target in pairs))
    return {"in-domain": len(in_domain), "general": len(general), "mono": len(mono), "dev": len(dev), "test": len(test)}


def sentences(seed: int, part: str, harbour_share: float, style: int = 0) -> Iterator[Pair]:
    """Endless pairs of one part of the corpus.

    Args:
        seed: of the corpus.
        part: names the random stream.
        harbour_share: of harbour news; the rest is general.
        style: another number gives other translations of the same English sentences.
    """
    number = 0
    while True:
        meaning, ways = Random(f"{seed} {part} {number}"), Random(f"{seed} {part} {number} {style}")
        kind: type[HarbourSpeaker] | type[GeneralSpeaker]
        kind = HarbourSpeaker if meaning.random() < harbour_share else GeneralSpeaker
        speaker: SentenceSpeaker = kind(meaning, ways)
        yield speaker.sentence()
        number += 1


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
