"""Minimum error rate training (Och 2003) as Moses' ``mert`` does it: steepest ascent along the coordinate axes.

Searches start from the current weights and from random points of [0, 1]^F. In every step, a search considers the lines
through the current point that are parallel to an axis, finds the best point on each of them, and moves to the best of
these points. It ends when a step gains at most ``TOLERANCE``. The result is the best optimum of all searches, scaled so
that the absolute values of the weights sum to 1.

On a line ``w + x d`` in weight space, the score of a candidate is a linear function ``score + x slope``. The best
candidate of a sentence, and with it corpus BLEU, changes only at the corners of the upper envelope of these functions
(lines, one per candidate).

The precision of every operation is that of ``mert`` (Moses' mert/Optimizer.cpp): scores, corners and BLEU in single
precision, sums of products in double precision. Given the same pool and starting points, a search therefore visits the
same points, with two exceptions: if corners of different sentences have equal positions, ``mert`` may move them by up
to ``NEAR``; and if candidates have equal scores, ``mert`` selects one by another order of the candidates.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.kernels.decorator import INNER, kernel
from rnnsmt.tuning.nbest_pool import FlatPool, Weights, best_candidates, normalised, project

TOLERANCE = np.float32(0.0001)
"""A search ends when a step increases BLEU (0 to 1) by at most this value."""

NEAR = np.float32(0.0001)
"""If the distance of two corners of a sentence is below this value, they are merged at the position of the second."""

LEAST_MOVE = np.float32(0.00015)
"""Minimum distance of a move along a line; shorter moves are replaced by 0."""

BELOW = np.float32(0.0001)
"""A line is below a corner of an envelope if its distance exceeds this share of the numbers that are added there. The
share is a thousand times the rounding errors, unless scores differ by more than a thousand times these numbers."""

LARGEST = np.float32(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Optimum:
    """Result of a search: weights (float32 ``[F]``) and their BLEU (0 to 1) on the pool."""

    weights: NDArray[np.float32]
    value: float


def optimize(
    pool: FlatPool,
    start: Weights,
    active: NDArray[np.bool_],
    seed: Sequence[int],
    restarts: int,
    threads: int = 1,
) -> Weights:
    """Return the weights ``[F]`` of the best local optimum, normalised so that their absolute values sum to 1.

    Args:
        start: weights of the previous iteration.
        active: ``[F]``, mask of the features whose weights may change.
        seed: entropy of the random starting points.
        restarts: number of random starting points.
        threads: number of threads; does not affect the result.
    """
    starts = [start]
    for number in range(restarts):
        point = start.copy()
        point[active] = np.random.default_rng([*seed, number]).random(int(active.sum()))
        starts.append(point)
    return normalised(best_optimum(pool, starts, active, threads).weights.astype(np.float64))


def best_optimum(pool: FlatPool, starts: Sequence[Weights], active: NDArray[np.bool_], threads: int = 1) -> Optimum:
    """Run a search from every starting point; return the optimum with the highest BLEU, the first in case of a tie."""
    extremes = extremes_of(pool)
    # threads suffice: the kernels release the GIL
    with ThreadPoolExecutor(max_workers=threads) as executor:
        return max(executor.map(lambda start: search(pool, extremes, start, active), starts), key=lambda o: o.value)


def extremes_of(pool: FlatPool) -> NDArray[np.int32]:
    """Return the flattest and the steepest line ``[F, S, 2]``, see ``find_extremes``; they are those of every start."""
    extremes = np.zeros((len(pool.features), pool.sentences, 2), np.int32)
    find_extremes(pool.features, pool.offsets, extremes)
    return extremes


def search(pool: FlatPool, extremes: NDArray[np.int32], start: Weights, active: NDArray[np.bool_]) -> Optimum:
    """Run a search from one starting point ``[F]``; ``extremes`` is ``extremes_of(pool)``."""
    line = AxisSearch(pool, extremes)
    weights = start.astype(np.float32)
    line.move_to(weights)
    value = line.bleu()
    while True:
        before, best = value, None
        for k in np.flatnonzero(active):
            x, reached = line.best_point(int(k))
            if reached > value:
                value, best = reached, (k, x)
        if best is not None:
            k, x = best
            weights[k] += x
            line.move_to(weights)
        if value - before <= TOLERANCE:
            return Optimum(weights, float(value))


class AxisSearch:
    """Exact line searches parallel to the axes, starting from one point, with reusable buffers."""

    def __init__(self, pool: FlatPool, extremes: NDArray[np.int32]) -> None:
        """Allocate buffers for a pool; ``extremes`` is ``extremes_of(pool)``."""
        self._pool, self._extremes = pool, extremes
        size = len(pool.statistics)
        self._sums = np.empty(size)
        self._scores = np.empty(size, np.float32)
        self._highest = np.empty(pool.sentences, np.int64)
        self._best = np.empty(pool.sentences, np.int64)
        self._keys = np.empty(size, np.int64)
        self._xs = np.empty(size, np.float32)
        self._corners = np.empty((size, 2), np.int32)
        first = pool.offsets[:-1][np.diff(pool.offsets) > 0]  # of the sentences with candidates
        longest = np.maximum.reduceat(pool.statistics.max(axis=1), first) if len(first) else first
        self._logs = logarithms(int(longest.sum()) + 1)

    def move_to(self, weights: NDArray[np.float32]) -> None:
        """Move to the point ``weights`` ``[F]``: compute the scores and the best candidate of each sentence there."""
        project(self._pool.features, weights, self._sums)
        self._scores[:] = self._sums
        best_candidates(self._scores, self._pool.offsets, self._highest)

    def bleu(self) -> np.float32:
        """Return BLEU (0 to 1) at the current point."""
        rows = self._highest[self._highest >= 0]
        return np.float32(single_bleu(self._pool.statistics[rows].astype(np.int64).sum(axis=0), self._logs))

    def best_point(self, k: int) -> tuple[np.float32, np.float32]:
        """Return the signed distance to the best point on the line parallel to axis ``k``, and its BLEU (0 to 1)."""
        pool, slopes, extremes = self._pool, self._pool.features[k], self._extremes[k]
        count = line_corners(
            slopes, self._scores, pool.offsets, extremes, self._highest, self._best, self._xs, self._corners
        )
        keys = self._keys[:count]
        sort_keys(self._xs, keys)
        keys.sort()  # equal positions by their numbers
        x, value = best_interval(pool.statistics, self._best, self._xs, self._corners, keys, self._logs)
        return np.float32(x), np.float32(value)


@kernel(**INNER)
def sortable(bits, number):
    """Return an int64 key of a float32 and its number; keys are in the order of the values, then of the numbers.

    With integers, compilers and numpy vectorise maxima and sorting.

    Args:
        bits: int32, the bits of the value; -0.0 comes before 0.0.
        number: from 0 to 2^32 - 1, see ``numbered``.
    """
    wide = np.int64(bits)
    return ((wide ^ ((wide >> 31) & 0x7FFFFFFF)) << 32) | number


@kernel(**INNER)
def numbered(key):
    """Return the number in a key of ``sortable``."""
    return key & 0xFFFFFFFF


@kernel(**INNER)
def next_corner(slopes, scores, kept, count, current):
    """Find the next line of an upper envelope: the first one to the right that crosses the current line.

    Args:
        slopes, scores: float32 ``[n]``, the lines of a sentence.
        kept: int32, updated in place: numbers of lines that may be on the envelope; lines that are not steeper than
            ``current`` are removed.
        count: number of lines in ``kept``.
        current: number of the current line.

    Returns:
        ``(x, following, count)``: position of the corner; number of the next line, or -1 if there is none; number of
        lines that are left in ``kept``. If several lines cross there, the next line is the steepest, and the last one
        of equally steep lines.
    """
    slope, score = slopes[current], scores[current]
    first, following, write = LARGEST, -1, 0
    for index in range(count):
        i = kept[index]
        if slopes[i] > slope:
            kept[write] = i
            write += 1
            x = (scores[i] - score) / (slope - slopes[i])
            if not np.isfinite(x):
                x = LARGEST
            if x < first or (x == first and (following < 0 or slopes[i] >= slopes[following])):
                first = x
                following = i
    return first, following, write


@kernel()
def find_extremes(features, offsets, extremes):
    """Find the lines with the smallest and the largest slope for every axis and sentence, the first in case of a tie.

    Args:
        features: float32 ``[F, N]``, the slopes.
        offsets: int64 ``[S + 1]``, first candidate of each sentence.
        extremes: int32 ``[F, S, 2]``, written: numbers, within the sentence, of the line with the smallest slope (the
            flattest) and of that with the largest slope (the steepest); unchanged for a sentence without candidates.
    """
    for k in range(features.shape[0]):
        for s in range(offsets.size - 1):
            slope = features[k, offsets[s] : offsets[s + 1]]
            flattest = steepest = 0
            for i in range(1, slope.size):
                if slope[i] < slope[flattest]:
                    flattest = i
                if slope[i] > slope[steepest]:
                    steepest = i
            if slope.size:
                extremes[k, s, 0], extremes[k, s, 1] = flattest, steepest


@kernel(**INNER)
def crossing(slope, score, i, j):
    """Return the position where line j crosses the flatter line i, computed in double precision, as float32."""
    return np.float32((np.float64(score[i]) - score[j]) / (np.float64(slope[j]) - slope[i]))


@kernel(**INNER)
def highest_line(slope, score, x, heights):
    """Return the number of a line that is one of the highest at position x.

    heights: float32 ``[n]`` or longer, a buffer.
    """
    for j in range(slope.size):
        heights[j] = score[j] + x * slope[j]
    bits = heights.view(np.int32)
    highest = sortable(bits[0], 0)
    for j in range(1, slope.size):
        highest = max(highest, sortable(bits[j], j))
    return numbered(highest)


@kernel(**INNER)
def lower_bound(slope, score, flattest, inner, steepest, bound, heights):
    """Find lines whose envelope is a lower bound of the envelope of all lines of a sentence.

    Args:
        slope, score: float32 ``[n]``, the lines of a sentence.
        flattest, steepest: numbers of a line with the smallest and of a line with the largest slope; their slopes
            differ.
        inner: number of any line.
        bound: int32 ``[5]``, written: numbers of two to five lines in ascending order of slope: a flattest line,
            ``inner`` (unless its slope is one of the extremes), a steepest line, and between two of these, the highest
            line at the position where they cross.
        heights: float32 ``[n]`` or longer, a buffer.

    Returns:
        Number of lines in ``bound``.
    """
    bound[0] = flattest
    count = 1
    middle = inner if slope[flattest] < slope[inner] < slope[steepest] else steepest
    while True:
        left, right = bound[count - 1], middle
        highest = highest_line(slope, score, crossing(slope, score, left, right), heights)
        if slope[highest] == slope[left]:
            bound[count - 1] = highest
        elif slope[left] < slope[highest] < slope[right]:
            bound[count] = highest
            count += 1
        elif slope[highest] == slope[right]:
            right = highest
        bound[count] = right
        count += 1
        if middle == steepest:
            return count
        middle = steepest


@kernel(**INNER)
def not_below(slope, score, bound, lines, high, kept):
    """Select the lines that are not everywhere below the envelope of the lines in ``bound``.

    An envelope minus a line is a convex, piecewise linear function. Its minimum is at a corner of the envelope, where
    two neighbouring lines of ``bound`` cross.

    Args:
        slope, score: float32 ``[n]``, the lines of a sentence.
        bound: int32, numbers of the lines of the envelope, see ``lower_bound``.
        lines: number of lines in ``bound``.
        high: bool ``[n]`` or longer, a buffer.
        kept: int32 ``[n]`` or longer, written: numbers of the selected lines, ascending.

    Returns:
        Number of lines in ``kept``.
    """
    n = slope.size
    high[:n] = False
    for b in range(lines - 1):
        left, right = bound[b], bound[b + 1]
        x = crossing(slope, score, left, right)
        scale = np.float32(1.0) + abs(score[left]) + abs(x) * max(abs(slope[left]), abs(slope[right]))
        height = score[left] + x * slope[left] - BELOW * scale
        for i in range(n):
            high[i] |= not (score[i] + x * slope[i] < height)  # all if x is so large that a height is NaN
    count = 0
    for i in range(n):
        kept[count] = i
        count += high[i]
    return count


@kernel()
def line_corners(slopes, scores, offsets, extremes, highest, best, xs, corners):
    """Compute the corners of the envelopes of all sentences on an unbounded line in weight space.

    The lines of most candidates are nowhere the highest. A lower bound of the envelope excludes them; then the corners
    are found from left to right.

    Args:
        slopes, scores: float32 ``[N]``, the lines of the candidates, sentence by sentence.
        offsets: int64 ``[S + 1]``, first candidate of each sentence.
        extremes: int32 ``[S, 2]``, see ``find_extremes``.
        highest: int64 ``[S]``, the candidate of each sentence with the highest score.
        best: int64 ``[S]``, written: the best candidate of each sentence to the left of all corners, or -1 for a
            sentence without candidates.
        xs: float32 ``[N]``, written: positions of the corners.
        corners: int32 ``[N, 2]``, written: sentence of each corner, and the best candidate of this sentence to the
            right of the corner.

    Returns:
        Number of corners.
    """
    largest = 0
    for s in range(offsets.size - 1):
        largest = max(largest, offsets[s + 1] - offsets[s])
    kept, high, bound = np.empty(largest, np.int32), np.empty(largest, np.bool_), np.empty(5, np.int32)
    heights = np.empty(largest, np.float32)
    corner = 0
    for s in range(offsets.size - 1):
        start, end = offsets[s], offsets[s + 1]
        best[s] = -1
        if start == end:
            continue
        slope, score = slopes[start:end], scores[start:end]
        flattest, steepest = extremes[s]
        if slope[flattest] == slope[steepest]:
            best[s] = start + np.argmax(score)
            continue
        lines = lower_bound(slope, score, flattest, highest[s] - start, steepest, bound, heights)
        count = not_below(slope, score, bound, lines, high, kept)
        for i in kept[:count]:
            if slope[i] == slope[flattest] and score[i] > score[flattest]:
                flattest = i
        best[s] = start + flattest
        place, following, count = next_corner(slope, score, kept, count, flattest)
        previous = -LARGEST
        while following >= 0:
            if place - previous < NEAR:
                corner -= 1
            xs[corner] = place
            corners[corner, 0], corners[corner, 1] = s, start + following
            corner += 1
            previous = place
            place, following, count = next_corner(slope, score, kept, count, following)
    return corner


@kernel()
def sort_keys(xs, keys):
    """Write the keys ``[C]`` of the first C positions, see ``sortable``; -0.0 gets the key of 0.0."""
    for e in range(keys.size):
        xs[e] += np.float32(0.0)
    bits = xs.view(np.int32)
    for e in range(keys.size):
        keys[e] = sortable(bits[e], e)


@kernel()
def best_interval(statistics, best, xs, corners, keys, logs):
    """Return the point of a line with the highest BLEU, the leftmost in case of a tie.

    The point is the centre of an interval between two neighbouring corners, or it lies 1000 to the left of the first
    corner or 0.1 to the right of the last one. A point nearer to 0 than ``LEAST_MOVE`` is replaced by 0.

    Args:
        statistics: int32 ``[N, 9]``.
        best: int64 ``[S]``, best candidates to the left of all corners; updated in place to the best candidates to the
            right of all corners.
        xs: float32, positions of the corners.
        corners: int32, see ``line_corners``.
        keys: int64 ``[C]``, the sorted keys of the positions of the C corners, see ``sort_keys``.
        logs: see ``logarithms``.

    Returns:
        ``(x, value)``: the point and its BLEU (0 to 1).
    """
    total = np.zeros(9, np.int64)
    for row in best:
        for j in range(9 if row >= 0 else 0):
            total[j] += statistics[row, j]
    best_x, best_value = np.float32(0.0), np.float32(-1.0)
    left, e = -LARGEST, 0
    changed, value = True, np.float32(0.0)
    while True:
        right = xs[numbered(keys[e])] if e < keys.size else LARGEST
        if changed:
            value = single_bleu(total, logs)
        if value > best_value:
            best_value = value
            if left == -LARGEST:
                best_x = right - np.float32(1000.0)
            elif e == keys.size:
                best_x = np.float32(left + 0.1)
            else:
                best_x = np.float32(0.5) * (left + right)
        if e == keys.size:
            break
        changed = False
        while e < keys.size and xs[numbered(keys[e])] == right:
            s, new = corners[numbered(keys[e])]
            for j in range(9):
                change = statistics[new, j] - statistics[best[s], j]
                total[j] += change
                changed |= change != 0
            best[s] = new
            e += 1
        left = right
    if abs(best_x) < LEAST_MOVE:
        best_x = np.float32(0.0)
    return best_x, best_value


@kernel()
def logarithms(size):
    """Return the logarithms of 0 to ``size`` - 1 in single precision."""
    logs = np.empty(size, np.float32)
    for n in range(size):
        logs[n] = np.log(np.float32(n))
    return logs


@kernel()
def single_bleu(total, logs):
    """Return corpus BLEU (0 to 1) of summed statistics ``[9]`` in single precision; 0 if no 4-gram matches."""
    log_bleu = np.float32(0.0)
    for n in range(4):
        if total[n] == 0:
            return np.float32(0.0)
        log_bleu += logs[total[n]] - logs[total[4 + n]]
    log_bleu /= np.float32(4.0)
    penalty = np.float32(1.0 - np.float32(total[8]) / np.float32(total[4]))
    return np.exp(log_bleu + min(penalty, np.float32(0.0)))
