"""Randomisation tests: against a slow implementation, with equal systems of known p-values, with real differences."""

import math
import random

import numpy as np
import pytest

from rnnsmt.bleu.batch import bleu_of_many, corpus_statistics
from rnnsmt.bleu.multi_bleu import bleu_of
from rnnsmt.evaluation.significance import _contributions, _noise, _noises, _with_runs, compare


def statistics(rng: np.random.Generator, quality: np.ndarray, length: int = 12) -> np.ndarray:
    """Return BLEU statistics [R, S, 9] of independent texts whose words match with probability ``quality`` [R, S]."""
    matches = rng.random((*quality.shape, length)) < quality[..., None]
    counts = []
    for order in range(1, 5):
        windows = np.lib.stride_tricks.sliding_window_view(matches, order, axis=-1)
        counts.append(windows.all(-1).sum(-1))
    totals = [np.full(quality.shape, length + 1 - order) for order in range(1, 5)]
    return np.stack([*counts, *totals, np.full(quality.shape, length)], -1).astype(np.int64)


def p_strict(first: np.ndarray, second: np.ndarray, trainings: tuple[int, int] = (1, 1), **options: int) -> float:
    """Return the p-value of ``compare`` without its bootstrap, which takes most of the time of many trials."""

    def bleu(rows: np.ndarray) -> np.ndarray:  # there is a bootstrap only for the function bleu_of_many itself
        return bleu_of_many(rows)

    found = compare(first, second, trainings, score=bleu, **options)
    assert found.p_strict is not None and found.p_bootstrap is None
    return found.p_strict


def slow_p(first: np.ndarray, second: np.ndarray, shuffles: int) -> float:
    """Return the p-value of a test by its description, in plain Python; without noise of the runs."""
    drawn = random.Random(7)
    R, S = first.shape[:2]

    def gap(one: np.ndarray, other: np.ndarray) -> float:
        return sum(bleu_of(other[r].sum(0)).bleu - bleu_of(one[r].sum(0)).bleu for r in range(R)) / R

    seen = abs(gap(first, second))
    as_large = 0
    for _ in range(shuffles):
        one, other = first.copy(), second.copy()
        for s in range(S):
            if drawn.random() < 0.5:
                one[:, s], other[:, s] = second[:, s], first[:, s]
        as_large += abs(gap(one, other)) >= seen - 1e-9
    return (as_large + 1) / (shuffles + 1)


def test_bleu_of_many_is_bleu():
    rng = np.random.default_rng(3)
    rows = statistics(rng, np.full((4, 30), 0.8)).sum(1)
    rows[1, 3] = 0
    rows[2, -1] += 40
    assert bleu_of_many(rows) == pytest.approx([bleu_of(row).bleu for row in rows], abs=1e-10)
    assert bleu_of_many(np.zeros((1, 9))) == [0.0]


def test_agrees_with_a_slow_twin():
    rng = np.random.default_rng(5)
    base = rng.uniform(0.6, 0.9, 25)
    first = statistics(rng, np.broadcast_to(base, (2, 25)))
    second = statistics(rng, np.broadcast_to(base + 0.04, (2, 25)))
    first[1], second[1] = first[0], second[0]  # identical runs have no noise of the runs
    got = compare(first, second)
    expected = slow_p(first, second, 1500)
    assert 0.02 < expected < 0.98
    assert got.p_strict == pytest.approx(expected, abs=4 * math.sqrt(0.25 / 1500))


def test_one_sentence_by_hand():
    """With a single sentence, all shuffles have the same absolute difference: p strict is 1."""
    rng = np.random.default_rng(1)
    first, second = (statistics(rng, np.full((1, 1), quality)) for quality in (0.99, 0.9))
    once = compare(first, second)
    assert (once.p_strict, once.interval, once.detectable) == (None, None, None)
    found = compare(np.concatenate([first, first]), np.concatenate([second, second]))
    assert found.p_strict == 1.0
    assert found.margin == pytest.approx(found.difference if found.difference > 0 else -found.difference)


