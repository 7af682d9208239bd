"""Turn the text of the language model into ids on disk, with the shortlist of the networks as vocabulary.

Words outside the shortlist become UNK, as one class; no word is left out.
"""

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--input", nargs="+", required=True, metavar="FILE", help="tokenised text, one segment a line")
    parser.add_argument("--vocabulary", required=True, metavar="FILE", help="vocab.target.txt of rnn prepare")
    parser.add_argument("--output-dir", required=True, metavar="DIR")


def run(args: argparse.Namespace) -> dict[str, object]:
    from rnnsmt.cslm.text import prepare

    return prepare(args.input, args.vocabulary, args.output_dir)
