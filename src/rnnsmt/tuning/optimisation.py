"""One optimisation on accumulated n-best lists: many climbs by exact line search, combined into one weight vector.

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

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rnnsmt.bleu.kernels.statistics import bleu_of_statistics
from rnnsmt.io import InputError
from rnnsmt.moses.ini import MosesIni
from rnnsmt.progress import say
from rnnsmt.tuning.kernels.line_search import best_candidates, best_point, line_bleu, line_corners, project
from rnnsmt.tuning.nbest_pool import FlatPool
from rnnsmt.tuning.options import OptimiserOptions

Weights = NDArray[np.float64]

TOLERANCE = 1e-5
"""Least gain in BLEU (0 to 1) that a line search must bring."""

NOISE = 0.5
"""Absolute sum of the noise in a random start, beside weights with absolute sum 1."""


@dataclass(frozen=True)
class Climb:
    """Result of one climb: weights with absolute sum 1 and the objective they reached."""

    weights: Weights
    value: float
    searches: int


def optimise_weights(
    pool: FlatPool,
    starts: Sequence[Weights],
    active: NDArray[np.bool_],
    seed: Sequence[int],
    options: OptimiserOptions,
    threads: int = 1,
) -> Climb:
    """Find weights for the pool.

    Args:
        pool: the candidates.
        starts: weights to start climbs from; at least one.
        active: ``[F]``, the features whose weights may be changed; the others keep theirs (up to the common scale).
        seed: words of the seed of this optimisation.
        options: how to search.
        threads: climbs run at the same time.

    Returns:
        The weights, their corpus BLEU on the pool (0 to 1), and the number of line searches of all climbs.
    """
    tasks = [(start, np.random.default_rng([*seed, 0, k])) for k, start in enumerate(starts)]
    for number in range(options.restarts):
        rng = np.random.default_rng([*seed, 1, number])
        tasks.append((random_start(rng, starts[number % len(starts)], active), rng))
    with ThreadPoolExecutor(max_workers=threads) as executor:
        climbs = list(
            executor.map(lambda task: climb(pool, task[0], *_directions(task[1], active, options), options), tasks)
        )
    climbs.sort(key=lambda c: -c.value)
    taken = climbs[: (len(climbs) + 1) // 2] if options.combine == "mean" else climbs[:1]
    weights = normalised(np.mean([c.weights for c in taken], axis=0))
    return Climb(weights, pool_bleu(pool, weights), sum(c.searches for c in climbs))


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
    value, searches = -1.0, 0
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
            searches += 1
            if found > value + TOLERANCE:
                value, improved = found, True
                weights = weights + x * direction
                intercepts += x * slopes
        weights = normalised(weights)
        if not improved:
            break
    return Climb(weights, value, searches)


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


def normalised(weights: Weights) -> Weights:
    """Weights scaled to absolute sum 1, as Moses writes them."""
    return weights / np.abs(weights).sum()


def random_start(rng: np.random.Generator, around: Weights, active: NDArray[np.bool_]) -> Weights:
    """A random point with absolute sum 1, a third of it noise; weights that are not active stay up to the scale."""
    point = normalised(around)
    point[active] += NOISE * normalised(rng.standard_normal(int(active.sum())))
    return normalised(point)


def pool_bleu(pool: FlatPool, weights: Weights) -> float:
    """Corpus BLEU (0 to 1) of the candidates that the weights choose from the pool."""
    scores = np.empty(len(pool.statistics), np.float64)
    project(pool.features, weights, scores)
    chosen = np.empty(pool.sentences, np.int64)
    best_candidates(scores, pool.offsets, chosen)
    return float(bleu_of_statistics(pool.statistics[chosen].astype(np.int64).sum(axis=0)))


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


def start_weights(ini: MosesIni, scores: Iterable[str]) -> Weights:
    """The ini's weights ``[F]`` of these scores.

    Raises:
        InputError: all of them are 0.
    """
    weights = np.array([ini.weight(score) for score in scores])
    if not np.abs(weights).sum() > 0:
        raise InputError(f"{ini.path}: all weights are 0, there is nothing to start from; give Moses' defaults")
    return weights


def tunable_features(pool: FlatPool, names: Sequence[str]) -> NDArray[np.bool_]:
    """``active_features``, and a warning that names the others.

    Raises:
        InputError: BLEU is 0 whatever the weights, or no feature differs between translations of a sentence.
    """
    for order in range(4):
        if not pool.statistics[:, order].any():
            raise InputError(
                f"no translation in the n-best lists shares a {order + 1}-gram with its reference, so BLEU is 0 "
                "whatever the weights; do --source and --reference belong together, and are they tokenised alike?"
            )
    active = active_features(pool)
    if not active.any():
        raise InputError(
            "every feature is constant on every n-best list: no feature differs between translations of a sentence, "
            "so no weight can be tuned; have the lists more than one translation, and does the phrase table cover "
            "the development set?"
        )
    if not active.all():
        constant = ", ".join(name for name, moves in zip(names, active, strict=True) if not moves)
        say(f"warning: constant on every n-best list, the weight stays: {constant}")
    return active


def active_features(pool: FlatPool) -> NDArray[np.bool_]:
    """``[F]``: the features that differ between two candidates of at least one sentence; only these can be tuned."""
    filled = pool.offsets[:-1][np.diff(pool.offsets) > 0]
    low = np.minimum.reduceat(pool.features, filled, axis=1)
    high = np.maximum.reduceat(pool.features, filled, axis=1)
    return np.asarray((high > low).any(axis=1))
