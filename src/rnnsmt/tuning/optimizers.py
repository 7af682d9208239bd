"""The optimizers of tuning: how they optimise weights on n-best lists, and which weights are the result of a run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rnnsmt.tuning import mert, mert_averaged, mira
from rnnsmt.tuning.nbest_pool import FlatPool, Weights
from rnnsmt.tuning.options import OptimizerOptions


class Optimize(Protocol):
    """Function that optimises weights on a pool of n-best lists."""

    def __call__(
        self,
        pool: FlatPool,
        start: Weights,
        active: NDArray[np.bool_],
        seed: Sequence[int],
        restarts: int,
        threads: int = 1,
    ) -> Weights:
        """Return optimised weights ``[F]`` with absolute sum 1.

        Args:
            start: weights of the previous iteration.
            active: ``[F]``, mask of the features whose weights may change; the others keep their weights up to the
                common scale.
            seed: entropy of the random generator of this optimisation.
            restarts: number of random starting points.
            threads: number of threads; does not affect the result.
        """
        ...


@dataclass(frozen=True)
class Optimizer:
    """An optimizer.

    Attributes:
        averages: whether the result of a run is the mean of the weights of the second half of a fixed number of
            iterations; otherwise, it is the weights of the last optimisation, and a run ends when they no longer
            change.
    """

    optimize: Optimize
    averages: bool


OPTIMIZERS = {
    "mert": Optimizer(mert.optimize, averages=False),
    "mert-averaged": Optimizer(mert_averaged.optimize, averages=True),
    "mira": Optimizer(mira.optimize, averages=True),
}
"""The optimizers by their names in the configuration."""


def optimize_weights(
    pool: FlatPool,
    start: Weights,
    active: NDArray[np.bool_],
    seed: Sequence[int],
    options: OptimizerOptions,
    threads: int = 1,
) -> Weights:
    """Call the optimizer of ``options``; see ``Optimize`` for the arguments and the result."""
    return OPTIMIZERS[options.optimizer].optimize(pool, start, active, seed, options.restarts, threads)
