"""Options that the stages of this chapter share; imports nothing heavy."""

import argparse

from rnnsmt.cslm.presets import CHOICES, PRESETS, Settings
from rnnsmt.io import InputError
from rnnsmt.networks import settings
from rnnsmt.networks.options import add_device


def add_scoring(parser: argparse.ArgumentParser) -> None:
    """``--model``, ``--normalize``, ``--device`` and ``--threads``: the arguments of ``NGramScorer``."""
    parser.add_argument("--model", required=True, metavar="FILE", help="what cslm train wrote")
    parser.add_argument(
        "--normalize",
        choices=("auto", "yes", "no"),
        default="auto",
        help="sum over all classes: yes, exact; no, the bare output unit; auto: no for self-normalised models",
    )
    add_device(parser)


def normalize_of(args: argparse.Namespace) -> bool | None:
    """What ``NGramScorer`` is to be told."""
    return {"auto": None, "yes": True, "no": False}[args.normalize]


def add_settings(parser: argparse.ArgumentParser, default: str) -> None:
    """``--preset``, and an option for every setting of it."""
    parser.add_argument("--preset", choices=tuple(PRESETS), default=default)
    settings.add_settings(parser, Settings, CHOICES)


def settings_of(args: argparse.Namespace) -> Settings:
    """The preset with what the command line says instead.

    Raises:
        InputError: a number that makes no sense.
    """
    sizes = ("projection", "hidden_1", "hidden_2")
    found = settings.chosen_settings(
        args,
        PRESETS[args.preset],
        above_zero=(*sizes, "batch", "epochs", "patience", "held_out_least", "learning_rate", "clip"),
        not_negative=("spread", "dropout", "singletons", "self_normalised", "held_out", "warmup"),
    )
    if found.order < 2:
        raise InputError(f"--order {found.order}: must be at least 2, a word and one before it")
    if found.dropout >= 1:
        raise InputError(f"--dropout {found.dropout}: must be below 1")
    if found.singletons > 1:
        raise InputError(f"--singletons {found.singletons}: is a share, at most 1")
    if found.held_out > 0.1:
        raise InputError(f"--held-out {found.held_out}: must be at most 0.1, the others are for training")
    return found