def test_equal_systems_do_not_differ():
    outputs = statistics(np.random.default_rng(1), np.full((3, 50), 0.8))
    found = compare(outputs, outputs)
    assert (found.difference, found.p_bootstrap, found.p_strict) == (0.0, 1.0, 1.0)
    assert found.interval == (-found.margin, found.margin)


def test_a_clear_difference_is_found():
    rng = np.random.default_rng(2)
    first, second = (statistics(rng, np.full((3, 300), quality)) for quality in (0.8, 0.86))
    found = compare(first, second)
    assert found.difference > 3
    assert found.p_strict < 0.001


def test_order_of_the_systems_and_seed():
    rng = np.random.default_rng(4)
    first, second = (statistics(rng, np.full((3, 40), quality)) for quality in (0.8, 0.82))
    there, back = compare(first, second), compare(second, first)
    assert there.difference == -back.difference
    assert there[1:] == back[1:]
    assert compare(first, second) == there
    assert compare(first, second, seed=9) != there


def p_values(trials: int, same_text: bool, run_noise: float) -> np.ndarray:
    """Return p-values [trials] of two systems of equal quality."""
    rng = np.random.default_rng(11)
    found = []
    R, S = 5, 120
    for seed in range(trials):
        sides = []
        base = rng.uniform(0.65, 0.9, S)
        for _ in range(2):
            runs = rng.normal(0, run_noise, (R, 1))
            if same_text:  # the quality of a sentence is similar in all runs of a system
                outputs = np.repeat(statistics(rng, base[None]), R, 0)
                noisy = statistics(rng, np.clip(base + runs, 0, 1))
                other = rng.random((R, S)) < 0.2
                outputs[other] = noisy[other]
            else:
                outputs = statistics(rng, np.clip(base + runs, 0, 1))
            sides.append(outputs)
        found.append(p_strict(*sides, shuffles=400, seed=seed))
    return np.array(found)


@pytest.mark.slow
def test_known_null_case():
    """For independent outputs of equal quality, p-values are not smaller than uniform ones."""
    p = p_values(200, same_text=False, run_noise=0.0)
    for level in (0.05, 0.2, 0.5):
        assert np.mean(p <= level) < level + 3 * math.sqrt(level * (1 - level) / 200)


def test_runs_with_nearly_the_same_text_are_no_further_evidence():
    """If the runs of a system are similar, the test keeps its level."""
    p = p_values(150, same_text=True, run_noise=0.02)
    assert np.mean(p <= 0.05) < 0.05 + 3 * math.sqrt(0.05 * 0.95 / 150)


def test_three_runs_that_differ_much_are_few():
    """With three runs that vary as a whole, the test nearly keeps its level: 0.065 in 3,000 trials."""
    rng = np.random.default_rng(3)
    found = []
    for seed in range(400):
        difficulty = rng.uniform(0.65, 0.9, 40)
        sides = []
        for _ in range(2):
            outputs = np.repeat(statistics(rng, difficulty[None]), 3, 0)
            changed = rng.random((3, 40)) < 0.3
            outputs[changed] = statistics(rng, np.clip(difficulty + rng.normal(0, 0.4, (3, 1)), 0, 1))[changed]
            sides.append(outputs)
        found.append(p_strict(*sides, shuffles=199, seed=seed))
    assert 0.03 < np.mean(np.array(found) <= 0.05) < 0.05 + 3 * math.sqrt(0.05 * 0.95 / 400)
    assert np.mean(np.array(found) <= 0.01) < 0.03


@pytest.mark.parametrize(("runs", "quantile"), [(3, 2.776), (5, 2.306)])
def test_noise_of_runs_alone_is_student_s(runs, quantile):
    """Without sentence noise, draws have Student's t distribution with 2 (R - 1) degrees of freedom, as in a t-test."""
    rng = np.random.default_rng(8)
    sides = []
    for _ in range(2):  # every sentence of a run is the same: the runs differ as a whole
        matches = np.sort(rng.integers(30, 90, (runs, 4)))[:, ::-1]
        rows = np.concatenate([matches, np.full((runs, 4), 100), np.full((runs, 1), 100)], 1)
        sides.append(np.repeat(rows[:, None], 50, 1).astype(np.int64))
    draws = _with_runs(rng, np.zeros(40_000), _noises(*sides, (1, 1), shared=False), pooled=True)
    variance = np.mean([bleu_of_many(side.sum(1)).var(ddof=1) for side in sides])
    assert np.quantile(draws, 0.975) / math.sqrt(2 / runs * variance) == pytest.approx(quantile, rel=0.03)


