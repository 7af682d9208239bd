"""MERT as Moses' `mert` does it: every step against a slow implementation from its description."""

import math
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

from rnnsmt.base.errors import InputError
from rnnsmt.bleu.multi_bleu import bleu_of
from rnnsmt.config.sections import default_iterations
from rnnsmt.registries import OPTIMIZERS
from rnnsmt.tuning import mert
from rnnsmt.tuning.nbest_pool import FlatPool, NbestPool, active_features, best_candidates, candidate_batch, pool_bleu
from rnnsmt.tuning.optimizers import optimize_weights
from rnnsmt.tuning.options import OptimizerOptions

from .test_line_search import random_pool


def corners_of(slopes: list[np.float32], scores: list[np.float32]) -> tuple[int, list[tuple[np.float32, int]]]:
    """Return the best line at the far left, and position and following line of every corner, near ones merged."""
    lines = sorted(range(len(slopes)), key=lambda i: (slopes[i], i))
    flattest = [i for i in lines if slopes[i] == slopes[lines[0]]]
    current = first = max(flattest, key=lambda i: (scores[i], -i))
    corners: list[tuple[np.float32, int]] = []
    while True:
        steeper = [i for i in lines if slopes[i] > slopes[current]]
        if not steeper:
            return first, corners
        places = [(scores[i] - scores[current]) / (slopes[current] - slopes[i]) for i in steeper]
        last = max(k for k in range(len(steeper)) if places[k] == min(places))
        if corners and places[last] - corners[-1][0] < np.float32(1e-4):
            corners.pop()
        corners.append((places[last], steeper[last]))
        current = steeper[last]


def best_on_line(pool: FlatPool, slopes: np.ndarray, scores: np.ndarray) -> tuple[float, float]:
    """Return the point of a line and its BLEU (0 to 1): the centre of the first of the best intervals."""
    best, events = [], []
    for s in range(pool.sentences):
        start, end = pool.offsets[s], pool.offsets[s + 1]
        first, corners = corners_of(list(slopes[start:end]), list(scores[start:end]))
        best.append(start + first)
        events += [(x, s, start + i) for x, i in corners]
    places = sorted({x for x, _, _ in events})
    found, value = 0.0, -1.0
    for left, right in zip([-math.inf, *places], [*places, math.inf], strict=True):
        for x, s, i in events:
            if x == left:
                best[s] = i
        bleu = bleu_of(pool.statistics[best].sum(axis=0)).bleu / 100
        if bleu > value + 1e-7:
            value = bleu
            found = right - 1000 if left == -math.inf else left + 0.1 if right == math.inf else (left + right) / 2
    return (0.0 if abs(found) < 0.00015 else float(found)), value


def scores_at(pool: FlatPool, weights: np.ndarray) -> np.ndarray:
    """Return the scores of all candidates: products in single precision, their sums in double precision."""
    sums = [sum(float(w * x) for w, x in zip(weights, column, strict=True)) for column in pool.features.T]
    return np.array(sums).astype(np.float32)


@pytest.mark.parametrize("seed", range(8))
def test_a_search_is_steepest_ascent_along_the_axes(seed):
    pool = random_pool(seed, sentences=12)
    weights = np.random.default_rng(seed).random(3).astype(np.float32)
    found = mert.search(pool, mert.extremes_of(pool), weights, np.ones(3, bool))
    value = pool_bleu(pool, weights.astype(float))
    gain = 1.0
    while gain > 1e-4:
        scores = scores_at(pool, weights)
        steps = [best_on_line(pool, slopes, scores) for slopes in pool.features]
        k = max(range(3), key=lambda k: round(steps[k][1], 7))
        gain = steps[k][1] - value
        if gain > 1e-7:
            weights[k] += np.float32(steps[k][0])
            value = steps[k][1]
    assert found.value == pytest.approx(value, abs=1e-6)
    assert found.weights == pytest.approx(weights, abs=1e-5)
    assert pool_bleu(pool, found.weights.astype(float)) == pytest.approx(value, abs=1e-6)


def test_near_corners_of_a_sentence_are_one():
    # the second line is the highest between 0 and 0.00005 only
    slopes, scores = np.array([0, 1, 2], np.float32), np.array([0, 0, -0.00005], np.float32)
    best, xs, corners = found_corners(slopes, scores, np.array([0, 3]))
    assert (best.tolist(), xs.tolist(), corners.tolist()) == ([0], [pytest.approx(0.00005)], [[0, 2]])


def found_corners(slopes, scores, offsets):
    """Return the best candidates left of all corners, and the positions and candidates of the corners."""
    pool = FlatPool(slopes[None], np.zeros((slopes.size, 9), np.int32), offsets)
    extremes, highest = mert.extremes_of(pool), np.empty(offsets.size - 1, np.int64)
    best_candidates(scores, offsets, highest)
    best = np.empty(offsets.size - 1, np.int64)
    xs, corners = np.empty(slopes.size, np.float32), np.empty((slopes.size, 2), np.int32)
    count = mert.line_corners(slopes, scores, offsets, extremes[0], highest, best, xs, corners)
    return best, xs[:count], corners[:count]


