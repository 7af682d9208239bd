"""The optimisers of tuning: how they optimise weights on n-best lists, and which weights are the result of a run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rnnsmt.tuning import mert, mert_averaged, mira
from rnnsmt.tuning.nbest_pool import FlatPool, Weights
from rnnsmt.tuning.options import OptimiserOptions


class Optimise(Protocol):
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
class Optimiser:
    """An optimiser.

    Attributes:
        averages: whether the result of a run is the mean of the weights of the second half of a fixed number of
            iterations; otherwise, it is the weights of the last optimisation, and a run ends when they no longer
            change.
    """

    optimise: Optimise
    averages: bool


OPTIMISERS = {
    "mert": Optimiser(mert.optimise, averages=False),
    "mert-averaged": Optimiser(mert_averaged.optimise, averages=True),
    "mira": Optimiser(mira.optimise, averages=True),
}
"""The optimisers by their names in the configuration."""


def optimise_weights(
    pool: FlatPool,
    start: Weights,
    active: NDArray[np.bool_],
    seed: Sequence[int],
    options: OptimiserOptions,
    threads: int = 1,
) -> Weights:
    """Call the optimiser of ``options``; see ``Optimise`` for the arguments and the result."""
    return OPTIMISERS[options.optimiser].optimise(pool, start, active, seed, options.restarts, threads)
