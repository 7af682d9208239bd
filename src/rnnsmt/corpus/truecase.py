"""Give every word of a tokenised text its usual case, with a model of Moses' format."""

import argparse
from collections.abc import Callable
from functools import partial

from rnnsmt.corpus.truecaser import Truecaser
from rnnsmt.corpus.workers import map_lines
from rnnsmt.io import read_lines, write_lines
from rnnsmt.progress import track


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The stage's options."""
    parser.add_argument("--model", required=True, metavar="FILE", help="from train-truecaser")
    parser.add_argument("--input", required=True, metavar="FILE", help="tokenised text")
    parser.add_argument("--output", required=True, metavar="FILE")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="processes")


def run(args: argparse.Namespace) -> dict[str, object]:
    """Truecase one text."""
    model = Truecaser(args.model)  # read here, so that a bad model ends the stage before any work
    lines = track(read_lines(args.input), "truecasing")
    count = write_lines(args.output, map_lines(partial(_same, model), lines, args.threads))
    return {"lines": count}


def _same(model: Truecaser) -> Callable[[str], str]:
    return model
