"""Minimum error rate training (Och 2003) with averaged local optima, which vary less with the seed than ``mert``.

Each local search follows Och (2003). It makes exact line searches along the coordinate axes and along random
directions, applies every improvement immediately, and ends after a complete cycle of directions without improvement.

On a line ``w + x d`` in weight space, the score of a candidate is a linear function ``intercept + x slope``. The best
candidate of a sentence has the highest line, so it changes only at the corners of the upper envelope of the lines
of its candidates (Macherey et al. 2008). The corners of all sentences together are the only points where corpus BLEU
can change; between two neighbouring corners it is constant. The kernels at the end of this file find the corners.

The searches start from random points around the weights of the previous iteration. The best local optimum, which is the
result of ``rnnsmt.tuning.mert``, is one of many narrow peaks of a piecewise constant function: it overfits the dev set,
and varies with the seed. The mean of the weights of the better half of the local optima has a lower BLEU on the dev
set, and varies less with the seed (the mean of several tuning runs is more stable than each of them: Cettolo et al.
2011).

Every local search has its own random generator, seeded by its number, and the kernels use no random numbers, so that
the result does not depend on the number of threads.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.kernels.decorator import kernel
from rnnsmt.bleu.batch import bleu_of_statistics
from rnnsmt.tuning.nbest_pool import FlatPool, Weights, normalised, project

RANDOM_DIRECTIONS = 14
"""Number of random directions in every cycle, in addition to the coordinate axes."""

CYCLES = 25
"""Maximum number of cycles of directions per start."""

REACH = 0.25
"""Maximum distance of a line search in both directions, from weights whose absolute values sum to 1."""

TOLERANCE = 1e-5
"""Minimum gain in BLEU (0 to 1) for which a line search changes the weights."""

NOISE = 0.5
"""Sum of the absolute values of the noise that a random start adds to weights whose absolute values sum to 1."""


@dataclass(frozen=True)
class Climb:
    """Result of a local search: weights, whose absolute values sum to 1, and their BLEU (0 to 1) on the pool."""

    weights: Weights
    value: float


def optimize(
    pool: FlatPool,
    start: Weights,
    active: NDArray[np.bool_],
    seed: Sequence[int],
    restarts: int,
    threads: int = 1,
) -> Weights:
    """Return the mean weights of the better half of the local optima; see ``Optimizer.optimize`` for the arguments."""
    climbs = local_optima(pool, start, active, seed, restarts, threads)
    return normalised(np.mean([c.weights for c in climbs[: (len(climbs) + 1) // 2]], axis=0))


def local_optima(
    pool: FlatPool,
    start: Weights,
    active: NDArray[np.bool_],
    seed: Sequence[int],
    restarts: int,
    threads: int = 1,
) -> list[Climb]:
    """Run local searches from ``start`` and ``restarts`` random points around it; return the optima, best first."""
    tasks = [(start, np.random.default_rng([*seed, 0, 0]))]
    for number in range(restarts):
        rng = np.random.default_rng([*seed, 1, number])
        tasks.append((random_start(rng, start, active), rng))
    # threads suffice: the kernels release the GIL
    with ThreadPoolExecutor(max_workers=threads) as executor:
        climbs = list(executor.map(lambda task: climb(pool, task[0], *_directions(task[1], active)), tasks))
    return sorted(climbs, key=lambda c: -c.value)


def climb(
    pool: FlatPool,
    start: Weights,
    directions: NDArray[np.float64],
    coordinates: NDArray[np.int64],
) -> Climb:
    """Run a local search from ``start`` by line searches, applying every improvement immediately.

    Args:
        start: initial weights ``[F]``.
        directions: ``[C, D, F]``, D directions for each of C cycles; the absolute values of a direction sum to 1. The
            search ends after a cycle without improvement.
        coordinates: ``[C, D]``, feature number of a direction along a coordinate axis, -1 for other directions.
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
            x, gain = line.search(slopes, intercepts, -REACH, REACH)
            if gain > value + TOLERANCE:
                value, improved = gain, True
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
    """Return ``around`` with noise on the active weights, normalised; the noise is a third of the sum."""
    point = normalised(around)
    point[active] += NOISE * normalised(rng.standard_normal(int(active.sum())))
    return normalised(point)


