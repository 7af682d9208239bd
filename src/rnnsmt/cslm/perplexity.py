"""Perplexity of a text under the CSLM, beside that of an n-gram LM, natural logarithms and exact softmax.

Both models predict the same events: every word and ``</s>``. For both the words outside the CSLM's shortlist are one
class (for the n-gram LM: the sum over all words that it knows besides the shortlist, and ``<unk>``); the second figure
leaves these words out of sum and count. The JSON also has the even mixture of the two models, and for models that were
trained self-normalised how far from 0 the logarithm of the sum over all classes is.
"""

import argparse

from rnnsmt.cslm.options import add_scoring


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--input", nargs="+", required=True, metavar="FILE", help="tokenised text, one segment a line")
    parser.add_argument("--lm", metavar="ARPA", help="the n-gram LM to compare with")
    parser.add_argument("--output", required=True, metavar="JSON")
    add_scoring(parser)


def run(args: argparse.Namespace) -> dict[str, object]:
    from rnnsmt.networks.options import need_torch

    need_torch()

    from rnnsmt.cslm.comparison import compare
    from rnnsmt.io import write_json

    report = compare(args.model, args.input, args.lm, args.device, args.threads)
    write_json(args.output, report)
    figures = {"sentences": report["sentences"], "words": report["words"], "OOV": report["oov"]}
    for name in ("cslm", "ngram", "mixture"):
        if name in report:
            figures[f"{name} perplexity"] = report[name]["perplexity"]
            figures[f"{name} without OOV"] = report[name]["perplexity_without_oov"]
    return figures
