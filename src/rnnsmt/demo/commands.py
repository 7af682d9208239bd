"""The command of the embedded corpus."""

import argparse
from itertools import islice
from pathlib import Path

from rnnsmt.io import InputError, write_lines


def make_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output-dir", required=True, metavar="DIR")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    parser.add_argument(
        "--scale", type=float, default=1.0, metavar="X", help="times the usual number of training lines"
    )
    parser.add_argument(
        "--threads", type=int, default=1, metavar="N", help="processes; the text does not depend on them"
    )


def make(args: argparse.Namespace) -> dict[str, object]:
    """Write the embedded corpus: English-French text from a synchronous grammar, the same for the same seed.

    In-domain text is news of a harbour town, general text comes from technical manuals and laws, where many words mean
    something else, with a sixth of harbour news in it and the faults of crawled text. Three in ten pairs of both
    bitexts are translated carelessly (gender, order of adjectives, forms of verbs), so that the phrase table holds rare
    pairs that are wrong: what the RNN Encoder-Decoder is for. Every sentence of dev and test is absent from the
    training text, and some of their names are too. Numbers of lines at --scale 1: 4,000 in-domain pairs, 16,000 general
    pairs, 20,000 monolingual lines, 400 for dev, 500 for test; dev and test do not become smaller.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt demo make --output-dir try/demo --seed 1
    """
    from random import Random

    from rnnsmt.demo.noise import with_faults
    from rnnsmt.demo.writing import (
        CARELESS,
        DEV,
        GENERAL,
        HARBOUR_IN_GENERAL,
        HARBOUR_IN_MONO,
        IN_DOMAIN,
        MONO,
        TEST,
        first_sentences,
        sentences,
        unseen,
        write_pairs,
    )

    if not 0.01 <= args.scale <= 100:
        raise InputError(f"--scale {args.scale}: a number from 0.01 to 100 is needed")
    folder, seed = Path(args.output_dir), args.seed

    def size(lines: int) -> int:
        return max(1, round(args.scale * lines))

    in_domain = first_sentences(size(IN_DOMAIN), seed, "in-domain", 1.0, CARELESS, args.threads)
    general = first_sentences(size(GENERAL), seed, "general", HARBOUR_IN_GENERAL, CARELESS, args.threads)
    mono = first_sentences(size(MONO), seed, "mono", HARBOUR_IN_MONO, threads=args.threads)
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