def of_trainings(rng: np.random.Generator, difficulty: np.ndarray, runs: int, trainings: int) -> np.ndarray:
    """Return runs [R, S, 9] of a system; run r uses training run r % trainings, whose quality varies as a whole."""
    shifts = rng.normal(0, 0.3, trainings)[np.arange(runs) % trainings]
    outputs = np.repeat(statistics(rng, difficulty[None]), runs, 0)
    changed = rng.random(outputs.shape[:2]) < 0.3
    outputs[changed] = statistics(rng, np.clip(difficulty + shifts[:, None], 0, 1))[changed]
    return outputs


def test_runs_of_one_training_are_not_independent():
    """The test nearly keeps its level if six runs share three networks; ignoring this inflates the error rate.

    In 2,000 trials, the rates are 0.065 and 0.101.
    """
    rng = np.random.default_rng(4)
    found = []
    for seed in range(300):
        difficulty = rng.uniform(0.65, 0.9, 40)
        sides = of_trainings(rng, difficulty, 6, 6), of_trainings(rng, difficulty, 6, 3)
        known = p_strict(*sides, (1, 3), shuffles=199, seed=seed)
        assert p_strict(*sides[::-1], (3, 1), shuffles=199, seed=seed) == known
        found.append((known, p_strict(*sides, shuffles=199, seed=seed)))
    known, ignored = np.mean(np.array(found) <= 0.05, axis=0)
    assert known < 0.07
    assert ignored > known + 0.02


def test_one_training_each_is_one_run():
    """One training run per tuning run equals independent runs."""
    rng = np.random.default_rng(5)
    sides = [of_trainings(rng, rng.uniform(0.6, 0.9, 30), 4, 4) for _ in range(2)]
    assert compare(*sides, trainings=(4, 4)) == compare(*sides)


def test_noise_of_trainings_is_that_of_their_means():
    rng = np.random.default_rng(6)
    system = of_trainings(rng, rng.uniform(0.6, 0.9, 30), 4, 2)
    bleu = bleu_of_many(system.sum(1))
    means = [(bleu[0] + bleu[2]) / 2, (bleu[1] + bleu[3]) / 2]
    noise = _noise(*_contributions(system), 2)
    assert noise.variance == pytest.approx((means[0] - means[1]) ** 2 / 4)  # variance of the mean of two
    assert noise.degrees == 1


@pytest.mark.parametrize("shapes", [((2, 3, 9), (1, 3, 9)), ((2, 3, 9), (2, 4, 9)), ((0, 3, 9), (0, 3, 9))])
def test_refuses_what_cannot_be_paired(shapes):
    with pytest.raises(ValueError, match="cannot be compared"):
        compare(*(np.zeros(shape, np.int64) for shape in shapes))


def sharing(rng: np.random.Generator, runs: int, shift: float, gain: float, sentences: int = 300) -> list[np.ndarray]:
    """Return two systems [R, S, 9] whose quality shifts with a shared network per run; the second has a gain."""
    difficulty = rng.uniform(0.65, 0.9, sentences)
    moved = rng.normal(0, shift, (runs, 1, 1))
    draws = rng.random((sentences, 12))
    systems = []
    for quality in (difficulty, difficulty + gain):
        own = np.where(rng.random((sentences, 1)) < 0.3, rng.random((sentences, 12)), draws)
        right = own < np.clip(quality[:, None] + moved, 0, 1)
        counts = [np.lib.stride_tricks.sliding_window_view(right, n, -1).all(-1).sum(-1) for n in range(1, 5)]
        totals = [np.full(counts[0].shape, 13 - n) for n in range(1, 5)]
        systems.append(np.stack([*counts, *totals, np.full(counts[0].shape, 12)], -1).astype(np.int64))
    return systems


