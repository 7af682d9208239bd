"""Align the words of a parallel corpus in both directions.

Both outputs are in Pharaoh format, ``i-j`` = source word i with target word j, from 0; line n belongs to sentence pair
n, a pair with an empty side gets an empty line.

Aligners, each of which starts from the one before it:
  fast_align  IBM Model 2 with a preference for the diagonal (Dyer et al. 2013): the fastest
  hmm         HMM with jumps that depend on word classes (Vogel et al. 1996; Och and Ney 2003)
  model4      IBM Model 4 with word classes (Brown et al. 1993), as MGIZA in Moses' standard recipe: the best

No aligner draws random numbers, and the number of threads does not change the result.
"""

import argparse

ALIGNERS = ("fast_align", "hmm", "model4")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the stage."""
    parser.add_argument("--source", required=True, metavar="FILE", help="tokenised text, one sentence a line")
    parser.add_argument("--target", required=True, metavar="FILE", help="its translation, line by line")
    parser.add_argument("--aligner", choices=ALIGNERS, default="model4", help="the model, see above")
    parser.add_argument(
        "--output-forward", required=True, metavar="FILE", help="at most one source word for each target word"
    )
    parser.add_argument(
        "--output-reverse", required=True, metavar="FILE", help="at most one target word for each source word"
    )
    parser.add_argument("--threads", type=int, default=1, help="2: both directions at the same time")


def run(args: argparse.Namespace) -> dict[str, object]:
    """Read, align, write."""
    from rnnsmt.align.bitext import read_bitext
    from rnnsmt.align.directions import align
    from rnnsmt.align.pharaoh import write_links

    bitext = read_bitext(args.source, args.target)
    forward, reverse = align(bitext, args.aligner, args.threads)
    write_links(args.output_forward, forward)
    write_links(args.output_reverse, reverse)
    return {
        "sentences": bitext.sentences,
        "forward links": len(forward.source),
        "reverse links": len(reverse.source),
    }
