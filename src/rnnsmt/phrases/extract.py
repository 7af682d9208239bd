"""Phrase pairs consistent with a word alignment, counted (Koehn, Och and Marcu 2003; Moses' ``extract``).

The output holds every distinct (source phrase, target phrase, alignment inside the phrase) once, with how often it
occurs and in which orientations (word-based msd model, previous and next), sorted as the phrase table is; the stages
``score`` and ``reordering`` read it. Words are numbers there; the vocabularies are in the file's metadata.
"""

import argparse

from rnnsmt.phrases.options import add_resources


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--source", nargs="+", required=True, metavar="FILE", help="tokenised source text")
    parser.add_argument("--target", nargs="+", required=True, metavar="FILE", help="tokenised target text, in parallel")
    parser.add_argument("--alignment", nargs="+", required=True, metavar="FILE", help="links i-j, line by line")
    parser.add_argument("--max-length", type=int, choices=range(1, 9), default=7, help="words of a phrase, each side")
    parser.add_argument("--output", required=True, metavar="FILE", help="counted phrase pairs (parquet)")
    add_resources(parser)


def run(args: argparse.Namespace) -> dict[str, object]:
    from rnnsmt.phrases.extraction import extract_phrases

    return extract_phrases(
        args.source, args.target, args.alignment, args.output, args.max_length, args.threads, args.memory_mb
    )
