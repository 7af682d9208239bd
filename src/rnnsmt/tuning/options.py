"""Settings of one optimisation and of the loop over iterations, and the command-line options that set them."""

import argparse
from dataclasses import dataclass, field

from rnnsmt.base.fields import add_fields
from rnnsmt.config.sections import Tuning, default_iterations


@dataclass(frozen=True)
class OptimiserOptions:
    """Settings of one optimisation."""

    optimiser: str = Tuning.optimiser
    """Name of the optimiser, see ``rnnsmt.tuning.optimisers``."""
    restarts: int = Tuning.restarts
    """MERT: number of random starting points, in addition to the given weights."""


@dataclass(frozen=True)
class LoopOptions:
    """Settings of the loop: number of iterations, and settings of each optimisation."""

    seed: int = 1
    iterations: int = default_iterations(Tuning.optimiser)
    threads: int = 1
    optimiser: OptimiserOptions = field(default_factory=OptimiserOptions)


def add_optimiser(parser: argparse.ArgumentParser) -> None:
    """Add the options that ``optimiser_options`` needs."""
    add_fields(parser, Tuning, "optimiser", "restarts")


def optimiser_options(args: argparse.Namespace) -> OptimiserOptions:
    """Return the optimiser options of a command with the options of ``add_optimiser``."""
    return OptimiserOptions(args.optimiser, args.restarts)
