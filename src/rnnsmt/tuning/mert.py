"""Minimum error rate training (Och 2003): many climbs by exact line search, combined into one weight vector.

A climb follows Och (2003): exact line searches along the coordinates and along random directions, every improvement
taken at once, until a whole cycle of directions brings none.

The climbs start from random points around the weights of the iteration before. The classical choice
(``combine="best"``) is the best of the points they reach. That maximum sits on one of many narrow peaks of a piecewise
constant surface, fits the development set more than other text, and which peak it is differs between seeds. So by
default (``combine="mean"``) the mean of the better half of them is taken: a point of the plateau that the peaks stand
on. Its BLEU on the development set is a little lower, on other text it is not, and it hardly differs between seeds (the
mean of several tunings is steadier than each of them: Cettolo et al. 2011).

Every climb has its own generator, seeded by its place, so that the result does not depend on the number of threads.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rnnsmt.tuning.kernels.line_search import best_point, line_bleu, line_corners, project
from rnnsmt.tuning.nbest_pool import FlatPool
from rnnsmt.tuning.options import OptimiserOptions
from rnnsmt.tuning.weights import Weights, normalised

TOLERANCE = 1e-5
"""Least gain in BLEU (0 to 1) that a line search must bring."""

NOISE = 0.5
"""Absolute sum of the noise in a random start, beside weights with absolute sum 1."""


@dataclass(frozen=True)
class Climb:
    """Result of one climb: weights with absolute sum 1 and the BLEU (0 to 1) they reached."""

    weights: Weights
    value: float


def optimise(
    pool: FlatPool,
    start: Weights,
    active: NDArray[np.bool_],
    seed: Sequence[int],
    options: OptimiserOptions,
    threads: int = 1,
) -> Weights:
    """Climb from ``start`` and from ``options.restarts`` random points around it; see ``optimise_weights``."""
    tasks = [(start, np.random.default_rng([*seed, 0, 0]))]
    for number in range(options.restarts):
        rng = np.random.default_rng([*seed, 1, number])
        tasks.append((random_start(rng, start, active), rng))
    with ThreadPoolExecutor(max_workers=threads) as executor:
        climbs = list(
            executor.map(lambda task: climb(pool, task[0], *_directions(task[1], active, options), options), tasks)
        )
    climbs.sort(key=lambda c: -c.value)
    taken = climbs[: (len(climbs) + 1) // 2] if options.combine == "mean" else climbs[:1]
    return normalised(np.mean([c.weights for c in taken], axis=0))


def climb(
    pool: FlatPool,
    start: Weights,
    directions: NDArray[np.float64],
    coordinates: NDArray[np.int64],
    options: OptimiserOptions,
) -> Climb:
    """Climb from ``start`` by line searches, taking every improvement at once.

    Args:
        pool: the candidates.
        start: ``[F]``, weights.
        directions: ``[C, D, F]``, cycles of directions with absolute sum 1; a cycle without improvement ends the climb.
        coordinates: ``[C, D]``, the one feature that a direction moves, or -1 for a general direction.
        options: ``reach``.
    """
    line = LineSearch(pool)
    weights = normalised(start)
    value = -1.0
    slopes, intercepts = np.empty(len(pool.statistics)), np.empty(len(pool.statistics))
    for cycle in range(len(directions)):
        project(pool.features, weights, intercepts)
        improved = False
        for direction, k in zip(directions[cycle], coordinates[cycle], strict=True):
            if k >= 0:
                slopes[:] = pool.features[k]
            else:
                project(pool.features, direction, slopes)
            x, found = line.search(slopes, intercepts, -options.reach, options.reach)
            if found > value + TOLERANCE:
                value, improved = found, True
                weights = weights + x * direction
                intercepts += x * slopes
        weights = normalised(weights)
        if not improved:
            break
    return Climb(weights, value)


class LineSearch:
    """Exact line searches on one pool; keeps its work space."""

    def __init__(self, pool: FlatPool) -> None:
        self._pool = pool
        size = len(pool.statistics)
        self._xs = np.empty(size)
        self._before, self._after = np.empty(size, np.int32), np.empty(size, np.int32)
        self._total = np.empty(9, np.int64)

    def search(
        self, slopes: NDArray[np.float64], intercepts: NDArray[np.float64], low: float, high: float
    ) -> tuple[float, float]:
        """The best point between ``low`` and ``high`` on the line, and its BLEU; see ``best_point``."""
        pool = self._pool
        corners = line_corners(
            slopes, intercepts, pool.offsets, low, high, pool.statistics, self._total,
            self._xs, self._before, self._after,
        )  # fmt: skip
        order = np.argsort(self._xs[:corners], kind="stable")
        bleu = np.empty(corners + 1)
        line_bleu(self._total, self._before, self._after, corners, order, pool.statistics, bleu)
        x, value = best_point(self._xs, order, bleu, corners, low, high)
        return float(x), float(value)


def random_start(rng: np.random.Generator, around: Weights, active: NDArray[np.bool_]) -> Weights:
    """A random point with absolute sum 1, a third of it noise; weights that are not active stay up to the scale."""
    point = normalised(around)
    point[active] += NOISE * normalised(rng.standard_normal(int(active.sum())))
    return normalised(point)


def _directions(
    rng: np.random.Generator, active: NDArray[np.bool_], options: OptimiserOptions
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Directions of all cycles ``[C, D, F]`` in random order, and which of them are coordinates ``[C, D]``."""
    features = np.flatnonzero(active)
    number = features.size + options.random_directions
    directions = np.zeros((options.cycles, number, active.size))
    coordinates = np.full((options.cycles, number), -1, np.int64)
    for cycle in range(options.cycles):
        for place, kind in enumerate(rng.permutation(number)):
            if kind < features.size:
                directions[cycle, place, features[kind]] = 1.0
                coordinates[cycle, place] = features[kind]
            else:
                directions[cycle, place, active] = normalised(rng.standard_normal(features.size))
    return directions, coordinates
