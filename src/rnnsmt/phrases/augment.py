"""Add columns to a phrase table: probabilities exp(score), from scores with one natural logarithm for every line.

Moses takes the logarithm of every column; probabilities below 1e-40 become 1e-40. The table is streamed, its other
fields stay as they are. Repeat --column for several columns; the files of one are parts that follow each other.
"""

import argparse

from rnnsmt.common_options import positive


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--phrase-table", required=True, metavar="FILE")
    parser.add_argument(
        "--column", nargs="+", action="append", required=True, metavar="FILE", help="scores of the table's lines (.npy)"
    )
    parser.add_argument("--output", required=True, metavar="FILE")
    parser.add_argument("--threads", type=positive, default=1, help="threads of compression")


def run(args: argparse.Namespace) -> dict[str, object]:
    from rnnsmt.phrases.augmentation import augment

    return augment(args.phrase_table, args.column, args.output, args.threads)
