"""Batch MIRA: figures by hand, a slow implementation, and a pool with known best weights for both optimizers."""

import math

import numpy as np
import pytest

from rnnsmt.tuning import mira
from rnnsmt.tuning.mira import background_bleu, hope_and_fear, mira_epoch
from rnnsmt.tuning.nbest_pool import FlatPool, NbestPool, candidate_batch, pool_bleu
from rnnsmt.tuning.optimizers import optimize_weights
from rnnsmt.tuning.options import OptimizerOptions

from .test_line_search import random_pool


def pool_of(rows: list, statistics: list) -> FlatPool:
    """Return the pool of sentences with these candidates."""
    pool = NbestPool(len(rows), len(rows[0][0]))
    pool.add(candidate_batch([np.array(one, float) for one in rows], np.array(statistics, np.int32)))
    return pool.flat()


# MIRA

FIRST = np.array(mira.FIRST_BACKGROUND, float)


def test_background_bleu_by_hand():
    # three of four words match, no bigram: (3+4)/(4+4) (0+3)/(3+3) (0+2)/(2+2) (0+1)/(1+1), length 5+4 against 4+4
    statistics = np.array([3, 0, 0, 0, 4, 3, 2, 1, 5], np.int32)
    expected = (7 / 8 * 1 / 2 * 1 / 2 * 1 / 2) ** 0.25 * math.exp(1 - 9 / 8) * 9
    assert background_bleu(statistics, FIRST) == pytest.approx(expected, abs=1e-12)
    assert background_bleu(np.array([4, 3, 2, 1, 4, 3, 2, 1, 4], np.int32), FIRST) == pytest.approx(8)


def test_an_update_by_hand():
    """An update moves from the wrong translation (score 1) towards the right one (score 0) as far as C allows."""
    pool = pool_of([[[0, 1], [1, 0]]], [[4, 3, 2, 1, 4, 3, 2, 1, 4], [0, 0, 0, 0, 4, 3, 2, 1, 4]])
    features = np.ascontiguousarray(pool.features.T)
    for most, expected in ((0.01, [0.99, 0.01]), (100.0, None)):
        weights, total, background = np.array([1.0, 0.0]), np.zeros(2), FIRST.copy()
        loss = 8 - 8 * 0.5 + 1  # each precision of the wrong one is a half; score 0 against 1
        hope, fear, found = hope_and_fear(features, pool.statistics, 0, 2, weights, background)
        assert (hope, fear) == (0, 1)
        assert found == pytest.approx(loss)
        order = np.array([0])
        updates = mira_epoch(features, pool.statistics, pool.offsets, order, most, 0.5, weights, total, background)
        assert updates == 1
        # the whole step is loss / |x|² = 5 / 2, after which the loss is 0
        assert weights == pytest.approx(expected or [1 - 2.5, 2.5])
        assert total.tolist() == weights.tolist()
        assert background == pytest.approx(0.5 * FIRST + [4, 3, 2, 1, 4, 3, 2, 1, 4])


def slow_epoch(pool: FlatPool, order, most, decay, weights, background):
    """Return the weights after every update of an epoch, by the algorithm in the paper."""
    after = []
    for s in order:
        some = range(pool.offsets[s], pool.offsets[s + 1])
        rows = {n: pool.features[:, n].astype(float) for n in some}
        score = {n: float(weights @ rows[n]) for n in some}
        bleu = {}
        for n in some:
            sums = pool.statistics[n] + background
            precision = math.exp(sum(math.log(sums[k] / sums[4 + k]) for k in range(4)) / 4)
            bleu[n] = precision * math.exp(min(0, 1 - sums[8] / sums[4])) * sums[8]
        hope, fear = max(some, key=lambda n: score[n] + bleu[n]), max(some, key=lambda n: score[n] - bleu[n])
        if hope == fear:
            continue
        step = rows[hope] - rows[fear]
        loss = bleu[hope] - bleu[fear] - (score[hope] - score[fear])
        if loss > 0 and step.any():
            weights = weights + min(most, loss / (step @ step)) * step
            after.append(weights)
        background = decay * background + pool.statistics[hope]
    return after, background


