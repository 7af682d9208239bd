"""Draw targets of source phrases from the network, word by word from its distribution (Table 3 of the paper).

Of 50 draws for each phrase the distinct ones are counted and sorted by log p(target | source), and the best 5 written:
``number of the line, from 0 ||| target ||| log p ||| how often it was drawn``.
"""

import argparse

from rnnsmt.common_options import positive
from rnnsmt.io import write_lines
from rnnsmt.rnn import phrase_input


def add_arguments(parser: argparse.ArgumentParser) -> None:
    phrase_input.add_arguments(parser)
    parser.add_argument("--draws", type=positive, default=50, metavar="N", help="draws for each phrase")
    parser.add_argument("--top", type=positive, default=5, metavar="N", help="distinct draws that are written")
    parser.add_argument("--seed", type=int, default=1)


def run(args: argparse.Namespace) -> dict[str, object]:
    model, (_, target), sources = phrase_input.load(args)

    from rnnsmt.rnn.generation import sample

    found = sample(model, sources, args.draws, args.seed, args.max_length)
    lines = [
        f"{number} ||| {target.text(one.words)} ||| {one.score:.6f} ||| {one.times}"
        for number, targets in enumerate(found)
        for one in targets[: args.top]
    ]
    write_lines(args.output, lines)
    drawn = sum(one.times for targets in found for one in targets)
    return {
        "phrases": len(sources),
        "draws": len(sources) * args.draws,
        "distinct": sum(map(len, found)),
        f"dropped, longer than {args.max_length} words": len(sources) * args.draws - drawn,
    }