@pytest.mark.parametrize("values", ["integers", "normal", "one value", "wide", "nearly equal"])
@pytest.mark.parametrize("seed", range(5))
def test_lines_that_are_left_out_have_no_corners(values, seed):
    """The corners are those of all lines of a sentence, also with equal slopes and with one or no candidate."""
    random, offsets = np.random.default_rng(seed), np.array([0, 1, 1, 40, 300, 302])
    size = offsets[-1]
    drawn = {
        "integers": random.integers(-4, 5, size),
        "normal": random.normal(size=size) * 50,
        "one value": np.ones(size),
        "wide": np.exp(random.uniform(-14, 9, size)) * random.choice([-1, 0, 1], size),
        "nearly equal": 3 + np.exp(random.uniform(-14, 0, size)),
    }
    slopes, scores = drawn[values].astype(np.float32), (random.normal(size=size) * 20).round(1).astype(np.float32)
    best, xs, corners = found_corners(slopes, scores, offsets)
    expected = []
    for s, (start, end) in enumerate(pairwise(offsets)):
        if start == end:
            assert best[s] == -1
            continue
        first, of_sentence = corners_of(list(slopes[start:end]), list(scores[start:end]))
        assert best[s] == start + first
        expected += [(x, s, start + i) for x, i in of_sentence]
    assert list(zip(xs, *corners.T, strict=True)) == expected


def test_the_result_is_the_best_optimum_of_all_starts():
    pool, active = random_pool(5, sentences=30), np.ones(3, bool)
    starts = [np.array(start, float) for start in ([1, 1, 1], [1, 0, 0], [0.2, 0.9, 0.1])]
    optima = [mert.search(pool, mert.extremes_of(pool), start, active) for start in starts]
    assert len({one.value for one in optima}) > 1
    assert mert.best_optimum(pool, starts, active).value == max(one.value for one in optima)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimiser_improves_the_pool_and_keeps_constant_features(name):
    pool = random_pool(2, sentences=40)
    pool.features[1] = 4.0
    active, start = active_features(pool), np.array([0.3, 0.4, 0.3])
    options = OptimizerOptions(name, restarts=4)
    found = [optimize_weights(pool, start, active, [7], options, threads) for threads in (1, 3)]
    assert found[0].tolist() == found[1].tolist()
    assert np.abs(found[0]).sum() == pytest.approx(1)
    assert pool_bleu(pool, found[0]) > pool_bleu(pool, start)
    assert found[0][1] > 0


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_with_one_sentence_and_with_a_sentence_without_candidates(name):
    rows, statistics = [np.array([[1.0], [2.0]])], [[1, 0, 0, 0, 4, 3, 2, 1, 4], [4, 3, 2, 1, 4, 3, 2, 1, 4]]
    for more in ([], [np.empty((0, 1))]):
        pool = NbestPool(1 + len(more), 1)
        pool.add(candidate_batch(more + rows, np.array(statistics, np.int32)))
        arguments = pool.flat(), np.array([0.5]), np.ones(1, bool), [1, 1], OptimizerOptions(name, restarts=2)
        assert optimize_weights(*arguments).tolist() == [1.0], "the start selects the better candidate"


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_configuration_knows_an_optimizer_without_importing_it(name):
    """A dry run and the help of a command take no second longer; the help names the number of iterations."""
    code = (
        f"import sys; from rnnsmt.config.sections import Tuning; print(Tuning(optimizer={name!r}).iterations); "
        "sys.exit('numba' in sys.modules or 'numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) == OPTIMIZERS[name].iterations
    said = next(text for text in OPTIMIZERS.described().split("; ") if text.startswith(f"{name}: "))
    assert said.endswith(f" {OPTIMIZERS[name].iterations} iterations")


def test_the_documented_optimizer_of_another_package(other_package, documented):
    other_package(OPTIMIZERS, "random-search", "RandomSearch", documented("An optimizer"))
    pool, options = random_pool(2, sentences=40), OptimizerOptions("random-search", restarts=20)
    start, active = np.array([0.3, 0.4, 0.3]), np.array([True, True, False])
    found = optimize_weights(pool, start, active, [1, 1], options)
    assert np.abs(found).sum() == pytest.approx(1)
    assert pool_bleu(pool, found) >= pool_bleu(pool, start)
    assert default_iterations("random-search") == 16


@pytest.mark.parametrize("weights", ["[1.0, 2.0]", "start * float('nan')", "start * 0"])
def test_wrong_weights_of_another_package(other_package, weights):
    code = (
        "from rnnsmt.tuning.optimizers import Optimizer\nclass Wrong(Optimizer):\n    title = 'x'\n"
        f"    def optimize(self, pool, start, *_):\n        return {weights}\n"
    )
    other_package(OPTIMIZERS, "wrong", "Wrong", code)
    arguments = random_pool(2), np.ones(3), np.ones(3, bool), [1], OptimizerOptions("wrong")
    with pytest.raises(InputError, match=r"optimizer wrong of other-wrong 1\.2: the weights must be 3 finite numbers"):
        optimize_weights(*arguments)


def test_a_sentence_without_candidates_is_no_obstacle():
    pool = NbestPool(3, 1)
    rows = [np.array([[1.0], [2.0]]), np.empty((0, 1)), np.array([[1.0]])]
    statistics = [[4, 3, 2, 1, 4, 3, 2, 1, 4], [2, 1, 1, 1, 4, 3, 2, 1, 4], [4, 3, 2, 1, 4, 3, 2, 1, 4]]
    pool.add(candidate_batch(rows, np.array(statistics, np.int32)))
    flat = pool.flat()
    found = mert.search(flat, mert.extremes_of(flat), np.array([1.0]), np.ones(1, bool))
    assert found.value == pytest.approx(1)
    assert found.weights[0] < 0
