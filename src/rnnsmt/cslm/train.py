"""Train the continuous-space language model on text.

After every epoch the perplexity of the validation n-grams is measured; training ends after --epochs, or when it has not
become better for --patience epochs, and the best parameters are kept. The state folder holds the last checkpoint: a run
that is ended at any time goes on from it, and on a CPU ends bit for bit like one that was not. On SIGTERM, and shortly
before --time-limit, the state is saved and the exit code is 75: run the same command again. Started by torchrun, all
processes share every minibatch.
"""

import argparse
from functools import partial

from rnnsmt.cslm.options import add_settings, settings_of
from rnnsmt.networks import options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--text", required=True, metavar="DIR", help="what cslm prepare wrote")
    add_settings(parser, "small")
    options.add_training(parser)


def run(args: argparse.Namespace) -> dict[str, object]:
    settings = settings_of(args)
    options.need_torch()

    from rnnsmt.cslm.text import Text
    from rnnsmt.cslm.training import train

    return options.train(args, settings.precision, partial(train, Text.open(args.text), settings))
