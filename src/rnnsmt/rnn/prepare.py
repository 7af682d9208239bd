"""Turn a phrase table into pairs of ids on disk, with the vocabularies of the corpus that it was extracted from.

Every line becomes a pair, in the table's order: a table holds every distinct pair once, its counts are not looked at.
A vocabulary holds the most frequent words of one side of the corpus; all other words become UNK.
"""

import argparse

from rnnsmt.common_options import positive


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--phrase-table", required=True, metavar="FILE")
    parser.add_argument("--source", nargs="+", required=True, metavar="FILE", help="source side of the corpus")
    parser.add_argument("--target", nargs="+", required=True, metavar="FILE", help="target side of the corpus")
    parser.add_argument(
        "--vocab-size", type=positive, default=15_000, help="ids of each side without EOS: N - 2 words, UNK and 0"
    )
    parser.add_argument("--max-length", type=positive, default=50, help="words of a phrase; a longer one is an error")
    parser.add_argument("--output-dir", required=True, metavar="DIR")


def run(args: argparse.Namespace) -> dict[str, object]:
    from rnnsmt.rnn.preparation import prepare

    return prepare(
        args.phrase_table, args.source, args.target, args.output_dir, size=args.vocab_size, max_length=args.max_length
    )
