"""Options that the stages of this chapter share; imports nothing heavy."""

import argparse

from rnnsmt.networks import settings
from rnnsmt.rnn.presets import CHOICES, PRESETS, Settings


def add_settings(parser: argparse.ArgumentParser, default: str) -> None:
    """``--preset``, and an option for every setting of it."""
    parser.add_argument("--preset", choices=tuple(PRESETS), default=default)
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
