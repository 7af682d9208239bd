"""Combine the alignments of both directions into one (Moses: symal; fast_align: atools).

All files are in Pharaoh format, source-target in both directions.
"""

import argparse

from rnnsmt.align.pharaoh import read_links, write_links
from rnnsmt.io import InputError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the stage."""
    parser.add_argument(
        "--forward", required=True, metavar="FILE", help="alignment with at most one source word per target word"
    )
    parser.add_argument(
        "--reverse", required=True, metavar="FILE", help="alignment with at most one target word per source word"
    )
    parser.add_argument(
        "--heuristic",
        choices=["grow-diag-final-and", "grow-diag-final", "grow-diag", "intersection", "union"],
        default="grow-diag-final-and",
        help="how to combine them",
    )
    parser.add_argument(
        "--order",
        choices=["atools", "symal"],
        default="atools",
        help="whose order of trying links grow-diag follows: they differ in one sentence in eight",
    )
    parser.add_argument(
        "--output", required=True, metavar="FILE", help="the combined alignment, sorted by source position"
    )


def run(args: argparse.Namespace) -> dict[str, object]:
    """Read both directions, combine, write."""
    from rnnsmt.align.symmetrization import symmetrize

    forward, reverse = read_links(args.forward), read_links(args.reverse)
    if forward.sentences != reverse.sentences:
        raise InputError(
            f"{args.forward} has {forward.sentences} lines, but {args.reverse} has {reverse.sentences}; "
            "both must be alignments of the same text"
        )
    links = symmetrize(forward, reverse, args.heuristic, args.order)
    write_links(args.output, links)
    return {
        "sentences": links.sentences,
        "forward links": len(forward.source),
        "reverse links": len(reverse.source),
        "links": len(links.source),
    }
