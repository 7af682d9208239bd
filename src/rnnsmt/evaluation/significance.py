"""Randomisation tests and confidence intervals for the difference of two systems, over several tuning runs.

``p_strict`` is the share of random draws in which two equally good systems, on another sample of sentences and of runs,
differ at least as much as observed. A draw consists of:

* Sentences: approximate randomisation (Riezler and Maxwell 2005). Under the null hypothesis, the outputs of both
  systems for a sentence are exchangeable. They are swapped with probability 1/2, in all runs at once, because the
  outputs of several runs are nearly the same text. Clark et al. (2011) treat them as independent observations; their
  test finds differences that another test set of the same kind would not show. The swaps include the variation of
  single sentences between runs.
* Runs: a number from a normal distribution, for the variation that all sentences of a run have in common. Its variance
  is the variance of the runs around the mean of their system, pooled over both systems, with 2(R - 1) degrees of
  freedom, minus the part caused by single sentences, which the swaps already include. This part is estimated by the
  jackknife.

Details of the variance between runs:

* Training runs: if the tuning runs of a system cycle through several training runs of its networks, tuning runs with
  the same training run are not independent. Then their mean is used as one observation. If only one of the two systems
  has several training runs, each system has a separate variance, and the number of degrees of freedom is that of Welch
  and Satterthwaite.
* Shared networks: for example, the systems CSLM and CSLM + RNN use the same CSLM in the same run. A better CSLM
  improves both, so it is not noise of their difference. Then the variance is that of the paired differences of the
  training runs, with one degree of freedom less than the number of training runs.
* A variance estimated from a few runs is often far too small. Therefore, every draw is scaled by ``sqrt(n / chi2_n)``,
  as in Student's t distribution, where n is the Welch-Satterthwaite number of degrees of freedom: 2(R - 1) if the
  variance between runs dominates, and large if the variance between sentences does. This n is too large on average,
  because it is computed by a division by the square of an estimated variance; it is reduced by 2, but not below the
  degrees of freedom of the variance between runs. If a variance is estimated from two runs or two training runs, n is
  not informative; then only the variance between runs is scaled, for every draw by ``d / chi2_d``, where d is its
  number of degrees of freedom (2 with two runs of each system). This makes p larger.

The same draws give the 95 % interval (the difference plus or minus the 95 % quantile of the absolute values of the
draws, so it excludes 0 if p_strict is below 0.05) and the smallest difference that would be detected with a power of
80 %.

``p_bootstrap`` is computed by the paired bootstrap of Koehn (2004) as in sacreBLEU (one tail). The same sentences are
drawn with replacement in all runs. It includes only the noise from the selection of the sentences.

``benchmarks/significance.md`` reports how often p is below 0.05 and 0.01 for equal and for unequal systems.

All tests are computed from the sufficient statistics of the sentences (for BLEU, those of ``bleu.multi_bleu``): K
numbers for each of R runs and S sentences. p_strict and the interval are defined for any score that is a function of
summed statistics, such as chrF and TER; the bootstrap is computed for BLEU only.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rnnsmt.bleu.batch import bleu_of_many

SHUFFLES = 10_000
"""Number of shuffles; the smallest p-value is 1 / 10,001."""

CELLS = 1 << 23
"""Maximum number of random bits (swap or not) that are in memory at a time."""

RESAMPLES = 1000
"""Number of bootstrap samples, as in sacreBLEU."""

RESAMPLING_SEED = 12345
"""Random seed of the bootstrap, as in sacreBLEU."""

CONFIDENCE = 0.95

POWER = 0.8

SLACK = 1e-9
"""Maximum rounding error of a difference of scores."""

Statistics = NDArray[Any]
"""Sufficient statistics of every sentence in every run: ``[R, S, K]``; K is 9 for BLEU."""

ScoreOfMany = Callable[[NDArray[Any]], NDArray[np.float64]]
"""Score as a function of summed statistics: ``[..., K] -> [...]``."""


class Difference(NamedTuple):
    """Difference of two systems, with its p-values (see the module docstring); p_strict is two-sided.

    Attributes:
        difference: mean score of the runs of the second system minus that of the first.
        p_bootstrap: None for a score other than BLEU.
        margin: half the width of the 95 % interval around the difference.
        detectable: the smallest true difference that p_strict detects (p <= 0.05) in 80 % of the cases.
        p_strict, margin, detectable: None if each system has one run, since the noise cannot be estimated from it.
    """

    difference: float
    p_bootstrap: float | None = None
    p_strict: float | None = None
    margin: float | None = None
    detectable: float | None = None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Return the 95 % confidence interval of the difference."""
        return None if self.margin is None else (self.difference - self.margin, self.difference + self.margin)


