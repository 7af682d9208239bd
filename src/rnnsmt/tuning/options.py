"""How weights are tuned: settings of one optimisation and of the loop around it."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class OptimiserOptions:
    """How one optimisation searches."""

    restarts: int = 20
    """Climbs from random points, beside those from the given ones."""
    combine: str = "mean"
    """``mean`` of the weights that the better half of the climbs reach; or those of the ``best``."""
    random_directions: int = 14
    """Random directions in every cycle, beside the coordinates."""
    cycles: int = 25
    """Most cycles of directions in one climb."""
    reach: float = 0.25
    """How far a line is searched both ways; weights have absolute sum 1."""


@dataclass(frozen=True)
class LoopOptions:
    """When the loop ends, and how each optimisation searches."""

    seed: int = 1
    max_iterations: int = 25
    """Most iterations."""
    patience: int = 3
    """Iterations in which dev BLEU must rise by ``least_rise``."""
    threads: int = 1
    least_rise: float = 0.05
    optimiser: OptimiserOptions = field(default_factory=OptimiserOptions)
