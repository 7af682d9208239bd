"""Settings of one optimisation and of the loop over iterations."""

from dataclasses import dataclass, field

from rnnsmt.config.sections import Tuning, default_iterations


@dataclass(frozen=True)
class OptimizerOptions:
    """Settings of one optimisation."""

    optimizer: str = Tuning.optimizer
    """Name of the optimizer, see ``rnnsmt.tuning.optimizers``."""
    restarts: int = Tuning.restarts
    """MERT: number of random starting points, in addition to the weights of the previous iteration."""


@dataclass(frozen=True)
class LoopOptions:
    """Settings of the loop: number of iterations, and settings of each optimisation."""

    seed: int = 1
    iterations: int = default_iterations(Tuning.optimizer)
    threads: int = 1
    optimizer: OptimizerOptions = field(default_factory=OptimizerOptions)
