"""Score a text: ln p of every line, ``</s>`` included, no normalisation by length; one number a line."""

import argparse

from rnnsmt.cslm.options import add_scoring, normalize_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--input", required=True, metavar="FILE", help="tokenised text, one segment a line")
    parser.add_argument("--output", required=True, metavar="FILE")
    add_scoring(parser)


def run(args: argparse.Namespace) -> dict[str, object]:
    from rnnsmt.networks.options import need_torch

    need_torch()

    from rnnsmt.cslm.scorer import NGramScorer
    from rnnsmt.cslm.text_scoring import sentence_scores
    from rnnsmt.io import atomic_text, read_lines
    from rnnsmt.progress import track

    scorer = NGramScorer(args.model, args.device, args.threads, normalize_of(args))
    number, total = 0, 0.0
    with atomic_text(args.output) as out:
        for score in sentence_scores(scorer, track(read_lines(args.input), "scoring")):
            out.write(f"{score:.6f}\n")
            number += 1
            total += score
    return {"lines": number, "mean score": total / max(number, 1)}
