"""Align the words of a parallel corpus in both directions.

Both outputs are in Pharaoh format, ``i-j`` = source word i with target word j, from 0; line n belongs to sentence pair
n, a pair with an empty side gets an empty line.

Aligners:
  fast_align  Dyer et al. 2013: IBM Model 2 with a diagonal prior and a Dirichlet prior on the lexical distributions
"""

import argparse

ALIGNERS = ("fast_align",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the stage."""
    parser.add_argument("--source", required=True, help="tokenised text, one sentence a line")
    parser.add_argument("--target", required=True, help="its translation, line by line")
    parser.add_argument("--aligner", choices=ALIGNERS, default="fast_align", help="the model, see above")
    parser.add_argument("--output-forward", required=True, help="at most one source word for each target word")
    parser.add_argument("--output-reverse", required=True, help="at most one target word for each source word")
    parser.add_argument("--seed", type=int, default=1, help="no aligner so far draws random numbers")
    parser.add_argument("--threads", type=int, default=1, help="directions at the same time; same result")


def run(args: argparse.Namespace) -> dict[str, object]:
    """Read, align, write."""
    from rnnsmt.align import fast_align
    from rnnsmt.align.bitext import read_bitext
    from rnnsmt.align.pharaoh import write_links

    bitext = read_bitext(args.source, args.target)
    forward, reverse = fast_align.align(bitext, args.threads)
    write_links(args.output_forward, forward)
    write_links(args.output_reverse, reverse)
    return {
        "sentences": bitext.sentences,
        "forward links": len(forward.source),
        "reverse links": len(reverse.source),
    }
