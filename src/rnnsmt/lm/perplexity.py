"""Perplexity of a text under an ARPA language model, asked through KenLM.

The JSON holds sentences, words, unknown words and the perplexity with unknown words (as ``<unk>``) and without them;
``</s>`` of every line is predicted and counted.
"""

import argparse
from itertools import chain

from rnnsmt.io import read_lines, write_json
from rnnsmt.lm.queries import load_kenlm, measure
from rnnsmt.progress import track


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``rnnsmt lm perplexity``."""
    parser.add_argument("--lm", required=True, metavar="ARPA")
    parser.add_argument("--input", nargs="+", required=True, metavar="FILE", help="tokenised text, one segment a line")
    parser.add_argument("--output", required=True, metavar="JSON")


def run(args: argparse.Namespace) -> dict[str, object]:
    """Measure and write the figures."""
    model = load_kenlm(args.lm)
    lines = chain.from_iterable(map(read_lines, args.input))
    result = measure(model, track(lines, "measuring"), ", ".join(args.input))
    write_json(args.output, {"lm_order": model.order, **result.as_dict()})
    return {
        "sentences": result.sentences,
        "words": result.words,
        "OOV": result.oov,
        "perplexity": result.perplexity,
        "without OOV": result.perplexity_without_oov,
    }
