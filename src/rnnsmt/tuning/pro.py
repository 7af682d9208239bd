"""PRO, pairwise ranked optimisation (Hopkins and May 2011): which of two candidates is better, by logistic regression.

For every sentence pairs of candidates are drawn from the accumulated n-best lists; of those whose BLEU differs enough,
the ones that differ most are kept. The weights are those with which the difference of the scores says best which of the
two is better; interpolated with the weights before.

BLEU of a sentence is the smoothed one of ``rnnsmt.bleu.batch``. The regression has no intercept and a normal prior on
the weights. It is convex, with as many unknowns as there are features: Newton's method takes a few steps.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rnnsmt.bleu.batch import sentence_bleu
from rnnsmt.tuning.nbest_pool import FlatPool
from rnnsmt.tuning.options import OptimiserOptions
from rnnsmt.tuning.weights import Weights, normalised

PRIOR = 1.0
"""Precision of the normal prior of every weight."""

STEPS = 50

CONVERGED = 1e-8
"""Change of all weights at which Newton's method ends."""


def optimise(
    pool: FlatPool, start: Weights, active: NDArray[np.bool_], seed: Sequence[int], options: OptimiserOptions
) -> Weights:
    """Draw pairs, fit, interpolate with ``start``; see ``optimise_weights``."""
    start = normalised(start)
    differences = sample_pairs(pool, np.random.default_rng([*seed]), options)
    if not len(differences):
        return start
    weights = start.copy()
    weights[active] = interpolated(start[active], fit(differences[:, active]), options.interpolation)
    return normalised(weights)


def interpolated(start: Weights, found: Weights, share: float) -> Weights:
    """The ``share`` of what was found, with the absolute sum of the start, the rest of the start.

    Where nothing was found, the start; where all of that is 0, what was found.
    """
    size, length = np.abs(start).sum(), np.abs(found).sum()
    if not length > 0:
        return start
    return (1 - share) * start + share * found / length * (size if size > 0 else 1.0)


def sample_pairs(pool: FlatPool, rng: np.random.Generator, options: OptimiserOptions) -> NDArray[np.float64]:
    """Features of the better candidate minus those of the worse one, ``[pairs, F]``, sentence by sentence."""
    bleu = sentence_bleu(pool.statistics)
    first, second = [], []
    for start, end in zip(pool.offsets[:-1], pool.offsets[1:], strict=True):
        if end - start < 2:
            continue
        one, other = rng.integers(start, end, (2, options.samples))
        gap = bleu[one] - bleu[other]
        far = np.flatnonzero(np.abs(gap) >= options.threshold)
        kept = far[np.argsort(-np.abs(gap[far]), kind="stable")[: options.kept]]
        first.append(np.where(gap[kept] > 0, one[kept], other[kept]))
        second.append(np.where(gap[kept] > 0, other[kept], one[kept]))
    better, worse = (np.concatenate([np.zeros(0, np.int64), *rows]) for rows in (first, second))
    return np.asarray((pool.features[:, better].astype(np.float64) - pool.features[:, worse]).T)


def fit(differences: NDArray[np.float64]) -> Weights:
    """The weights ``w`` that minimise the sum of log(1 + exp(-w·x)) over rows ``x``, twice, + ``PRIOR`` / 2 · w·w.

    Twice: every pair is an example in both orders, as in the paper.
    """
    weights = np.zeros(differences.shape[1])
    for _ in range(STEPS):
        wrong = 1 / (1 + np.exp(np.clip(differences @ weights, -500, 500)))
        gradient = PRIOR * weights - 2 * (wrong @ differences)
        curvature = 2 * (differences * (wrong * (1 - wrong))[:, None]).T @ differences + PRIOR * np.eye(weights.size)
        step = np.linalg.solve(curvature, gradient)
        # the loss is convex, but a whole step may be too far where the sigmoid is flat
        scale = 1.0
        while scale > 1e-6 and _loss(differences, weights - scale * step) > _loss(differences, weights):
            scale /= 2
        weights = weights - scale * step
        if np.abs(scale * step).max() < CONVERGED:
            break
    return weights


def _loss(differences: NDArray[np.float64], weights: Weights) -> float:
    return float(2 * np.logaddexp(0, -(differences @ weights)).sum() + PRIOR / 2 * weights @ weights)
