"""PRO, pairwise ranked optimisation (Hopkins and May 2011): logistic regression on pairs of candidates.

For every sentence, pairs of candidates are drawn from the accumulated n-best lists; of the pairs whose difference in
BLEU is large enough, those with the largest difference are kept. The regression predicts from the difference of the
features which candidate of a pair has higher BLEU; its weights are interpolated with the previous weights.

Sentence BLEU is the smoothed BLEU of ``rnnsmt.bleu.batch``. The regression has no intercept and a normal prior on the
weights. It is convex with as many unknowns as features, so Newton's method converges in a few steps.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rnnsmt.bleu.batch import sentence_bleu
from rnnsmt.tuning.nbest_pool import FlatPool, Weights, normalised
from rnnsmt.tuning.options import OptimiserOptions

PRIOR = 1.0
"""Precision (inverse variance) of the normal prior of every weight."""

STEPS = 50
"""Maximum number of Newton steps."""

CONVERGED = 1e-8
"""Newton's method ends when no weight changes by more than this."""


def optimise(
    pool: FlatPool, start: Weights, active: NDArray[np.bool_], seed: Sequence[int], options: OptimiserOptions
) -> Weights:
    """Draw pairs, fit the regression and interpolate with ``start``; see ``optimise_weights``."""
    start = normalised(start)
    differences = sample_pairs(pool, np.random.default_rng([*seed]), options)
    if not len(differences):
        return start
    weights = start.copy()
    weights[active] = interpolated(start[active], fit(differences[:, active]), options.interpolation)
    return normalised(weights)


def interpolated(start: Weights, optimised: Weights, share: float) -> Weights:
    """Return ``(1 - share) start + share optimised``, with ``optimised`` scaled to the absolute sum of ``start``.

    If ``optimised`` is 0, return ``start``. If ``start`` is 0, ``optimised`` is scaled to absolute sum 1.
    """
    size, length = np.abs(start).sum(), np.abs(optimised).sum()
    if not length > 0:
        return start
    return (1 - share) * start + share * optimised / length * (size if size > 0 else 1.0)


def sample_pairs(pool: FlatPool, rng: np.random.Generator, options: OptimiserOptions) -> NDArray[np.float64]:
    """Draw pairs and return the features of the better candidate minus those of the worse, ``[pairs, F]``, by sentence.

    Of ``options.samples`` random pairs per sentence, those with a BLEU difference of at least ``options.threshold``
    remain, and of these the ``options.kept`` with the largest difference.
    """
    bleu = sentence_bleu(pool.statistics)
    first, second = [], []
    for start, end in zip(pool.offsets[:-1], pool.offsets[1:], strict=True):
        if end - start < 2:
            continue
        left, right = rng.integers(start, end, (2, options.samples))
        gap = bleu[left] - bleu[right]
        far = np.flatnonzero(np.abs(gap) >= options.threshold)
        chosen = far[np.argsort(-np.abs(gap[far]), kind="stable")[: options.kept]]
        first.append(np.where(gap[chosen] > 0, left[chosen], right[chosen]))
        second.append(np.where(gap[chosen] > 0, right[chosen], left[chosen]))
    better, worse = (np.concatenate([np.zeros(0, np.int64), *rows]) for rows in (first, second))
    return np.asarray((pool.features[:, better].astype(np.float64) - pool.features[:, worse]).T)


def fit(differences: NDArray[np.float64]) -> Weights:
    """Return the weights ``w`` that minimise the sum over rows ``x`` of 2 log(1 + exp(-w·x)), plus ``PRIOR`` / 2 · w·w.

    The factor 2: each pair is an example in both orders, as in the paper.
    """
    weights = np.zeros(differences.shape[1])
    for _ in range(STEPS):
        # probability [pairs] that the model ranks the pair wrongly; the clip avoids overflow of exp
        wrong = 1 / (1 + np.exp(np.clip(differences @ weights, -500, 500)))
        gradient = PRIOR * weights - 2 * (wrong @ differences)
        curvature = 2 * (differences * (wrong * (1 - wrong))[:, None]).T @ differences + PRIOR * np.eye(weights.size)
        step = np.linalg.solve(curvature, gradient)
        # backtracking: the loss is convex, but a full Newton step may be too long where the sigmoid is flat
        scale = 1.0
        while scale > 1e-6 and _loss(differences, weights - scale * step) > _loss(differences, weights):
            scale /= 2
        weights = weights - scale * step
        if np.abs(scale * step).max() < CONVERGED:
            break
    return weights


def _loss(differences: NDArray[np.float64], weights: Weights) -> float:
    """Return the objective of ``fit``."""
    return float(2 * np.logaddexp(0, -(differences @ weights)).sum() + PRIOR / 2 * weights @ weights)
