"""One optimisation of weights for the accumulated n-best lists, by the algorithm that the options name."""

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
    """Find weights ``[F]`` with absolute sum 1 for the pool.

    Args:
        pool: the candidates.
        start: the weights of the iteration before.
        active: ``[F]``, the features whose weights may be changed; the others keep theirs (up to the common scale).
        seed: words of the seed of this optimisation.
        options: the algorithm and its settings.
        threads: what may run at the same time; the result does not depend on them.
    """
    if options.optimiser == "mira":
        return mira.optimise(pool, start, seed, options)
    if options.optimiser == "pro":
        return pro.optimise(pool, start, active, seed, options)
    return mert.optimise(pool, start, active, seed, options, threads)