def compare(
    first: Statistics,
    second: Statistics,
    trainings: tuple[int, int] = (1, 1),
    shared: bool = False,
    score: ScoreOfMany = bleu_of_many,
    seed: int = 1,
    shuffles: int = SHUFFLES,
) -> Difference:
    """Compare two systems with the same number of runs R on a test set; runs with the same number are paired.

    The same seed gives the same p-values for both orders of the systems.

    Args:
        first, second: statistics ``[R, S, K]`` of the systems.
        trainings: number of training runs per network of each system; run r (0-based) uses training run
            r % trainings. 1: the runs are treated as independent.
        shared: whether run r of both systems has the same networks; has no effect with one training run.

    Raises:
        ValueError: the shapes differ, there are no runs or no sentences, or systems that share a network have different
            numbers of training runs.
    """
    if first.shape != second.shape or first.size == 0:
        raise ValueError(f"statistics of shapes {first.shape} and {second.shape} cannot be compared")
    if shared and trainings[0] != trainings[1]:
        raise ValueError(f"systems that share a network have {trainings[0]} and {trainings[1]} trainings")
    difference = float(score(second.sum(1)).mean() - score(first.sum(1)).mean())
    if difference < 0:
        turned = compare(second, first, trainings[::-1], shared, score, seed, shuffles)
        return turned._replace(difference=difference)
    rng = np.random.default_rng(seed)
    result = Difference(difference)
    if score is bleu_of_many:
        result = result._replace(p_bootstrap=_bootstrap(first, second, difference))
    if len(first) == 1:
        return result
    swapped = _swapped(rng, first, second, score, shuffles)
    noises = _noises(first, second, trainings, shared, score)
    alike = (trainings[0] > 1) == (trainings[1] > 1)
    draws = np.abs(_with_runs(rng, swapped, noises, pooled=alike))
    margin = float(np.quantile(draws, CONFIDENCE))
    detectable = margin + float(np.quantile(draws, 2 * POWER - 1))  # the one-sided quantile of a symmetric distribution
    return result._replace(p_strict=_share(draws, difference), margin=margin, detectable=detectable)


def _share(draws: NDArray[np.float64], difference: float) -> float:
    """Return the p-value: the share of draws at least as large as the difference, which is counted as a draw too."""
    return (int(np.count_nonzero(np.abs(draws) >= difference - SLACK)) + 1) / (len(draws) + 1)


def _swapped(
    rng: np.random.Generator, first: Statistics, second: Statistics, score: ScoreOfMany, shuffles: int
) -> NDArray[np.float64]:
    """Return the differences ``[shuffles]`` after swapping the outputs of random sentences, in all runs at once."""
    R, S, K = first.shape
    sums = first.sum(1), second.sum(1)
    # sums of integers are exact in single precision up to 2^24, and take half of the time
    gaps = (second - first).astype(np.float64)
    if np.abs(gaps).sum(1).max() < 1 << 24 and np.array_equal(gaps, np.rint(gaps)):
        gaps = gaps.astype(np.float32)
    by_sentence = gaps.transpose(1, 0, 2).reshape(S, R * K)
    drawn = []
    for count in _portions(shuffles, S):
        moved = (_coins(rng, count, S, gaps.dtype) @ by_sentence).reshape(count, R, K).astype(np.float64)
        total = np.zeros(count)
        for r in range(R):
            total += score(sums[1][r] - moved[:, r]) - score(sums[0][r] + moved[:, r])
        drawn.append(total / R)
    return np.concatenate(drawn)


