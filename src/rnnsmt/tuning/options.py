"""Settings of one optimisation and of the loop over iterations, and the command-line options that set them."""

import argparse
from dataclasses import dataclass, field

from rnnsmt.base.fields import add_fields
from rnnsmt.config.sections import Tuning


@dataclass(frozen=True)
class OptimiserOptions:
    """Settings of one optimisation."""

    optimiser: str = "mert"
    """``mert`` or ``mira``; the description of every other setting names the optimiser that uses it."""
    restarts: int = Tuning.restarts
    """MERT: number of starts at random points, in addition to the start at the given weights."""
    random_directions: int = 14
    """MERT: number of random directions in every cycle, in addition to the coordinate axes."""
    cycles: int = 25
    """MERT: maximum number of cycles of directions per start."""
    reach: float = 0.25
    """MERT: length of the line searched in both directions, for weights with absolute sum 1."""
    epochs: int = 60
    """MIRA: number of epochs over the sentences."""
    step: float = 0.01
    """MIRA: maximum step size (C)."""
    decay: float = 0.999
    """MIRA: decay of the background BLEU statistics per sentence."""


@dataclass(frozen=True)
class LoopOptions:
    """Settings of the loop: number of iterations, and settings of each optimisation."""

    seed: int = 1
    iterations: int = Tuning.iterations
    threads: int = 1
    optimiser: OptimiserOptions = field(default_factory=OptimiserOptions)


def add_optimiser(parser: argparse.ArgumentParser) -> None:
    """Add the options that ``optimiser_options`` needs: the optimiser and the settings of MERT."""
    add_fields(parser, Tuning, "optimiser", default=OptimiserOptions.optimiser)
    add_fields(parser, Tuning, "restarts")
    parser.add_argument("--random-directions", type=int, default=OptimiserOptions.random_directions, metavar="N",
        help="mert: number of random line search directions, in addition to the coordinate axes")  # fmt: skip


def optimiser_options(args: argparse.Namespace) -> OptimiserOptions:
    """Return the optimiser options of a command with the options of ``add_optimiser``."""
    return OptimiserOptions(optimiser=args.optimiser, restarts=args.restarts, random_directions=args.random_directions)


def loop_options(args: argparse.Namespace, seed: int) -> LoopOptions:
    """Return the settings of a run of ``tuning mert``."""
    return LoopOptions(
        seed=seed,
        iterations=args.iterations,
        threads=args.threads,
        optimiser=optimiser_options(args),
    )
