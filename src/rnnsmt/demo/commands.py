"""The command of the demo corpus."""

import argparse
from itertools import islice
from pathlib import Path

from rnnsmt.base.io import InputError, write_lines


def make_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output-dir", required=True, metavar="DIR", help="output directory")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="random seed")
    parser.add_argument(
        "--scale",
        type=float,
        default=1.0,
        metavar="X",
        help="scale factor for the number of training lines, 0.01 to 100",
    )
    parser.add_argument(
        "--threads", type=int, default=1, metavar="N", help="number of processes; does not affect the result"
    )


def make(args: argparse.Namespace) -> dict[str, object]:
    """Generate the demo corpus: English-French text from a synchronous grammar, reproducible from the seed.

    The in-domain text is news from a harbour town. The general text consists of technical manuals and laws, in which
    many words have a different meaning; it contains errors typical of crawled text, and one sixth of it is harbour
    news. In both parallel corpora, 30 % of the pairs have translation errors (gender, adjective order, verb forms). The
    phrase table therefore contains rare wrong pairs, which the RNN Encoder-Decoder can distinguish from correct ones.
    No sentence of the dev and test sets occurs in the training text, and some names in the dev and test sets do not
    occur there.

    Numbers of lines at --scale 1: 4,000 in-domain pairs, 16,000 general pairs, 20,000 monolingual lines, 400 for dev,
    2,700 for test. The sizes of dev and test do not depend on --scale.

    Example, in the directory of a run of the demo corpus:

        rnnsmt demo make --output-dir try/demo --seed 1
    """
    from random import Random

    from rnnsmt.demo.sentences import (
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
        with_faults,
        write_pairs,
    )

    if not 0.01 <= args.scale <= 100:
        raise InputError(f"--scale {args.scale}: must be a number from 0.01 to 100")
    directory, seed = Path(args.output_dir), args.seed

    def size(lines: int) -> int:
        return max(1, round(args.scale * lines))

    in_domain = first_sentences(size(IN_DOMAIN), seed, "in-domain", 1.0, CARELESS, args.threads)
    general = first_sentences(size(GENERAL), seed, "general", HARBOUR_IN_GENERAL, CARELESS, args.threads)
    mono = first_sentences(size(MONO), seed, "mono", HARBOUR_IN_MONO, threads=args.threads)
    known = {pair[0] for pair in [*in_domain, *general]} | {pair[1] for pair in mono}
    held_out = unseen(sentences(seed, "held-out", 1.0), known)
    dev, test = list(islice(held_out, DEV)), list(islice(held_out, TEST))
    write_pairs(directory, "in-domain", with_faults(in_domain, Random(f"{seed} faults in-domain"), 0.03))
    write_pairs(directory, "general", with_faults(general, Random(f"{seed} faults general")))
    write_lines(directory / "mono.fr.gz", (target for _, target in mono))
    for name, pairs in (("dev", dev), ("test", test)):
        write_lines(directory / f"{name}.en", (source for source, _ in pairs))
        write_lines(directory / f"{name}.fr", (target for _, target in pairs))
    return {"in-domain": len(in_domain), "general": len(general), "mono": len(mono), "dev": len(dev), "test": len(test)}
