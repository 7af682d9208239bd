"""The optimizers of tuning: how they optimise weights on n-best lists, and which weights are the result of a run.

``rnnsmt.registries.OPTIMIZERS`` lists them. The configuration imports this module for the default numbers of
iterations, so the import must be fast: an optimizer imports NumPy and its kernels when it is called.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rnnsmt.base.errors import InputError
from rnnsmt.registries import OPTIMIZERS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rnnsmt.tuning.nbest_pool import FlatPool, Weights
    from rnnsmt.tuning.options import OptimizerOptions


class Optimizer(ABC):
    """An optimizer.

    Attributes:
        title: name in the notes of the tables.
        iterations: default number of iterations of a run.
        averages: whether the result of a run is the mean of the weights of the second half of a fixed number of
            iterations; otherwise, it is the weights of the last optimisation, and a run ends when they no longer
            change.
        has_restarts: whether the setting ``restarts`` has an effect.
    """

    title: str
    iterations: int = 16
    averages: bool = True
    has_restarts: bool = False

    @abstractmethod
    def optimize(
        self,
        pool: "FlatPool",
        start: "Weights",
        active: "NDArray[np.bool_]",
        seed: Sequence[int],
        restarts: int,
        threads: int = 1,
    ) -> "Weights":
        """Return weights ``[F]`` that are optimised on a pool of n-best lists; their absolute values sum to 1.

        Args:
            start: weights of the previous iteration.
            active: ``[F]``, mask of the features whose weights may change; the others keep their weights up to the
                common scale.
            seed: entropy of the random generator of this optimisation.
            restarts: number of random starting points.
            threads: number of threads; does not affect the result.
        """


class Mert(Optimizer):
    """MERT as in ``mert-moses.pl``, see ``rnnsmt.tuning.mert``."""

    title = "MERT, as mert-moses.pl"
    iterations = 25
    averages = False
    has_restarts = True

    def optimize(
        self,
        pool: "FlatPool",
        start: "Weights",
        active: "NDArray[np.bool_]",
        seed: Sequence[int],
        restarts: int,
        threads: int = 1,
    ) -> "Weights":
        """Return the best local optimum of searches along the axes."""
        from rnnsmt.tuning import mert

        return mert.optimize(pool, start, active, seed, restarts, threads)


class AveragedMert(Optimizer):
    """MERT whose weights are means of local optima, see ``rnnsmt.tuning.mert_averaged``."""

    title = "averaged MERT"
    has_restarts = True

    def optimize(
        self,
        pool: "FlatPool",
        start: "Weights",
        active: "NDArray[np.bool_]",
        seed: Sequence[int],
        restarts: int,
        threads: int = 1,
    ) -> "Weights":
        """Return the mean of the better half of the local optima of searches along random directions."""
        from rnnsmt.tuning import mert_averaged

        return mert_averaged.optimize(pool, start, active, seed, restarts, threads)


class Mira(Optimizer):
    """Batch MIRA, see ``rnnsmt.tuning.mira``."""

    title = "batch MIRA"

    def optimize(
        self,
        pool: "FlatPool",
        start: "Weights",
        active: "NDArray[np.bool_]",
        seed: Sequence[int],
        restarts: int,
        threads: int = 1,
    ) -> "Weights":
        """Return the mean of the weights over all updates, after the epoch in which it has the highest BLEU."""
        from rnnsmt.tuning import mira

        return mira.optimize(pool, start, active, seed, restarts, threads)


def optimize_weights(
    pool: "FlatPool",
    start: "Weights",
    active: "NDArray[np.bool_]",
    seed: Sequence[int],
    options: "OptimizerOptions",
    threads: int = 1,
) -> "Weights":
    """Call the optimizer of ``options``; see ``Optimizer.optimize`` for the arguments and the result.

    Raises:
        InputError: an optimizer of another Python package returns weights that are not F finite numbers or all 0.
    """
    import numpy as np

    from rnnsmt.tuning.nbest_pool import normalised

    name = options.optimizer
    weights = OPTIMIZERS[name].optimize(pool, start, active, seed, options.restarts, threads)
    if OPTIMIZERS.package(name):
        if np.shape(weights) != start.shape or not np.isfinite(weights).all() or not np.any(weights):
            raise InputError(
                f"optimizer {OPTIMIZERS.versioned(name)}: the weights must be {len(start)} finite numbers, not all of "
                "them 0; correct this package"
            )
        weights = normalised(np.array(weights, np.float64))
    return weights