def _directions(rng: np.random.Generator, active: NDArray[np.bool_]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Draw the directions of all cycles in random order; return ``directions`` and ``coordinates`` as in ``climb``."""
    features = np.flatnonzero(active)
    number = features.size + RANDOM_DIRECTIONS
    directions = np.zeros((CYCLES, number, active.size))
    coordinates = np.full((CYCLES, number), -1, np.int64)
    for cycle in range(CYCLES):
        for index, kind in enumerate(rng.permutation(number)):
            if kind < features.size:
                directions[cycle, index, features[kind]] = 1.0
                coordinates[cycle, index] = features[kind]
            else:
                directions[cycle, index, active] = normalised(rng.standard_normal(features.size))
    return directions, coordinates


@kernel()
def upper_envelope(slopes, intercepts, low, high, candidates, lines, starts):
    """Find the upper envelope of lines between ``low`` and ``high``, from left to right, by gift wrapping.

    Takes O(n k) time for n lines and k lines on the envelope. No sort is needed, and k is small compared to n.

    Args:
        slopes, intercepts: float64 ``[n]``, the lines.
        low, high: finite bounds of the range.
        candidates: int32 ``[n]``, buffer for the indices of lines that may still follow on the envelope, ascending.
        lines: int32 ``[n]``, written: indices of the lines on the envelope.
        starts: float64 ``[n]``, written: for each line on the envelope, the left end of the interval on which it is the
            highest; the first is ``low``.

    Returns:
        Number of lines on the envelope. If several lines are equal, the first is used.
    """
    n = slopes.size
    best, last = 0, 0
    best_value = last_value = -np.inf
    for i in range(n):
        # highest line at the left end (if tied, the steepest, which is the highest just right of it) and at the right
        # end (if tied, the first)
        left = intercepts[i] + low * slopes[i]
        right = intercepts[i] + high * slopes[i]
        if left > best_value or (left == best_value and slopes[i] > slopes[best]):
            best_value = left
            best = i
        if right > last_value:
            last_value = right
            last = i
    count_kept = 0
    if slopes[last] > slopes[best]:
        # No line is above ``best`` at ``low`` or above ``last`` at ``high``. A line that is not above the point where
        # these two lines meet is therefore nowhere above both, and is discarded. Few lines remain.
        x = (intercepts[best] - intercepts[last]) / (slopes[last] - slopes[best])
        meeting = intercepts[best] + x * slopes[best]
        for i in range(n):
            candidates[count_kept] = i
            count_kept += intercepts[i] + x * slopes[i] > meeting or i == last
    lines[0] = best
    starts[0] = low
    count = 1
    while count_kept > 0:
        # Slopes ascend along the envelope: only steeper lines can follow, and flatter ones are removed from
        # ``candidates``. The next line is the one that crosses the current line first; if tied, the steepest.
        slope, intercept = slopes[best], intercepts[best]
        next_x = high
        following = -1
        write = 0
        for index in range(count_kept):
            i = candidates[index]
            gap = slopes[i] - slope
            if gap > 0.0:
                candidates[write] = i
                write += 1
                x = (intercept - intercepts[i]) / gap
                if x < next_x or (x == next_x and following >= 0 and slopes[i] > slopes[following]):
                    next_x = x
                    following = i
        count_kept = write
        if following < 0:
            break
        best = following
        lines[count] = best
        starts[count] = max(next_x, starts[count - 1])  # ascending despite rounding errors
        count += 1
    return count


@kernel()
def line_corners(slopes, intercepts, offsets, low, high, statistics, total, xs, before, after):
    """Compute the corners of the envelopes of all sentences on one line in weight space.

    Args:
        slopes, intercepts: float64 ``[N]``, lines of the candidates, sentence by sentence.
        offsets: int64 ``[S + 1]``, first candidate of each sentence.
        low, high: finite bounds of the range.
        statistics: int32 ``[N, 9]``, BLEU statistics of the candidates.
        total: int64 ``[9]``, written: summed statistics of the best candidates at ``low``.
        xs: float64 ``[N]``, written: positions of the corners, ascending within each sentence.
        before, after: int32 ``[N]``, written: the best candidate to the left and to the right of each corner.

    Returns:
        Number of corners.
    """
    largest = 0
    for s in range(offsets.size - 1):
        largest = max(largest, offsets[s + 1] - offsets[s])
    # buffers of ``upper_envelope``, allocated once with the size of the longest n-best list
    candidates = np.empty(largest, np.int32)
    lines = np.empty(largest, np.int32)
    starts = np.empty(largest, np.float64)
    total[:] = 0
    corners = 0
    for s in range(offsets.size - 1):
        start, end = offsets[s], offsets[s + 1]
        if start == end:
            continue
        number = upper_envelope(slopes[start:end], intercepts[start:end], low, high, candidates, lines, starts)
        for j in range(9):
            total[j] += statistics[start + lines[0], j]
        for e in range(1, number):
            xs[corners] = starts[e]
            before[corners] = start + lines[e - 1]
            after[corners] = start + lines[e]
            corners += 1
    return corners


@kernel()
def line_bleu(total, before, after, corners, order, statistics, bleu):
    """Compute corpus BLEU (0 to 1) on every interval between neighbouring corners.

    Statistics are updated at every corner by the difference of two candidates, so the time per corner does not depend
    on the number of sentences.

    Args:
        total: int64 ``[9]``, summed statistics to the left of the first corner.
        before, after: int32, candidates of the corners, see ``line_corners``.
        corners: number of corners.
        order: int64 ``[corners]``, argsort of the positions of the corners.
        statistics: int32 ``[N, 9]``.
        bleu: float64 ``[corners + 1]``, written: ``bleu[e]`` is BLEU to the left of corner ``order[e]``, and the
            last value is BLEU to the right of all corners.
    """
    running = total.copy()
    value = bleu_of_statistics(running)
    for e in range(corners):
        old, new = before[order[e]], after[order[e]]
        bleu[e] = value
        changed = False
        for j in range(9):
            change = statistics[new, j] - statistics[old, j]
            running[j] += change
            changed |= change != 0
        if changed:
            value = bleu_of_statistics(running)
    bleu[corners] = value


@kernel()
def best_point(xs, order, bleu, corners, low, high):
    """Return the centre of the interval of the line with the highest BLEU.

    Adjacent intervals with equal BLEU are merged; of several best intervals the widest is used.

    Returns:
        ``(x, value)``: the point and its BLEU (0 to 1).
    """
    best_x, best_value, best_width = 0.0, -1.0, -1.0
    e = 0
    while e <= corners:
        start = low if e == 0 else xs[order[e - 1]]
        value = bleu[e]
        while e < corners and bleu[e + 1] == value:
            e += 1
        end = high if e == corners else xs[order[e]]
        width = end - start
        # several corners at the same position leave empty intervals, which contain no point
        if width > 0.0 and (value > best_value or (value == best_value and width > best_width)):
            best_x, best_value, best_width = 0.5 * (start + end), value, width
        e += 1
    return best_x, best_value
