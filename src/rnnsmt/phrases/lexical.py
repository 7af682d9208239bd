"""Lexical translation probabilities from a word alignment, Moses' ``lex.e2f`` and ``lex.f2e``.

Relative frequencies over the links (Koehn, Och and Marcu 2003, section 4.4); a word without a link counts as linked
to NULL, as in ``train-model.perl`` step 4. f is the source, e the target: a line of ``lex.e2f`` is ``f e p(f|e)``, one
of ``lex.f2e`` is ``e f p(e|f)``; seven decimals; both files are sorted by f, then e.
"""

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--source", nargs="+", required=True, metavar="FILE", help="tokenised source text")
    parser.add_argument("--target", nargs="+", required=True, metavar="FILE", help="tokenised target text, in parallel")
    parser.add_argument("--alignment", nargs="+", required=True, metavar="FILE", help="links i-j, line by line")
    parser.add_argument("--output-e2f", required=True, metavar="FILE", help="p(source word | target word)")
    parser.add_argument("--output-f2e", required=True, metavar="FILE", help="p(target word | source word)")


def run(args: argparse.Namespace) -> dict[str, object]:
    from rnnsmt.phrases.lexicon import count_lexicon, write_lexicon

    counts, figures = count_lexicon(args.source, args.target, args.alignment)
    write_lexicon(counts, args.output_e2f, args.output_f2e)
    return figures.as_dict() | {"word pairs": len(counts.pairs)}
