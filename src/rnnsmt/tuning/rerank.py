"""Choose the best translation of every sentence from its n-best list, with the weights of an ini.

For lists whose features or weights have changed since they were made: `cslm rescore`, `tuning optimise`. Where two
are equally good, the earlier one of the list is taken.
"""

import argparse

import numpy as np

from rnnsmt.io import count_lines, write_lines
from rnnsmt.moses.ini import MosesIni
from rnnsmt.moses.nbest import read_lists


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``rnnsmt tuning rerank``."""
    add = parser.add_argument
    add("--ini", required=True, metavar="FILE", help="moses.ini with the features of the lists and their weights")
    add("--nbest", required=True, metavar="FILE", help="n-best lists of the text")
    add("--input", required=True, metavar="FILE", help="the text itself, for the number of its lines")
    add("--output", required=True, metavar="FILE", help="translations to write, one a line")


def run(args: argparse.Namespace) -> dict[str, object]:
    """Read the lists, write the best of each."""
    ini = MosesIni.read(args.ini)
    lists = read_lists(args.nbest, ini, count_lines(args.input))
    weights = np.array([ini.weight(name) for name in lists.names])
    best = [int(np.argmax(rows @ weights)) for rows in lists.features]
    write_lines(args.output, (texts[place] for texts, place in zip(lists.texts, best, strict=True)))
    return {"sentences": len(best), "not the first of their list": sum(place > 0 for place in best)}
