"""Batch MIRA (Cherry and Foster 2012): a large-margin learner that passes over the accumulated n-best lists.

For every sentence the weights move towards a candidate that is good by score and BLEU (hope), away from one that is
good by score and bad by BLEU (fear), by as much as their scores differ less than their BLEU, but no more than C at a
time. BLEU of a sentence is taken together with the hopes of the sentences before, which decay. After every epoch the
mean of the weights after all updates so far is judged by BLEU on the lists; the best of these means is the result.

Defaults and start of the background are those of Moses' ``kbmira``; the order of the sentences is drawn anew for every
epoch.
"""

from collections.abc import Sequence

import numpy as np

from rnnsmt.tuning.kernels.mira import mira_epoch
from rnnsmt.tuning.nbest_pool import FlatPool, pool_bleu
from rnnsmt.tuning.options import OptimiserOptions
from rnnsmt.tuning.weights import Weights, normalised

FIRST_BACKGROUND = (4, 3, 2, 1, 4, 3, 2, 1, 4)
"""A sentence of four words that is its reference, in the order of the statistics."""


def optimise(pool: FlatPool, start: Weights, seed: Sequence[int], options: OptimiserOptions) -> Weights:
    """Learn from ``start``; see ``optimise_weights``. Weights of features that are constant stay up to the scale."""
    rng = np.random.default_rng([*seed])
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
