"""What ``tuning mert`` and ``tuning optimise`` ask of the optimiser on the command line."""

import argparse

from rnnsmt.tuning.optimise import OptimiserOptions

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
