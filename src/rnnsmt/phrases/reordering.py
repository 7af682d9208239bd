"""The lexicalised reordering table ``wbe-msd-bidirectional-fe`` (Koehn et al. 2005), in Moses' format and order.

Six probabilities of every phrase pair: monotone, swap, discontinuous towards the phrase before it, and the same towards
the phrase after it; counts with additive smoothing.
"""

import argparse

from rnnsmt.phrases.options import add_resources


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--extract", required=True, metavar="FILE", help="what 'phrases extract' wrote")
    parser.add_argument("--output", required=True, metavar="FILE", help="the reordering table")
    parser.add_argument("--smoothing", type=float, default=0.5, help="added to every count")
    add_resources(parser)


def run(args: argparse.Namespace) -> dict[str, object]:
    from rnnsmt.phrases.orientation import write_reordering_table

    return write_reordering_table(args.extract, args.output, args.smoothing, args.threads, args.memory_mb)
