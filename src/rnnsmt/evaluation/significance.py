"""Is one system better than another? Randomisation tests and intervals over the outputs of several tuning runs.

``p_clark``: stratified approximate randomisation over all runs (Clark et al. 2011, section 4; Riezler and Maxwell
2005). Were the systems alike, each output of run r for sentence s could as well be the other system's. So every pair of
outputs of the same run and the same sentence is swapped with probability 1/2, each on its own, and the p-value is how
often the difference of the mean BLEU is then at least as large as the one that was seen.

That test takes the outputs of one sentence in five runs for five independent observations. They are nearly the same
text, so it finds differences that another test set of the kind would not show. ``p_strict`` does not. It compares the
difference with draws of what two equal systems give on another sample of sentences and of runs:

* Sentences: a sentence is swapped in all runs at once. That contains what single sentences differ between runs.
* Runs: a draw from a normal distribution, for what all sentences of a run have in common. Its variance is that of the
  runs around their system's mean, pooled over both systems, with 2(R - 1) degrees of freedom, less what the
  differences of single sentences between runs make of it (by the jackknife), which the swaps contain already.
* Trainings: where the runs of a system take turns on several trainings of its networks, those of the same training are
  not independent. Then the means of the trainings count instead of the runs. Systems with and without trainings differ
  in their noise; there each has its own variance, and the degrees of freedom are those of Welch and Satterthwaite.
* Shared networks: CSLM and CSLM + RNN of the same run have the same CSLM. A better CSLM lifts both, so it is no noise
  of their difference. There the variance is that of the paired differences of the trainings, with one degree of freedom
  less than there are trainings.
* A variance estimated from a few runs is often far too small. So every draw is scaled by ``sqrt(n / chi2_n)``, as in
  Student's t, with the n of Welch and Satterthwaite: 2(R - 1) where runs dominate, large where sentences do. That n is
  too large on average, because it divides by the square of an estimated variance; 2 is taken off, but never below the
  degrees of freedom of the runs. Where a variance comes from two runs or two trainings, n says nothing; there the
  variance of every draw is scaled by ``d / chi2_d``, d the degrees of freedom of the runs' variance (2 with two runs
  each), and p comes out larger.

The same draws give the 95 % interval (the difference plus or minus their 95 % quantile, so it excludes 0 where
p_strict is below 0.05) and the smallest difference that would be found with a power of 80 %.

``p_bootstrap``: the paired bootstrap of Koehn (2004) as sacreBLEU computes it (one tail of it), sentences drawn with
replacement in all runs at once. It knows of no noise but that of sentences.

``benchmarks/significance.md`` has how often equal systems come out below 0.05 and 0.01, and how often unequal ones do.

All on BLEU's sufficient statistics (``multi_bleu``): R runs, S sentences, 9 integers each. ``compare_metric`` has
p_strict and the interval of any other score of sums of statistics, such as chrF and TER.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rnnsmt.bleu.batch import bleu_of_many

SHUFFLES = 10_000
"""As Clark et al.; the smallest p-value is 1 / 10,001."""

CELLS = 1 << 23
"""Coins that are held at a time."""

RESAMPLES = 1000
"""As sacreBLEU."""

RESAMPLING_SEED = 12345
"""As sacreBLEU."""

CONFIDENCE = 0.95

POWER = 0.8

SLACK = 1e-9
"""Differences of BLEU below this are rounding."""

Statistics = NDArray[Any]
"""Numbers of every sentence in every run: ``[R, S, K]``; K is 9 for BLEU."""

ScoreOfMany = Callable[[NDArray[Any]], NDArray[np.float64]]
"""The score of sums of statistics: ``[..., K] -> [...]``."""


class SignificanceResult(NamedTuple):
    """difference: mean BLEU of the runs of the second system less that of the first; two-sided p-values.

    margin: half the width of the 95 % interval around the difference. detectable: the smallest true difference that
    p_strict finds (p <= 0.05) in 80 % of the cases. p_strict, margin, detectable: none where there is one run, or one
    training, which says nothing about their noise.
    """

    difference: float
    p_clark: float
    p_bootstrap: float
    p_strict: float | None = None
    margin: float | None = None
    detectable: float | None = None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % confidence interval of the difference."""
        return None if self.margin is None else (self.difference - self.margin, self.difference + self.margin)


