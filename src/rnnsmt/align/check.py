"""Check an alignment made elsewhere against its text, and write it in the form the other stages read.

The alignment is in Pharaoh format, ``i-j`` = source word i with target word j, from 0, one line for each sentence pair.
Links are sorted and doubled ones dropped; nothing else is changed.
"""

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the stage."""
    parser.add_argument("--source", required=True, metavar="FILE", help="tokenised text, one sentence a line")
    parser.add_argument("--target", required=True, metavar="FILE", help="its translation, line by line")
    parser.add_argument("--alignment", required=True, metavar="FILE", help="the alignment to check")
    parser.add_argument("--output", required=True, metavar="FILE", help="the same links, sorted by source position")


def run(args: argparse.Namespace) -> dict[str, object]:
    """Read all three, check every position, write."""
    import numpy as np

    from rnnsmt.align.bitext import read_bitext
    from rnnsmt.align.pharaoh import check_bounds, distinct, read_links, write_links

    bitext = read_bitext(args.source, args.target)
    links = read_links(args.alignment)
    check_bounds(args.alignment, links, bitext.source.lengths, bitext.target.lengths)
    once = distinct(links)
    write_links(args.output, once)
    return {
        "sentences": links.sentences,
        "links": len(once.source),
        "doubled links dropped": len(links.source) - len(once.source),
        "sentences without links": int(np.count_nonzero(np.diff(links.offsets) == 0)),
    }