def _coins(rng: np.random.Generator, count: int, S: int, dtype: "np.dtype[Any]") -> NDArray[Any]:
    """Draw 0 or 1 with probability 1/2 each, ``[count, S]``."""
    packed = rng.integers(0, 256, (count, (S + 7) // 8), np.uint8)
    return np.unpackbits(packed, axis=1, count=S).astype(dtype)


def _bootstrap(first: Statistics, second: Statistics, difference: float) -> float:
    """Return the p-value of the paired bootstrap of BLEU; for one run, it equals that of sacreBLEU.

    As in sacreBLEU, the p-value is the share of resamples whose absolute difference exceeds the mean over all resamples
    by more than the observed difference. With several runs, the difference of a resample is the mean over the runs, in
    all of which the same sentences are drawn. If all outputs are the same, the p-value is 1 (sacreBLEU: 1 / 1,001).
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
    """Yield numbers of shuffles that add up to ``shuffles``; each number times ``sentences`` is about ``CELLS``."""
    size = max(1, CELLS // sentences)
    for begin in range(0, shuffles, size):
        yield min(size, shuffles - begin)


class _Noise(NamedTuple):
    """Noise of a mean over runs: its variance, the part of it caused by single sentences, and degrees of freedom."""

    variance: float
    by_sentences: float
    degrees: int


def _noises(
    first: Statistics, second: Statistics, trainings: tuple[int, int], shared: bool, score: ScoreOfMany = bleu_of_many
) -> list[_Noise]:
    """Return the noise of the runs of both systems, or of their differences if they share networks."""
    (scores, parts), (others, other_parts) = _contributions(first, score), _contributions(second, score)
    groups = [number if number > 1 else len(first) for number in trainings]
    if shared and trainings[0] > 1:
        return [_noise(others - scores, other_parts - parts, groups[0])]
    return [_noise(scores, parts, groups[0]), _noise(others, other_parts, groups[1])]


def _contributions(
    system: Statistics, score: ScoreOfMany = bleu_of_many
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the score ``[R]`` of every run, and the decrease ``[R, S]`` of this score if a sentence is left out."""
    totals = system.sum(1, keepdims=True)
    scores = score(totals)
    return scores[:, 0], scores - score(totals - system)


def _noise(values: NDArray[np.float64], parts: NDArray[np.float64], groups: int) -> _Noise:
    """Return the noise of the mean of the values of runs.

    Args:
        values: ``[R]``, value of each run, for example its score.
        parts: ``[R, S]``, contribution of each sentence to each value. Their deviations from the mean of the groups,
            minus the mean deviation of the group, are assumed to be independent.
        groups: number of groups; runs with equal r % ``groups`` form a group, whose mean is one observation.
    """
    S = parts.shape[1]
    by_sentences = 0.0
    if S > 1:
        parts = _means(parts, groups)
        parts = parts - parts.mean(0)
        parts -= parts.mean(1, keepdims=True)
        by_sentences = float((parts**2).sum() / (groups - 1) * S / (S - 1))
    variance = float(_means(values, groups).var(ddof=1))
    return _Noise(variance / groups, by_sentences / groups, groups - 1)


def _means(values: NDArray[np.float64], groups: int) -> NDArray[np.float64]:
    """Compute the mean of the rows with equal index modulo ``groups``: ``[R, ...]`` -> ``[groups, ...]``."""
    return np.array([values[group::groups].mean(0) for group in range(groups)])


def _with_runs(
    rng: np.random.Generator, swapped: NDArray[np.float64], noises: list[_Noise], pooled: bool
) -> NDArray[np.float64]:
    """Return draws ``[shuffles]`` of the difference of two equally good systems.

    Args:
        swapped: ``[shuffles]``, differences after swaps of sentences, to which the noise of the runs is added.
        noises: noise of the runs of each system, or of their differences.
        pooled: whether the variance of the runs is assumed to be the same for both systems.
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