def test_noise_of_shared_networks_is_that_of_paired_differences():
    rng = np.random.default_rng(7)
    first, second = sharing(rng, 6, 0.05, 0.02)
    (noise,) = _noises(first, second, (3, 3), shared=True)
    gaps = bleu_of_many(second.sum(1)) - bleu_of_many(first.sum(1))
    assert noise.variance == pytest.approx(np.var((gaps[:3] + gaps[3:]) / 2, ddof=1) / 3)
    assert noise.degrees == 2


@pytest.mark.slow
def test_gain_beside_a_shared_network_is_found():
    """A gain of one word in fifty is detected although the shared networks vary by several BLEU between runs.

    An unpaired test rarely detects the gain. The paired test does, and keeps its level for equal systems.
    """
    rng = np.random.default_rng(12)
    gain, equal = [], []
    for _ in range(60):
        pair = sharing(rng, 3, 0.05, 0.02)
        gain.append([p_strict(*pair, (3, 3), shared=shared, shuffles=199) for shared in (False, True)])
        equal.append(p_strict(*sharing(rng, 3, 0.05, 0.0), (3, 3), shared=True, shuffles=199))
    unpaired, paired = np.mean(np.array(gain) <= 0.05, 0)
    assert unpaired < 0.3
    assert paired > 0.6
    assert np.mean(np.array(equal) <= 0.05) < 0.05 + 3 * math.sqrt(0.05 * 0.95 / 60)


def test_interval_excludes_zero_where_p_is_small():
    rng = np.random.default_rng(13)
    for gain in (0.0, 0.005, 0.01, 0.02, 0.03):
        found = compare(*sharing(rng, 3, 0.0, gain))
        low, high = found.interval
        assert high - low == pytest.approx(2 * found.margin)
        assert (low > 0 or high < 0) == (found.p_strict < 0.05)
        assert found.margin < found.detectable < 2 * found.margin


@pytest.mark.slow
def test_detectable_difference_is_detected_in_four_of_five():
    """About 80 % of the trials detect a gain as large as the detectable difference."""
    rng = np.random.default_rng(14)
    detectable = np.mean([compare(*sharing(rng, 3, 0.0, 0.0), shuffles=400).detectable for _ in range(20)])
    steep = np.mean([compare(*sharing(rng, 3, 0.0, 0.02), shuffles=1).difference for _ in range(40)]) / 0.02
    found = [compare(*sharing(rng, 3, 0.0, detectable / steep), shuffles=400).p_strict <= 0.05 for _ in range(150)]
    assert 0.65 < np.mean(found) < 0.95


@pytest.mark.parametrize("qualities", [(0.8, 0.82), (0.8, 0.81), (0.8, 0.85), (0.82, 0.8)])
def test_bootstrap_is_that_of_sacrebleu(qualities):
    """The bootstrap p-value of one run equals that of sacreBLEU's paired bootstrap."""
    from sacrebleu.metrics import BLEU
    from sacrebleu.significance import PairedTest

    rng = np.random.default_rng(15)
    words = [[f"w{k}" for k in rng.integers(0, 40, 12)] for _ in range(120)]
    outputs = [
        [" ".join(w if rng.random() < quality else "x" for w in line) for line in words] for quality in qualities
    ]
    references = [" ".join(line) for line in words]
    metric = BLEU(tokenize="none", smooth_method="none")
    theirs = PairedTest(
        [("one", outputs[0]), ("two", outputs[1])], {"BLEU": metric}, [references], test_type="bs", n_samples=1000
    )()[1]["BLEU"][1].p_value
    ours = compare(*(corpus_statistics(output, [references])[None] for output in outputs)).p_bootstrap
    assert ours == pytest.approx(theirs, abs=1.5 / 1001)  # sacreBLEU rounds to float32


def test_systems_that_share_a_network_have_as_many_trainings():
    systems = sharing(np.random.default_rng(1), 4, 0.0, 0.0, 20)
    with pytest.raises(ValueError, match="that share a network"):
        compare(*systems, trainings=(1, 2), shared=True)
