"""What ``tuning mert`` and ``tuning optimise`` share: the optimiser's options, and the weights it starts from."""

import argparse
from collections.abc import Iterable

import numpy as np

from rnnsmt.io import InputError
from rnnsmt.moses.ini import MosesIni
from rnnsmt.tuning.optimise import OptimiserOptions, Weights

DEFAULTS = OptimiserOptions()


def add_optimiser(parser: argparse.ArgumentParser) -> None:
    """Its seed and how far it looks."""
    add = parser.add_argument
    add("--seed", type=int, required=True, metavar="N", help="seed of the run")
    add("--restarts", type=int, default=DEFAULTS.restarts, metavar="N", help="climbs of one optimisation")
    add("--combine", choices=("mean", "best"), default=DEFAULTS.combine,
        help="mean of what the better half of the climbs reach, or the best of them")  # fmt: skip
    add("--random-directions", type=int, default=DEFAULTS.random_directions, metavar="N",
        help="random directions beside the coordinates")  # fmt: skip


def optimiser_options(args: argparse.Namespace) -> OptimiserOptions:
    """The options of a command with those of ``add_optimiser``."""
    return OptimiserOptions(restarts=args.restarts, random_directions=args.random_directions, combine=args.combine)


def start_weights(ini: MosesIni, scores: Iterable[str]) -> Weights:
    """The ini's weights ``[F]`` of these scores.

    Raises:
        InputError: all of them are 0.
    """
    weights = np.array([ini.weight(score) for score in scores])
    if not np.abs(weights).sum() > 0:
        raise InputError(f"{ini.path}: all weights are 0, there is nothing to start from; give Moses' defaults")
    return weights
