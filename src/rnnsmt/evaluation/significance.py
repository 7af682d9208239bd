"""Is one system better than another? Randomisation tests over the outputs of several tuning runs.

``clark``: stratified approximate randomisation over all runs (Clark et al. 2011, section 4; Riezler and Maxwell 2005).
Were the systems alike, each output of run r for sentence s could as well be the other system's. So every pair of
outputs of the same run and the same sentence is swapped with probability 1/2, each on its own, and the p-value is how
often the difference of the mean BLEU is then at least as large as the one that was seen.

That test takes the outputs of one sentence in five runs for five independent observations. They are nearly the same
text, so it finds differences that another test set of the kind would not show. ``strict`` does not. It compares the
difference with draws of what two equal systems give on another sample of sentences and of runs:

* Sentences: a sentence is swapped in all runs at once. That contains what single sentences differ between runs.
* Runs: a draw from a normal distribution, for what all sentences of a run have in common. Its variance is that of the
  runs around their system's mean, pooled over both systems, with 2(R - 1) degrees of freedom, less what the
  differences of single sentences between runs make of it (by the jackknife), which the swaps contain already.
* A variance estimated from a few runs is often far too small. So every draw is scaled by ``sqrt(n / chi2_n)``, as in
  Student's t, with the n of Welch and Satterthwaite: 2(R - 1) where runs dominate, large where sentences do. With two
  runs n is too uncertain itself; there the variance of every draw is scaled by ``2 / chi2_2`` and p comes out larger.

``benchmarks/significance.md`` has how often equal systems come out below 0.05 and 0.01.

All on BLEU's sufficient statistics (``multi_bleu``): R runs, S sentences, 9 integers each.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rnnsmt.bleu.batch import bleu_of_many

SHUFFLES = 10_000
"""As Clark et al.; the smallest p-value is 1 / 10,001."""

CELLS = 1 << 23
"""Coins that are held at a time."""

SLACK = 1e-9
"""Differences of BLEU below this are rounding."""

Statistics = NDArray[np.int64]
"""``[R, S, 9]``."""


class Comparison(NamedTuple):
    """difference: mean BLEU of the runs of the second system less that of the first; two-sided p-values.

    p_strict: none where there is one run, which says nothing about the noise of runs.
    """

    difference: float
    p_clark: float
    p_strict: float | None


def compare(first: Statistics, second: Statistics, seed: int = 1, shuffles: int = SHUFFLES) -> Comparison:
    """Compare two systems on a test set; both have the same number of runs R, paired by their number.

    The same seed gives the same p-values, whichever system comes first.

    Raises:
        ValueError: the shapes differ, or there are no runs or no sentences.
    """
    if first.shape != second.shape or first.size == 0:
        raise ValueError(f"statistics of shapes {first.shape} and {second.shape} cannot be compared")
    sums = first.sum(1), second.sum(1)
    runs = bleu_of_many(sums[0]), bleu_of_many(sums[1])
    difference = float(runs[1].mean() - runs[0].mean())
    if difference < 0:
        return compare(second, first, seed, shuffles)._replace(difference=difference)
    gaps = (second - first).astype(np.float64)
    R, S = first.shape[:2]
    clark = 0
    rng = np.random.default_rng(seed)
    for count in _portions(shuffles, S):
        total = np.zeros(count)
        for r in range(R):
            total += _swapped(sums[0][r], sums[1][r], _coins(rng, count, S) @ gaps[r])
        clark += int(np.count_nonzero(np.abs(total / R) >= difference - SLACK))
    if R == 1:
        return Comparison(difference, (clark + 1) / (shuffles + 1), None)
    swapped = []
    for count in _portions(shuffles, S):
        coins = _coins(rng, count, S)
        swapped.append(sum(_swapped(sums[0][r], sums[1][r], coins @ gaps[r]) for r in range(R)) / R)
    draws = _with_runs(rng, np.concatenate(swapped), first, second)
    strict = int(np.count_nonzero(np.abs(draws) >= difference - SLACK))
    return Comparison(difference, (clark + 1) / (shuffles + 1), (strict + 1) / (shuffles + 1))


def _portions(shuffles: int, sentences: int) -> Iterator[int]:
    """The shuffles in portions whose coins fit into memory."""
    size = max(1, CELLS // sentences)
    for begin in range(0, shuffles, size):
        yield min(size, shuffles - begin)


def _coins(rng: np.random.Generator, shuffles: int, sentences: int) -> NDArray[np.float64]:
    """0 or 1 with probability 1/2, ``[shuffles, sentences]``."""
    packed = rng.integers(0, 256, (shuffles, (sentences + 7) // 8), np.uint8)
    return np.unpackbits(packed, axis=1, count=sentences).astype(np.float64)


def _swapped(first: Statistics, second: Statistics, moved: NDArray[np.float64]) -> NDArray[np.float64]:
    """The difference of BLEU where ``moved`` [shuffles, 9] has changed sides; sums of one run [9]."""
    return bleu_of_many(second - moved) - bleu_of_many(first + moved)


def _with_runs(
    rng: np.random.Generator, swapped: NDArray[np.float64], first: Statistics, second: Statistics
) -> NDArray[np.float64]:
    """Draws of the difference of two equal systems: those of sentences ``[shuffles]`` with the noise of runs added."""
    R = len(first)
    degrees = 2 * (R - 1)
    pooled = float(np.mean([bleu_of_many(system.sum(1)).var(ddof=1) for system in (first, second)]))
    if pooled == 0.0:
        return swapped
    by_sentences = float(np.mean([_variance_by_sentences(system) for system in (first, second)]))
    normal = rng.standard_normal(swapped.size)
    if R == 2:
        variance = pooled * degrees / rng.chisquare(degrees, swapped.size)
        return swapped + normal * np.sqrt(2 / R * np.maximum(0.0, variance - by_sentences))
    runs = 2 / R * max(0.0, pooled - by_sentences)
    n = (swapped.var() + runs) ** 2 / ((2 / R * pooled) ** 2 / degrees)
    return (swapped + normal * np.sqrt(runs)) * np.sqrt(n / rng.chisquare(n, swapped.size))


def _variance_by_sentences(system: Statistics) -> float:
    """Variance of the BLEU of runs ``[R, S, 9]`` that comes from each sentence on its own.

    What a sentence contributes to a run is what the run's BLEU loses without it; the differences of these contributions
    between runs, less the run's own mean, are taken as independent.
    """
    R, S = system.shape[:2]
    if S == 1:
        return 0.0
    totals = system.sum(1, keepdims=True)
    parts = bleu_of_many(totals) - bleu_of_many(totals - system)
    parts -= parts.mean(0)
    parts -= parts.mean(1, keepdims=True)
    return float((parts**2).sum() / (R - 1) * S / (S - 1))
