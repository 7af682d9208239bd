"""Train the RNN Encoder-Decoder on phrase pairs.

The state folder holds the last checkpoint: a run that is ended at any time goes on from it, and on a CPU ends bit for
bit like one that was not. On SIGTERM, and shortly before --time-limit, the state is saved and the exit code is 75: run
the same command again. Started by torchrun, all processes share every minibatch.
"""

import argparse

from rnnsmt import settings
from rnnsmt.io import InputError
from rnnsmt.rnn.options import add_device, need_torch
from rnnsmt.rnn.presets import CHOICES, PRESETS, Settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pairs", required=True, metavar="DIR", help="what rnn prepare wrote")
    parser.add_argument("--preset", choices=tuple(PRESETS), default="small")
    add_settings(parser)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output-model", required=True, metavar="FILE")
    parser.add_argument("--output-history", required=True, metavar="FILE", help="the learning curve, as JSON")
    parser.add_argument("--state-dir", required=True, metavar="DIR", help="where checkpoints are kept")
    parser.add_argument("--save-every", type=float, default=300.0, metavar="SECONDS", help="time between checkpoints")
    parser.add_argument("--time-limit", type=float, metavar="SECONDS", help="stop before, save, and exit with 75")
    add_device(parser)


def add_settings(parser: argparse.ArgumentParser) -> None:
    """An option for every setting of the preset."""
    settings.add_settings(parser, Settings, CHOICES)


def settings_of(args: argparse.Namespace) -> Settings:
    """The preset with what the command line says instead.

    Raises:
        InputError: a number that makes no sense.
    """
    sizes = ("embedding", "hidden", "maxout")
    return settings.chosen_settings(
        args,
        PRESETS[args.preset],
        above_zero=(*sizes, "deviation", "batch", "epochs", "learning_rate", "clip", "evaluations"),
        not_negative=("updates", "warmup", "held_out"),
    )


def run(args: argparse.Namespace) -> dict[str, object]:
    chosen = settings_of(args)
    if args.seed < 0:
        raise InputError(f"--seed {args.seed}: must not be negative")
    need_torch()

    from rnnsmt.devices import choose_place
    from rnnsmt.rnn.pairs import Pairs
    from rnnsmt.rnn.training import Outputs, train

    pairs = Pairs.open(args.pairs)
    place = choose_place(args.device, 1, chosen.precision)
    outputs = Outputs(args.output_model, args.output_history, args.state_dir, args.save_every, args.time_limit)
    try:
        return train(pairs, chosen, args.seed, place, outputs, args.threads if place.device.type == "cpu" else 1)
    finally:
        place.close()
