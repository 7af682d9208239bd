"""Dispatch of one weight optimisation on the accumulated n-best lists to MERT, batch MIRA or PRO."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rnnsmt.tuning import mert, mira, pro
from rnnsmt.tuning.nbest_pool import FlatPool
from rnnsmt.tuning.options import OptimiserOptions
from rnnsmt.tuning.weights import Weights


def optimise_weights(
    pool: FlatPool,
    start: Weights,
    active: NDArray[np.bool_],
    seed: Sequence[int],
    options: OptimiserOptions,
    threads: int = 1,
) -> Weights:
    """Return optimised weights ``[F]`` with absolute sum 1 for the pool.

    Args:
        pool: candidates of all sentences.
        start: weights of the previous iteration.
        active: ``[F]``, mask of the features whose weights may change; the others keep their weights up to the common
            scale.
        seed: entropy of the random generator of this optimisation.
        options: algorithm and its settings.
        threads: number of threads; does not affect the result.
    """
    if options.optimiser == "mira":
        return mira.optimise(pool, start, seed, options)
    if options.optimiser == "pro":
        return pro.optimise(pool, start, active, seed, options)
    return mert.optimise(pool, start, active, seed, options, threads)
