"""The updates of batch MIRA, compiled: one pass over the sentences' n-best lists.

Cherry and Foster (2012), Algorithm 1. All functions release the GIL and use no random numbers.
"""

import math

import numpy as np

from rnnsmt.kernels.decorator import kernel


@kernel()
def background_bleu(statistics, background):
    """BLEU of one candidate together with the background, times the reference length of both, in words.

    So a difference of two candidates is what they add to a corpus of the background's size (Chiang et al. 2008).

    Args:
        statistics: int32 ``[9]``, of the candidate.
        background: float64 ``[9]``, of what was chosen before, decayed; positive.
    """
    product = 1.0
    for order in range(4):
        product *= (statistics[order] + background[order]) / (statistics[4 + order] + background[4 + order])
    length = statistics[8] + background[8]
    penalty = min(0.0, 1.0 - length / (statistics[4] + background[4]))
    return math.sqrt(math.sqrt(product)) * math.exp(penalty) * length


@kernel()
def hope_and_fear(features, statistics, start, end, weights, background):
    """Two candidates of a sentence: that with the highest score + BLEU, and that with the highest score - BLEU.

    Args:
        features: float32 ``[N, F]``; statistics: int32 ``[N, 9]``; candidates ``start`` to ``end - 1`` are looked at.
        weights: float64 ``[F]``; background: see ``background_bleu``.

    Returns:
        ``(hope, fear, loss)``: their numbers, the first of equally good ones; by how much their difference of scores
        falls short of that of BLEU.
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
    """One pass over the sentences.

    Where hope and fear differ, the weights move towards hope until the loss is 0, but no further than ``most``; then
    the background decays, and hope is added to it.

    Args:
        features, statistics: see ``hope_and_fear``; offsets: int64 ``[S + 1]``, where each sentence's candidates begin.
        order: int64 ``[S]``, the sentences in the order of the pass.
        most: largest step (C); decay: of the background.
        weights, total: float64 ``[F]``, changed: the weights, and their sum over all updates.
        background: float64 ``[9]``, changed.

    Returns:
        The number of updates.
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
