"""An optimizer that takes the best of several random points around the current weights."""

import numpy as np

from rnnsmt.tuning.nbest_pool import pool_bleu
from rnnsmt.tuning.optimizers import Optimizer


class RandomSearch(Optimizer):
    title = "random search"
    has_restarts = True

    def optimize(self, pool, start, active, seed, restarts, threads=1):
        draw = np.random.default_rng(seed)
        points = [start, *(start + 0.1 * active * draw.standard_normal(len(start)) for _ in range(restarts))]
        return max(points, key=lambda weights: pool_bleu(pool, weights))
