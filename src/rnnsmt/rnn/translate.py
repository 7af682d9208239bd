"""Translate phrases with the network alone: beam search for the target of the highest log p(target | source).

Writes one target a line; with --nbest N the N best of each phrase instead: ``number of the line, from 0 ||| target |||
log p``.
"""

import argparse

from rnnsmt.common_options import positive
from rnnsmt.io import InputError, write_lines
from rnnsmt.rnn import phrase_input


def add_arguments(parser: argparse.ArgumentParser) -> None:
    phrase_input.add_arguments(parser)
    parser.add_argument("--beam", type=positive, default=10, metavar="N", help="open prefixes of a phrase")
    parser.add_argument("--nbest", type=int, metavar="N", help="write the N best of each phrase, at most the beam")


def run(args: argparse.Namespace) -> dict[str, object]:
    nbest = 1 if args.nbest is None else args.nbest
    if not 1 <= nbest <= args.beam:
        raise InputError(f"--nbest {nbest}: must be between 1 and the beam, {args.beam}")

    model, (_, target), sources = phrase_input.load(args)

    from rnnsmt.rnn.generation import beam_search

    found = beam_search(model, sources, args.beam, args.max_length, nbest)
    if args.nbest is None:
        write_lines(args.output, [target.text(targets[0].words) for targets in found])
    else:
        write_lines(
            args.output,
            [
                f"{number} ||| {target.text(one.words)} ||| {one.score:.6f}"
                for number, targets in enumerate(found)
                for one in targets
            ],
        )
    return {"phrases": len(sources), "mean log p": sum(targets[0].score for targets in found) / len(found)}
