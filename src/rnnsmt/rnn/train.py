"""Train the RNN Encoder-Decoder on phrase pairs.

The state folder holds the last checkpoint: a run that is ended at any time goes on from it, and on a CPU ends bit for
bit like one that was not. On SIGTERM, and shortly before --time-limit, the state is saved and the exit code is 75: run
the same command again. Started by torchrun, all processes share every minibatch.
"""

import argparse
from dataclasses import fields, replace

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
    group = parser.add_argument_group("instead of the preset's")
    for field in fields(Settings):
        kind = type(field.default)
        choices = CHOICES.get(field.name)
        group.add_argument(
            f"--{field.name.replace('_', '-')}",
            type=kind,
            choices=choices,
            default=argparse.SUPPRESS,
            metavar=None if choices else "N" if kind is int else "X",
        )


def settings_of(args: argparse.Namespace) -> Settings:
    """The preset with what the command line says instead.

    Raises:
        InputError: a number that makes no sense.
    """
    given = {field.name: getattr(args, field.name) for field in fields(Settings) if field.name in args}
    settings = replace(PRESETS[args.preset], **given)
    for name in (
        "embedding",
        "hidden",
        "maxout",
        "deviation",
        "batch",
        "epochs",
        "learning_rate",
        "clip",
        "evaluations",
    ):
        if not 0 < getattr(settings, name) < float("inf"):
            raise InputError(f"--{name.replace('_', '-')} {getattr(settings, name)}: must be above 0")
    for name in ("updates", "warmup", "held_out"):
        if getattr(settings, name) < 0:
            raise InputError(f"--{name.replace('_', '-')} {getattr(settings, name)}: must not be negative")
    return settings


def run(args: argparse.Namespace) -> dict[str, object]:
    settings = settings_of(args)
    if args.seed < 0:
        raise InputError(f"--seed {args.seed}: must not be negative")
    need_torch()

    from rnnsmt.devices import choose_place
    from rnnsmt.rnn.pairs import Pairs
    from rnnsmt.rnn.training import Outputs, train

    pairs = Pairs.open(args.pairs)
    place = choose_place(args.device, 1, settings.precision)
    outputs = Outputs(args.output_model, args.output_history, args.state_dir, args.save_every, args.time_limit)
    try:
        return train(pairs, settings, args.seed, place, outputs, args.threads if place.device.type == "cpu" else 1)
    finally:
        place.close()
