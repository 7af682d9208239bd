"""Minimum error rate training (Och 2003): local search by exact line search from many starting points.

Each local search follows Och (2003): exact line searches along the coordinate axes and along random directions; every
improvement is applied at once; the search ends after a whole cycle of directions without improvement.

The searches start from random points around the weights of the previous iteration. The classical choice
(``combine="best"``) is the best local optimum. It is one of many narrow peaks of a piecewise constant function, it
overfits the development set, and it varies with the seed. The default (``combine="mean"``) is the mean of the weights
of the better half of the local optima. Its BLEU is slightly lower on the development set but not on other text, and it
varies little with the seed (the mean of several tuning runs is more stable than each of them: Cettolo et al. 2011).

Every local search has its own random generator, seeded by its number, so that the result does not depend on the number
of threads.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rnnsmt.tuning.kernels.line_search import best_point, line_bleu, line_corners
from rnnsmt.tuning.kernels.pool import project
from rnnsmt.tuning.nbest_pool import FlatPool
from rnnsmt.tuning.options import OptimiserOptions
from rnnsmt.tuning.weights import Weights, normalised

TOLERANCE = 1e-5
"""Minimum gain in BLEU (0 to 1) for which a line search changes the weights."""

NOISE = 0.5
"""Absolute sum of the noise added to a random start, relative to weights with absolute sum 1."""


@dataclass(frozen=True)
class Climb:
    """Result of a local search: weights with absolute sum 1 and their BLEU (0 to 1) on the pool."""

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
    """Run a local search from ``start`` and from ``options.restarts`` random points around it.

    See ``optimise_weights``.
    """
    tasks = [(start, np.random.default_rng([*seed, 0, 0]))]
    for number in range(options.restarts):
        rng = np.random.default_rng([*seed, 1, number])
        tasks.append((random_start(rng, start, active), rng))
    # threads suffice: the kernels release the GIL
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
    """Run a local search from ``start`` by line searches, applying every improvement at once.

    Args:
        pool: candidates of all sentences.
        start: initial weights ``[F]``.
        directions: ``[C, D, F]``, cycles of directions with absolute sum 1; the search ends after a cycle without
            improvement.
        coordinates: ``[C, D]``, feature number of a direction along a coordinate axis, -1 for other directions.
        options: ``reach`` is used.
    """
    line = LineSearch(pool)
    weights = normalised(start)
    value = -1.0
    slopes, intercepts = np.empty(len(pool.statistics)), np.empty(len(pool.statistics))
    for cycle in range(len(directions)):
        project(pool.features, weights, intercepts)
        improved = False
        for direction, k in zip(directions[cycle], coordinates[cycle], strict=True):
            if k >= 0:  # the projection on a coordinate axis is a row of the feature matrix
                slopes[:] = pool.features[k]
            else:
                project(pool.features, direction, slopes)
            x, found = line.search(slopes, intercepts, -options.reach, options.reach)
            if found > value + TOLERANCE:
                value, improved = found, True
                weights = weights + x * direction
                # scores at the new weights, without a new projection; rounding errors are removed at the next cycle
                intercepts += x * slopes
        weights = normalised(weights)
        if not improved:
            break
    return Climb(weights, value)


class LineSearch:
    """Exact line searches on one pool, with reusable buffers."""

    def __init__(self, pool: FlatPool) -> None:
        """Allocate buffers for a pool."""
        self._pool = pool
        size = len(pool.statistics)
        self._xs = np.empty(size)
        self._before, self._after = np.empty(size, np.int32), np.empty(size, np.int32)
        self._total = np.empty(9, np.int64)

    def search(
        self, slopes: NDArray[np.float64], intercepts: NDArray[np.float64], low: float, high: float
    ) -> tuple[float, float]:
        """Return the best point between ``low`` and ``high`` on the line, and its BLEU (0 to 1); see ``best_point``."""
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
    """Return a random point with absolute sum 1, a third of it noise; inactive weights change by scaling only."""
    point = normalised(around)
    point[active] += NOISE * normalised(rng.standard_normal(int(active.sum())))
    return normalised(point)


def _directions(
    rng: np.random.Generator, active: NDArray[np.bool_], options: OptimiserOptions
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Draw the directions ``[C, D, F]`` of all cycles in random order, and their coordinates ``[C, D]`` (-1: none)."""
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