def compare(
    first: Statistics,
    second: Statistics,
    seed: int = 1,
    shuffles: int = SHUFFLES,
    trainings: tuple[int | None, int | None] = (None, None),
    shared: bool = False,
) -> SignificanceResult:
    """Compare two systems on a test set; both have the same number of runs R, paired by their number.

    The same seed gives the same p-values, whichever system comes first.

    Args:
        trainings: number of trainings of the networks of each system; run r, counted from 0, has training
            r % trainings. None where every run counts for itself.
        shared: run r of both systems has a network in common, or something else that varies between runs.

    Raises:
        ValueError: the shapes differ, there are no runs or no sentences, or systems that share a network have another
            number of trainings.
    """
    if first.shape != second.shape or first.size == 0:
        raise ValueError(f"statistics of shapes {first.shape} and {second.shape} cannot be compared")
    if shared and trainings[0] != trainings[1]:
        raise ValueError(f"systems that share a network have {trainings[0]} and {trainings[1]} trainings")
    sums = first.sum(1), second.sum(1)
    runs = bleu_of_many(sums[0]), bleu_of_many(sums[1])
    difference = float(runs[1].mean() - runs[0].mean())
    if difference < 0:
        return compare(second, first, seed, shuffles, trainings[::-1], shared)._replace(difference=difference)
    gaps = (second - first).astype(np.float64)
    R, S = first.shape[:2]
    clark = 0
    rng = np.random.default_rng(seed)
    for count in _portions(shuffles, S):
        total = np.zeros(count)
        for r in range(R):
            total += _swapped(sums[0][r], sums[1][r], _coins(rng, count, S) @ gaps[r])
        clark += int(np.count_nonzero(np.abs(total / R) >= difference - SLACK))
    p_clark, p_bootstrap = (clark + 1) / (shuffles + 1), _bootstrap(first, second, difference)
    noises = _noises(first, second, trainings, shared)
    if not all(noise.degrees for noise in noises):
        return SignificanceResult(difference, p_clark, p_bootstrap)
    strict, margin, detectable = _strict(rng, first, second, difference, noises, shuffles, trainings, bleu_of_many)
    return SignificanceResult(difference, p_clark, p_bootstrap, strict, margin, detectable)


def compare_metric(
    first: Statistics, second: Statistics, score: ScoreOfMany, trainings: tuple[int, int], shared: bool, seed: int = 1
) -> "MetricDifference":
    """Compare two systems by another score than BLEU: p_strict and its interval, see ``compare_trained``."""
    counted = tuple(number if number > 1 else None for number in trainings)
    of_both = (counted[0], counted[1])
    paired = shared and of_both[0] is not None
    runs = score(first.sum(1)), score(second.sum(1))
    difference = float(runs[1].mean() - runs[0].mean())
    if difference < 0:
        other = compare_metric(second, first, score, trainings[::-1], shared, seed)
        return other._replace(difference=difference)
    noises = _noises(first, second, of_both, paired, score)
    if not all(noise.degrees for noise in noises):
        return MetricDifference(difference)
    strict, margin, _ = _strict(
        np.random.default_rng(seed), first, second, difference, noises, SHUFFLES, of_both, score
    )
    return MetricDifference(difference, strict, margin)


