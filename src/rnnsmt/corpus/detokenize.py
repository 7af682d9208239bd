"""From a tokenised, truecased text to running text: sentence starts in capitals, entities and tokenisation undone.

What Moses' detruecase.perl and detokenizer.perl do, by sacremoses.
"""

import argparse
from functools import partial

from rnnsmt.corpus.detokenizer import Detokenizer
from rnnsmt.corpus.workers import map_lines
from rnnsmt.io import read_lines, write_lines
from rnnsmt.progress import track


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The stage's options."""
    parser.add_argument("--input", required=True, metavar="FILE", help="tokenised text")
    parser.add_argument("--output", required=True, metavar="FILE")
    parser.add_argument("--lang", required=True, metavar="L", help="two letters")
    parser.add_argument("--no-detruecase", action="store_true", help="leave sentence starts as they are")
    parser.add_argument("--no-detokenize", action="store_true", help="leave tokens and entities as they are")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="processes")


def run(args: argparse.Namespace) -> dict[str, object]:
    """Detokenise one text."""
    make = partial(Detokenizer, args.lang, not args.no_detruecase, not args.no_detokenize)
    lines = track(read_lines(args.input), "detokenising")
    return {"lines": write_lines(args.output, map_lines(make, lines, args.threads))}
