"""Add the CSLM's score to the features of an n-best list in Moses' format: ``CSLM0= x`` behind the others.

x is ln p of the whole translation, ``</s>`` included. The total score of a line is not changed: its weight is the
business of `tuning optimise`, and `tuning rerank` takes the best of the lists with it.
"""

import argparse

from rnnsmt.cslm.options import add_scoring, normalize_of

FEATURE = "CSLM0"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--nbest", required=True, metavar="FILE")
    parser.add_argument("--output", required=True, metavar="FILE")
    add_scoring(parser)


def run(args: argparse.Namespace) -> dict[str, object]:
    from rnnsmt.networks.options import need_torch

    need_torch()

    from itertools import islice

    from rnnsmt.cslm.scorer import NGramScorer
    from rnnsmt.cslm.text_scoring import LINES, sentence_scores
    from rnnsmt.io import InputError, atomic_text, read_lines
    from rnnsmt.progress import track

    scorer = NGramScorer(args.model, args.device, args.threads, normalize_of(args))
    number = 0
    stream = track(read_lines(args.nbest), "scoring", unit="translations")
    with atomic_text(args.output) as out:
        while block := [split(line, args.nbest, number + i) for i, line in enumerate(islice(stream, LINES), 1)]:
            number += len(block)
            scores = sentence_scores(scorer, (fields[1] for fields in block))
            for fields, score in zip(block, scores, strict=True):
                fields[2] = f" {' '.join(fields[2].split())} {FEATURE}= {score:.6f} "
                out.write("|||".join(fields) + "\n")
        if not number:
            raise InputError(f"{args.nbest}: is empty, an n-best list is needed")
    return {"translations": number}


def split(line: str, path: str, number: int) -> list[str]:
    """The fields of a line of an n-best list.

    Raises:
        InputError: as ``fields_of``, or the feature is already there.
    """
    from rnnsmt.io import InputError
    from rnnsmt.moses.nbest import fields_of

    fields = fields_of(line, path, number)
    if f"{FEATURE}=" in fields[2].split():
        raise InputError(f"{path}, line {number}: has {FEATURE}= already; give the list as the decoder wrote it")
    return fields
