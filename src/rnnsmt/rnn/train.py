"""Train the RNN Encoder-Decoder on phrase pairs.

The state folder holds the last checkpoint: a run that is ended at any time goes on from it, and on a CPU ends bit for
bit like one that was not. On SIGTERM, and shortly before --time-limit, the state is saved and the exit code is 75: run
the same command again. Started by torchrun, all processes share every minibatch.
"""

import argparse
from functools import partial

from rnnsmt.networks import options
from rnnsmt.rnn.options import add_settings, settings_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pairs", required=True, metavar="DIR", help="what rnn prepare wrote")
    add_settings(parser, "small")
    options.add_training(parser)


def run(args: argparse.Namespace) -> dict[str, object]:
    settings = settings_of(args)
    options.need_torch()

    from rnnsmt.rnn.pairs import Pairs
    from rnnsmt.rnn.training import train

    return options.train(args, settings.precision, partial(train, Pairs.open(args.pairs), settings))
