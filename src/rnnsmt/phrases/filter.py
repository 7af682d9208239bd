"""Keep of a phrase table and a reordering table what given input texts can use.

A line stays when its source phrase occurs in the input. Both tables are streamed; the outputs have the tables' names.
"""

import argparse

from rnnsmt.common_options import positive


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--input", nargs="+", required=True, metavar="FILE", help="texts to be translated")
    parser.add_argument("--phrase-table", required=True, metavar="FILE")
    parser.add_argument("--reordering-table", required=True, metavar="FILE")
    parser.add_argument("--output-dir", required=True, metavar="DIR", help="where both filtered tables go")
    parser.add_argument(
        "--max-length", type=positive, default=7, help="words of the longest source phrase in the tables"
    )


def run(args: argparse.Namespace) -> dict[str, object]:
    from rnnsmt.phrases.filtering import filter_tables

    return filter_tables(args.input, args.phrase_table, args.reordering_table, args.output_dir, args.max_length)
