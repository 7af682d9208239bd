"""How weights are tuned: settings of one optimisation and of the loop around it."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class OptimiserOptions:
    """How one optimisation finds weights."""

    optimiser: str = "mert"
    """``mert``, ``mira`` or ``pro``; each has the settings below that name it."""
    restarts: int = 20
    """MERT: climbs from random points, beside those from the given ones."""
    combine: str = "mean"
    """MERT: ``mean`` of the weights that the better half of the climbs reach; or those of the ``best``."""
    random_directions: int = 14
    """MERT: random directions in every cycle, beside the coordinates."""
    cycles: int = 25
    """MERT: most cycles of directions in one climb."""
    reach: float = 0.25
    """MERT: how far a line is searched both ways; weights have absolute sum 1."""
    epochs: int = 60
    """MIRA: passes over the sentences."""
    step: float = 0.01
    """MIRA: the largest step towards a better candidate (C)."""
    decay: float = 0.999
    """MIRA: what a sentence leaves of the background of BLEU."""
    samples: int = 5000
    """PRO: pairs that are drawn of a sentence."""
    kept: int = 50
    """PRO: pairs of a sentence that are learnt from, those whose BLEU differs most."""
    threshold: float = 0.05
    """PRO: how much BLEU of a pair differs at least."""
    interpolation: float = 0.1
    """PRO: the share of what was learnt, beside the weights before."""


@dataclass(frozen=True)
class LoopOptions:
    """When the loop ends, and how each optimisation finds weights."""

    seed: int = 1
    max_iterations: int = 25
    """Most iterations."""
    patience: int = 3
    """Iterations in which dev BLEU must rise by ``least_rise``."""
    threads: int = 1
    least_rise: float = 0.05
    optimiser: OptimiserOptions = field(default_factory=OptimiserOptions)
