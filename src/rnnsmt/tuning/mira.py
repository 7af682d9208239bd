"""Batch MIRA (Cherry and Foster 2012): large-margin learning on the accumulated n-best lists.

Every sentence has a hope candidate, which is good by model score and by BLEU, and a fear candidate, which is good by
model score and bad by BLEU. The weights move towards hope and away from fear until the difference of their scores
equals the difference of their BLEU, with step size at most C. Sentence BLEU is computed on top of a background, the
decayed statistics of the hope candidates of the previous sentences. After every epoch, the mean of the weights over all
updates so far is evaluated by corpus BLEU on the n-best lists; the best of these means is the result.

Defaults and the initial background are those of Moses' ``kbmira``; the order of the sentences is shuffled in every
epoch.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.kernels.decorator import kernel
from rnnsmt.tuning.nbest_pool import FlatPool, Weights, normalised, pool_bleu

EPOCHS = 60
"""Number of epochs over the sentences."""

STEP = 0.01
"""Maximum step size (C)."""

DECAY = 0.999
"""Decay of the background BLEU statistics per sentence."""

FIRST_BACKGROUND = (4, 3, 2, 1, 4, 3, 2, 1, 4)
"""Initial background, in the order of ``bleu.multi_bleu``: a sentence of four words that equals its reference."""


def optimize(
    pool: FlatPool,
    start: Weights,
    active: NDArray[np.bool_],
    seed: Sequence[int],
    restarts: int = 0,
    threads: int = 1,
) -> Weights:
    """Run batch MIRA from ``start``; see ``Optimizer.optimize`` for the arguments.

    The weights of constant features change only by scaling, since no update affects them. ``restarts`` and ``threads``
    have no effect: MIRA has one start and one thread.
    """
    del active, restarts, threads
    rng = np.random.default_rng([*seed])
    # [N, F]: the kernel scores one candidate at a time, so the features of a candidate must be adjacent
    features = np.ascontiguousarray(pool.features.T)
    weights, total = normalised(start), np.zeros(start.size)
    background = np.array(FIRST_BACKGROUND, np.float64)
    updates = 0
    best, best_value = weights.copy(), -1.0
    for _ in range(EPOCHS):
        order = rng.permutation(pool.sentences)
        updates += mira_epoch(features, pool.statistics, pool.offsets, order, STEP, DECAY, weights, total, background)
        if not updates:
            break
        value = pool_bleu(pool, total / updates)
        if value > best_value:
            best, best_value = total / updates, value
    return normalised(best)


@kernel()
def background_bleu(statistics, background):
    """Compute BLEU (0 to 1) of the background plus a candidate, times their total reference length in words.

    With this factor, the difference between two candidates measures their effect on a corpus of the size of the
    background (Chiang et al. 2008).

    Args:
        statistics: int32 ``[9]``, sufficient statistics of the candidate.
        background: float64 ``[9]``, decayed sum of the statistics of the hope candidates so far; all entries positive.
    """
    product = 1.0
    for order in range(4):
        product *= (statistics[order] + background[order]) / (statistics[4 + order] + background[4 + order])
    length = statistics[8] + background[8]
    penalty = min(0.0, 1.0 - length / (statistics[4] + background[4]))
    # fourth root of the product: geometric mean of the four precisions
    return math.sqrt(math.sqrt(product)) * math.exp(penalty) * length


@kernel()
def hope_and_fear(features, statistics, start, end, weights, background):
    """Find the candidates of a sentence with the highest score + BLEU (hope) and the highest score - BLEU (fear).

    Args:
        features: float32 ``[N, F]``.
        statistics: int32 ``[N, 9]``; the candidates of the sentence are rows ``start`` to ``end - 1``.
        weights: float64 ``[F]``.
        background: float64 ``[9]``, see ``background_bleu``.

    Returns:
        ``(hope, fear, loss)``: two row numbers (in case of a tie, the first row), and the loss, which is (BLEU(hope) -
        BLEU(fear)) - (score(hope) - score(fear)).
    """
    hope = fear = start
    hope_value = fear_value = -np.inf
    hope_bleu = fear_bleu = hope_score = fear_score = 0.0
    for n in range(start, end):
        score = 0.0
        for k in range(weights.size):
            score += weights[k] * features[n, k]
        bleu = background_bleu(statistics[n], background)
        if score + bleu > hope_value:
            hope, hope_value, hope_bleu, hope_score = n, score + bleu, bleu, score
        if score - bleu > fear_value:
            fear, fear_value, fear_bleu, fear_score = n, score - bleu, bleu, score
    return hope, fear, (hope_bleu - fear_bleu) - (hope_score - fear_score)


@kernel()
def mira_epoch(features, statistics, offsets, order, most, decay, weights, total, background):
    """Run one epoch of batch MIRA, updating weights and background in place.

    Sentences whose hope and fear are the same candidate are skipped. If the loss is positive, step * (features(hope) -
    features(fear)) is added to the weights; the step is min(``most``, loss / squared length of the difference), where
    the second value would reduce the loss to 0. Whether or not the loss is positive, the background is then multiplied
    by ``decay``, and the statistics of hope are added to it.

    Args:
        features: float32 ``[N, F]``, see ``hope_and_fear``.
        statistics: int32 ``[N, 9]``.
        offsets: int64 ``[S + 1]``, first row of each sentence.
        order: int64 ``[S]``, permutation of the sentences.
        most: maximum step size (C).
        decay: factor by which the background is multiplied for each sentence.
        weights: float64 ``[F]``, updated in place.
        total: float64 ``[F]``, updated in place: sum of the weights after every update.
        background: float64 ``[9]``, updated in place.

    Returns:
        Number of updates.
    """
    updates = 0
    for s in order:
        if offsets[s] == offsets[s + 1]:
            continue
        hope, fear, loss = hope_and_fear(features, statistics, offsets[s], offsets[s + 1], weights, background)
        if hope == fear:
            continue
        if loss > 0.0:
            square = 0.0
            for k in range(weights.size):
                # subtract in double precision: the features of two candidates are often nearly equal
                square += (np.float64(features[hope, k]) - features[fear, k]) ** 2
            if square > 0.0:
                step = min(most, loss / square)
                for k in range(weights.size):
                    weights[k] += step * (np.float64(features[hope, k]) - features[fear, k])
                updates += 1
                total += weights
        for j in range(9):
            background[j] = decay * background[j] + statistics[hope, j]
    return updates
