"""Batch MIRA (Cherry and Foster 2012): large-margin learning on the accumulated n-best lists.

Every sentence has a hope candidate, which is good by model score and by BLEU, and a fear candidate, which is good by
model score and bad by BLEU. The weights move towards hope and away from fear until the difference of their scores
equals the difference of their BLEU, with step size at most C. Sentence BLEU is computed on top of a background, the
decayed statistics of the hope candidates of the previous sentences. After every epoch, the mean of the weights over all
updates so far is evaluated by corpus BLEU on the n-best lists; the best of these means is the result.

Defaults and the initial background are those of Moses' ``kbmira``; the order of the sentences is shuffled in every
epoch.
"""

from collections.abc import Sequence

import numpy as np

from rnnsmt.tuning.kernels.mira import mira_epoch
from rnnsmt.tuning.nbest_pool import FlatPool, pool_bleu
from rnnsmt.tuning.options import OptimiserOptions
from rnnsmt.tuning.weights import Weights, normalised

FIRST_BACKGROUND = (4, 3, 2, 1, 4, 3, 2, 1, 4)
"""Initial background statistics: a sentence of four words that equals its reference, in the order of ``multi_bleu``."""


def optimise(pool: FlatPool, start: Weights, seed: Sequence[int], options: OptimiserOptions) -> Weights:
    """Run batch MIRA from ``start``; see ``optimise_weights``. Constant features keep their weights up to the scale."""
    rng = np.random.default_rng([*seed])
    # [N, F]: the kernel scores one candidate at a time, so that the features of a candidate must be adjacent
    features = np.ascontiguousarray(pool.features.T)
    weights, total = normalised(start), np.zeros(start.size)
    background = np.array(FIRST_BACKGROUND, np.float64)
    updates = 0
    best, best_value = weights.copy(), -1.0
    for _ in range(options.epochs):
        order = rng.permutation(pool.sentences)
        updates += mira_epoch(
            features, pool.statistics, pool.offsets, order, options.step, options.decay, weights, total, background
        )
        if not updates:
            break
        value = pool_bleu(pool, total / updates)
        if value > best_value:
            best, best_value = total / updates, value
    return normalised(best)