class MetricDifference(NamedTuple):
    """Difference of two systems by another score than BLEU, see ``SignificanceResult``."""

    difference: float
    p_strict: float | None = None
    margin: float | None = None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % confidence interval of the difference."""
        return None if self.margin is None else (self.difference - self.margin, self.difference + self.margin)


def _strict(
    rng: np.random.Generator,
    first: Statistics,
    second: Statistics,
    difference: float,
    noises: "list[_Noise]",
    shuffles: int,
    trainings: tuple[int | None, int | None],
    score: ScoreOfMany,
) -> tuple[float, float, float]:
    """Return p_strict, half the width of the interval and the detectable difference, for a positive difference."""
    gaps = (second - first).astype(np.float64)
    sums = first.sum(1), second.sum(1)
    R, S = first.shape[:2]
    swapped = []
    for count in _portions(shuffles, S):
        coins = _coins(rng, count, S)
        swapped.append(sum(_swapped(sums[0][r], sums[1][r], coins @ gaps[r], score) for r in range(R)) / R)
    alike = (trainings[0] is None) == (trainings[1] is None)
    draws = np.abs(_with_runs(rng, np.concatenate(swapped), noises, pooled=alike))
    strict = int(np.count_nonzero(draws >= difference - SLACK))
    margin = float(np.quantile(draws, CONFIDENCE))
    detectable = margin + float(np.quantile(draws, 2 * POWER - 1))  # the one-sided quantile of a symmetric distribution
    return (strict + 1) / (shuffles + 1), margin, detectable


def compare_trained(
    first: Statistics, second: Statistics, trainings: tuple[int, int], shared: bool
) -> SignificanceResult:
    """Compare two systems of a table, see ``compare``.

    Args:
        trainings: number of trainings of the networks of each system; 1: every run counts for itself.
        shared: the systems have a network in common; with one training of it there is nothing to pair.
    """
    of_first, of_second = (number if number > 1 else None for number in trainings)
    return compare(first, second, trainings=(of_first, of_second), shared=shared and of_first is not None)


def _bootstrap(first: Statistics, second: Statistics, difference: float) -> float:
    """Return the p-value of the paired bootstrap; for one run it is the number that sacreBLEU prints.

    difference: mean BLEU of second less that of first, not negative.

    As in sacreBLEU: how often the absolute difference of a resample exceeds the mean of all resamples by more than the
    difference that was seen. Of several runs: their mean differences, the same sentences drawn in all of them. Where
    all outputs are the same it is 1 (sacreBLEU: 1 / 1,001).
    """
    rng = np.random.default_rng(RESAMPLING_SEED)
    R, S = first.shape[:2]
    drawn = []
    for count in _portions(RESAMPLES, S):
        rows = rng.choice(S, size=(count, S), replace=True) + S * np.arange(count)[:, None]
        times = np.bincount(rows.ravel(), minlength=count * S).reshape(count, S).astype(np.float64)
        drawn.append(sum(bleu_of_many(times @ second[r]) - bleu_of_many(times @ first[r]) for r in range(R)) / R)
    sizes = np.abs(np.concatenate(drawn))
    if not sizes.any():
        return 1.0
    far = int(np.count_nonzero(sizes - sizes.mean() > difference + SLACK))
    return (far + 1) / (RESAMPLES + 1)


def _portions(shuffles: int, sentences: int) -> Iterator[int]:
    """Yield the numbers of shuffles of portions whose coins fit into memory."""
    size = max(1, CELLS // sentences)
    for begin in range(0, shuffles, size):
        yield min(size, shuffles - begin)


def _coins(rng: np.random.Generator, shuffles: int, sentences: int) -> NDArray[np.float64]:
    """Draw 0 or 1 with probability 1/2 each, ``[shuffles, sentences]``."""
    packed = rng.integers(0, 256, (shuffles, (sentences + 7) // 8), np.uint8)
    return np.unpackbits(packed, axis=1, count=sentences).astype(np.float64)


def _swapped(
    first: Statistics, second: Statistics, moved: NDArray[np.float64], score: ScoreOfMany = bleu_of_many
) -> NDArray[np.float64]:
    """Compute the difference of scores where ``moved`` [shuffles, K] has changed sides; sums of one run [K]."""
    return score(second - moved) - score(first + moved)


class _Noise(NamedTuple):
    """Of a mean over runs: its variance, the part of it that single sentences make, degrees of freedom."""

    variance: float
    by_sentences: float
    degrees: int


def _noises(
    first: Statistics,
    second: Statistics,
    trainings: tuple[int | None, int | None],
    shared: bool,
    score: ScoreOfMany = bleu_of_many,
) -> list[_Noise]:
    """Return the noise of the runs of both systems, or of their differences where they share networks."""
    R = len(first)
    (scores, parts), (others, other_parts) = _contributions(first, score), _contributions(second, score)
    if shared:
        return [_noise(others - scores, other_parts - parts, trainings[0] or R)]
    return [_noise(scores, parts, trainings[0] or R), _noise(others, other_parts, trainings[1] or R)]


def _contributions(
    system: Statistics, score: ScoreOfMany = bleu_of_many
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the score of every run [R], and what it loses without a sentence [R, S]."""
    totals = system.sum(1, keepdims=True)
    scores = score(totals)
    return scores[:, 0], scores - score(totals - system)


def _noise(values: NDArray[np.float64], parts: NDArray[np.float64], groups: int) -> _Noise:
    """Return the noise of the mean of values of runs [R], of which every ``groups``-th ones belong together.

    parts: what each sentence contributes to each value, [R, S]. Their differences between groups, less the group's own
    mean, are taken as independent.
    """
    S = parts.shape[1]
    if groups == 1:
        return _Noise(0.0, 0.0, 0)
    by_sentences = 0.0
    if S > 1:
        parts = _means(parts, groups)
        parts = parts - parts.mean(0)
        parts -= parts.mean(1, keepdims=True)
        by_sentences = float((parts**2).sum() / (groups - 1) * S / (S - 1))
    variance = float(_means(values, groups).var(ddof=1))
    return _Noise(variance / groups, by_sentences / groups, groups - 1)


def _means(values: NDArray[np.float64], groups: int) -> NDArray[np.float64]:
    """Compute the means of every ``groups``-th rows: ``[R, ...]`` -> ``[groups, ...]``."""
    return np.array([values[group::groups].mean(0) for group in range(groups)])


def _with_runs(
    rng: np.random.Generator, swapped: NDArray[np.float64], noises: list[_Noise], pooled: bool
) -> NDArray[np.float64]:
    """Return draws of the difference of two equal systems: those of sentences ``[shuffles]`` plus the noise of runs.

    pooled: the variance of the runs is taken to be the same for both systems.
    """
    variance, by_sentences = sum(noise.variance for noise in noises), sum(noise.by_sentences for noise in noises)
    if variance == 0.0:
        return swapped
    degrees: float = sum(noise.degrees for noise in noises)
    if not pooled:
        degrees = variance**2 / sum(noise.variance**2 / noise.degrees for noise in noises)
    normal = rng.standard_normal(swapped.size)
    if min(noise.degrees for noise in noises) == 1:
        drawn = variance * degrees / rng.chisquare(degrees, swapped.size)
        return swapped + normal * np.sqrt(np.maximum(0.0, drawn - by_sentences))
    runs = max(0.0, variance - by_sentences)
    n = max(degrees, (swapped.var() + runs) ** 2 / (variance**2 / degrees) - 2)
    return (swapped + normal * np.sqrt(runs)) * np.sqrt(n / rng.chisquare(n, swapped.size))