@pytest.mark.parametrize("seed", range(5))
def test_an_epoch_equals_its_slow_twin(seed):
    pool = random_pool(seed)
    order = np.random.default_rng(seed).permutation(pool.sentences)
    weights, total, background = np.array([0.5, -0.2, 0.3]), np.zeros(3), FIRST.copy()
    features = np.ascontiguousarray(pool.features.T)
    after, expected_background = slow_epoch(pool, order, 0.1, 0.9, weights.copy(), FIRST)
    updates = mira_epoch(features, pool.statistics, pool.offsets, order, 0.1, 0.9, weights, total, background)
    assert updates == len(after) > 2
    assert weights == pytest.approx(after[-1], abs=1e-9)
    assert total == pytest.approx(np.sum(after, axis=0), abs=1e-9)
    assert background == pytest.approx(expected_background)


def test_mira_keeps_the_start_where_there_is_nothing_to_learn():
    pool = pool_of([[[1, 2]]], [[4, 3, 2, 1, 4, 3, 2, 1, 4]])
    start = np.array([0.25, 0.75])
    assert mira.optimize(pool, start, np.ones(start.size, bool), [1]).tolist() == start.tolist()


# Both optimizers


def known_pool(seed: int) -> tuple[FlatPool, np.ndarray]:
    """Return a pool and the weights that select the best translations; scores decrease with the number of errors."""
    rng = np.random.default_rng(seed)
    truth = np.array([0.4, -0.3, 0.2, 0.1])
    rows, statistics = [], []
    for _ in range(60):
        errors = rng.permutation(12)
        features = rng.standard_normal((12, 4))
        # features @ truth = -0.5 * errors
        features += np.outer(-0.5 * errors - features @ truth, truth) / (truth @ truth)
        rows.append(features)
        statistics += [[max(20 - k * n, 0) for k in (1, 2, 3, 4)] + [20, 19, 18, 17, 20] for n in errors]
    statistics = np.minimum(statistics, [20, 19, 18, 17, 20, 19, 18, 17, 20]).tolist()
    return pool_of(rows, statistics), truth


@pytest.mark.parametrize(
    "options", [OptimizerOptions(restarts=5), OptimizerOptions(optimizer="mira")], ids=["mert", "mira"]
)
def test_finds_the_known_optimum(options):
    pool, truth = known_pool(1)
    start = np.array([0.1, 0.4, 0.4, -0.1])
    assert pool_bleu(pool, truth) == 1.0
    assert pool_bleu(pool, start) < 0.5
    found = optimize_weights(pool, start, np.ones(4, bool), [1, 1], options)
    assert np.abs(found).sum() == pytest.approx(1)
    assert pool_bleu(pool, found) > 0.99


def test_seeds_differ_and_repeat():
    pool = random_pool(1, sentences=40)
    options = OptimizerOptions(optimizer="mira")
    runs = [optimize_weights(pool, np.ones(3), np.ones(3, bool), [seed, 1], options, 2) for seed in (1, 1, 2)]
    assert runs[0].tolist() == runs[1].tolist() != runs[2].tolist()


def test_a_constant_feature_keeps_its_weight():
    pool = random_pool(2)
    pool.features[1] = 4.0
    start = np.array([0.5, 0.25, 0.25])
    active = np.array([True, False, True])
    found = optimize_weights(pool, start, active, [1], OptimizerOptions(optimizer="mira"))
    assert found[1] > 0


def test_sentences_without_candidates_are_no_obstacle():
    pool = NbestPool(3, 1)
    rows = [np.array([[1.0], [2.0]]), np.empty((0, 1)), np.array([[1.0]])]
    pool.add(
        candidate_batch(rows, np.array([[1, 0, 0, 0, 4, 3, 2, 1, 4]] + [[4, 3, 2, 1, 4, 3, 2, 1, 4]] * 2, np.int32))
    )
    found = optimize_weights(pool.flat(), -np.ones(1), np.ones(1, bool), [1], OptimizerOptions(optimizer="mira"))
    assert np.isfinite(found).all()
