"""MERT with averaged optima: envelopes, corners and the optimum along a line, against brute force."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rnnsmt.bleu.batch import bleu_of_statistics
from rnnsmt.bleu.multi_bleu import bleu_of
from rnnsmt.tuning.mert_averaged import best_point, line_bleu, line_corners, local_optima, upper_envelope
from rnnsmt.tuning.nbest_pool import (
    BLOCK,
    FlatPool,
    NbestPool,
    active_features,
    candidate_batch,
    normalised,
    pool_bleu,
    project,
)
from rnnsmt.tuning.optimizers import optimize_weights
from rnnsmt.tuning.options import OptimizerOptions

LINES = st.lists(st.tuples(st.integers(-4, 4), st.integers(-6, 6)), min_size=1, max_size=12)


def envelope(slopes, intercepts, low, high):
    n = len(slopes)
    kept, lines, starts = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n)
    count = upper_envelope(np.array(slopes, float), np.array(intercepts, float), low, high, kept, lines, starts)
    return lines[:count], starts[:count]


def test_envelope_by_hand():
    # y = -x is highest left of -1, y = 1 from -1 to 1, y = x right of 1; y = 0.5 never
    lines, starts = envelope([1, 0, -1, 0], [0, 1, 0, 0.5], -5.0, 5.0)
    assert lines.tolist() == [2, 1, 0]
    assert starts.tolist() == [-5, -1, 1]


def test_envelope_leaves_out_what_happens_outside_the_range():
    lines, starts = envelope([1, 0, -1], [0, 1, 0], -0.5, 0.5)
    assert lines.tolist() == [1]
    assert starts.tolist() == [-0.5]


def test_three_lines_through_one_point():
    lines, starts = envelope([-1, 0, 1], [0, 0, 0], -1.0, 1.0)
    assert lines[0] == 0
    assert lines[-1] == 2
    assert starts[1:].tolist() == [0.0] * (len(lines) - 1)


def test_equal_lines_give_one():
    assert envelope([2, 2, 2], [1, 1, 1], -1.0, 1.0)[0].tolist() == [0]


@given(LINES, st.integers(-5, 4), st.integers(1, 6))
@settings(max_examples=300, deadline=None)
def test_envelope_is_the_maximum_everywhere(lines_given, low, width):
    slopes, intercepts = (np.array(column, float) for column in zip(*lines_given, strict=True))
    low, high = float(low), float(low + width)
    lines, starts = envelope(slopes, intercepts, low, high)
    assert starts[0] == low
    assert (np.diff(starts) >= 0).all()
    assert (np.diff(slopes[lines]) > 0).all()
    for x in np.linspace(low, high, 61):
        place = lines[np.searchsorted(starts, x, side="right") - 1]
        assert slopes[place] * x + intercepts[place] == pytest.approx(np.max(slopes * x + intercepts), abs=1e-9)


def random_pool(seed: int, sentences: int = 12, candidates: int = 15, features: int = 3) -> FlatPool:
    """Return candidates with random features and possible BLEU statistics."""
    rng = np.random.default_rng(seed)
    rows, statistics = [], []
    for _ in range(sentences):
        n = int(rng.integers(1, candidates + 1))
        rows.append(rng.standard_normal((n, features)).round(2))
        length = int(rng.integers(5, 12))
        for _ in range(n):
            unigrams = max(4, length + int(rng.integers(-2, 3)))
            totals = np.array([unigrams - order for order in range(4)])
            matches = np.minimum.accumulate(rng.integers(0, totals + 1))
            matches[:4] = np.maximum(matches, [2, 1, 1, 0] if rng.random() < 0.5 else [1, 1, 1, 1])
            statistics.append([*np.minimum(matches, totals), *totals, length])
    pool = NbestPool(sentences, features)
    pool.add(candidate_batch(rows, np.array(statistics, np.int32)))
    return pool.flat()


def bleu_by_brute_force(pool: FlatPool, weights: np.ndarray) -> float:
    total = np.zeros(9, np.int64)
    scores = weights @ pool.features.astype(float)
    for start, end in zip(pool.offsets[:-1], pool.offsets[1:], strict=True):
        if start < end:
            total += pool.statistics[start + int(np.argmax(scores[start:end]))]
    return bleu_of(total).bleu / 100


@pytest.mark.parametrize("places", [[0], [5], [12], [0, 5, 5, 12, 12]])
def test_sentences_without_candidates_do_not_count(places):
    """An index error was raised if the last sentence had none; otherwise the next sentence counted twice."""
    pool, weights = random_pool(3), np.array([0.2, -0.5, 0.3])
    gaps = FlatPool(pool.features, pool.statistics, np.insert(pool.offsets, places, pool.offsets[places]))
    assert gaps.sentences == pool.sentences + len(places)
    assert pool_bleu(gaps, weights) == pool_bleu(pool, weights)


def line(pool: FlatPool, weights, direction, low, high):
    """Return the corners (sorted) and the BLEU of all intervals along a line."""
    n = len(pool.statistics)
    total, xs = np.empty(9, np.int64), np.empty(n)
    before, after = np.empty(n, np.int32), np.empty(n, np.int32)
    features = pool.features.astype(float)
    corners = line_corners(
        direction @ features,
        weights @ features,
        pool.offsets,
        low,
        high,
        pool.statistics,
        total,
        xs,
        before,
        after,
    )
    order = np.argsort(xs[:corners])
    bleu = np.empty(corners + 1)
    line_bleu(total, before, after, corners, order, pool.statistics, bleu)
    return xs, order, bleu, corners


@pytest.mark.parametrize("seed", range(8))
def test_bleu_along_a_line_equals_brute_force(seed):
    pool, rng = random_pool(seed), np.random.default_rng(seed)
    weights, direction = rng.standard_normal(3), rng.standard_normal(3)
    xs, order, bleu, corners = line(pool, weights, direction, -2.0, 2.0)
    bounds = [-2.0, *xs[order], 2.0]
    assert corners >= 3
    for e in range(corners + 1):
        if bounds[e + 1] - bounds[e] > 1e-6:
            middle = (bounds[e] + bounds[e + 1]) / 2
            assert bleu[e] == pytest.approx(bleu_by_brute_force(pool, weights + middle * direction), abs=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_best_point_is_not_beaten_by_a_grid(seed):
    pool, rng = random_pool(seed), np.random.default_rng(seed)
    weights, direction = rng.standard_normal(3), rng.standard_normal(3)
    xs, order, bleu, corners = line(pool, weights, direction, -2.0, 2.0)
    x, value = best_point(xs, order, bleu, corners, -2.0, 2.0)
    assert bleu_by_brute_force(pool, weights + x * direction) == pytest.approx(value, abs=1e-12)
    grid = max(bleu_by_brute_force(pool, weights + y * direction) for y in np.linspace(-2, 2, 801))
    assert value >= grid - 1e-12


def test_best_point_takes_the_middle_of_the_widest_plateau():
    xs, order = np.array([-1.0, 0.0, 0.5, 2.0]), np.arange(4)
    bleu = np.array([0.1, 0.3, 0.2, 0.3, 0.1])
    assert best_point(xs, order, bleu, 4, -3.0, 3.0) == (1.25, 0.3)


def test_equal_neighbours_are_one_plateau():
    xs, order = np.array([-1.0, 0.0, 1.0]), np.arange(3)
    assert best_point(xs, order, np.array([0.1, 0.3, 0.3, 0.1]), 3, -2.0, 2.0) == (0.0, 0.3)


@given(st.lists(st.integers(0, 30), min_size=9, max_size=9))
@settings(max_examples=100, deadline=None)
def test_compiled_bleu_equals_the_plain_one(numbers):
    matches = sorted(numbers[:4], reverse=True)
    totals = [a + b for a, b in zip(matches, sorted(numbers[4:8], reverse=True), strict=True)]
    statistics = [*matches, *totals, numbers[8]]
    assert bleu_of_statistics(np.array(statistics)) == pytest.approx(bleu_of(statistics).bleu / 100, abs=1e-12)


# The optimizer


def test_result_does_not_depend_on_threads():
    pool = random_pool(1)
    options = OptimizerOptions("mert-averaged", restarts=4)
    results = [
        optimize_weights(pool, np.ones(3), np.ones(3, bool), [7], options, threads).tolist() for threads in (1, 1, 3)
    ]
    assert results[0] == results[1] == results[2]


def test_seeds_differ():
    pool = random_pool(1, sentences=40)
    options = OptimizerOptions("mert-averaged", restarts=2)
    one, other = (optimize_weights(pool, np.ones(3), np.ones(3, bool), [seed], options) for seed in (1, 2))
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("seed", range(3))
def test_optimum_is_near_that_of_a_dense_grid(seed):
    pool = random_pool(seed, features=2)
    starts = [np.array([x, y]) for x in (1.0, -1.0) for y in (1.0, -1.0)]
    found = [local_optima(pool, start, np.ones(2, bool), [1], 12)[0].weights for start in starts]
    best = max(found, key=lambda weights: pool_bleu(pool, weights))
    angles = np.linspace(0, 2 * np.pi, 2001)
    grid = max(bleu_by_brute_force(pool, np.array([np.cos(a), np.sin(a)])) for a in angles)
    assert pool_bleu(pool, best) >= grid - 1e-3
    assert pool_bleu(pool, best) == pytest.approx(bleu_by_brute_force(pool, best), abs=1e-9)
    assert np.abs(best).sum() == pytest.approx(1)


def test_more_restarts_are_never_worse():
    pool = random_pool(5, sentences=30)
    found = [local_optima(pool, np.ones(3), np.ones(3, bool), [3], r)[0] for r in (0, 3, 10)]
    values = [pool_bleu(pool, one.weights) for one in found]
    assert values == sorted(values)


def test_the_result_is_the_mean_of_the_better_half_of_the_optima():
    pool, options = random_pool(5, sentences=30), OptimizerOptions("mert-averaged", restarts=4)
    optima = local_optima(pool, np.ones(3), np.ones(3, bool), [3], 4)
    assert [one.value for one in optima] == sorted((one.value for one in optima), reverse=True)
    mean = np.mean([one.weights for one in optima[:3]], axis=0)
    found = optimize_weights(pool, np.ones(3), np.ones(3, bool), [3], options)
    assert found == pytest.approx(mean / np.abs(mean).sum())


def test_constant_feature_keeps_its_weight():
    pool = random_pool(2)
    pool.features[1] = 4.0
    active = active_features(pool)
    assert active.tolist() == [True, False, True]
    start = np.array([0.5, 0.25, 0.25])
    found = local_optima(pool, start, active, [1], 5)[0].weights
    # the weights differ only in their scale
    assert found[1] > 0
    assert pool_bleu(pool, found) >= pool_bleu(pool, start)


def test_a_sentence_without_candidates_is_no_obstacle():
    pool = NbestPool(3, 1)
    rows = [np.array([[1.0], [2.0]]), np.empty((0, 1)), np.array([[1.0]])]
    pool.add(candidate_batch(rows, np.array([[4, 3, 2, 1, 4, 3, 2, 1, 4]] * 3, np.int32)))
    flat = pool.flat()
    assert flat.offsets.tolist() == [0, 2, 2, 3]
    assert active_features(flat).tolist() == [True]


def test_normalised():
    assert normalised(np.array([2.0, -2.0])).tolist() == [0.5, -0.5]


# Moses' own n-best lists


def test_beats_moses_weights_on_moses_list(moses_fixture, multi30k_tok):
    from itertools import groupby

    from rnnsmt.base.reading import read_lines
    from rnnsmt.bleu.batch import BatchBleu
    from rnnsmt.formats.ini import MosesIni
    from rnnsmt.formats.nbest import read_nbest

    names, candidates = read_nbest(moses_fixture / "search" / "moses.cube.nbest100.xz")
    groups = [list(group) for _, group in groupby(candidates, key=lambda candidate: candidate.sentence)]
    references = list(read_lines(multi30k_tok / "test_2016_flickr.fr.xz"))[: len(groups)]
    pool = NbestPool(len(groups), len(names))
    statistics = BatchBleu([references]).statistics([[one.text for one in group] for group in groups])
    pool.add(candidate_batch([np.array([one.features for one in group]) for group in groups], statistics))
    ini = MosesIni.read(moses_fixture / "search" / "moses.ini")
    weights = np.array([ini.weights[name.partition(":")[0]][int(name.partition(":")[2])] for name in names])
    flat = pool.flat()
    before = pool_bleu(flat, weights)
    assert before == pytest.approx(0.5894, abs=2e-4)
    active = np.ones(len(names), bool)
    best = local_optima(flat, weights, active, [1], 5)[0]
    assert pool_bleu(flat, best.weights) > before + 0.008


@pytest.mark.parametrize("zeros", range(10))
def test_projections_are_sums_in_the_order_of_the_features(zeros: int) -> None:
    """Projections add features in order, bit for bit, for any number of weights 0."""
    rng = np.random.default_rng(zeros)
    features = rng.standard_normal((9, BLOCK + 77)).astype(np.float32)
    weights = rng.standard_normal(9)
    weights[rng.permutation(9)[:zeros]] = 0.0
    out, expected = np.full(BLOCK + 77, np.nan), np.zeros(BLOCK + 77)
    project(features, weights, out)
    for k in range(9):
        expected += weights[k] * features[k].astype(np.float64)
    assert out.tobytes() == expected.tobytes()
