"""The phrase table: p(f|e) lex(f|e) p(e|f) lex(e|f) for every distinct phrase pair, in Moses' format and order.

f is the source, e the target. The alignment kept with a pair is its most frequent one; ties are broken as Moses breaks
them. Phrase probabilities are relative frequencies, smoothed on demand; lexical weights after Koehn, Och and Marcu
2003, section 4.4.
"""

import argparse

from rnnsmt.phrases.options import add_resources


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--extract", required=True, metavar="FILE", help="what 'phrases extract' wrote")
    parser.add_argument("--lex-e2f", required=True, metavar="FILE", help="p(source word | target word)")
    parser.add_argument("--lex-f2e", required=True, metavar="FILE", help="p(target word | source word)")
    parser.add_argument("--output", required=True, metavar="FILE", help="the phrase table")
    add_resources(parser)
    parser.add_argument(
        "--smoothing",
        choices=["none", "kneser-ney"],
        default="none",
        help="of the phrase probabilities: none (Moses' default), or modified Kneser-Ney (Foster et al. 2006)",
    )


def run(args: argparse.Namespace) -> dict[str, object]:
    from rnnsmt.phrases.scoring import score_phrases

    return score_phrases(
        args.extract, args.lex_e2f, args.lex_f2e, args.output, args.threads, args.memory_mb, args.smoothing
    )
