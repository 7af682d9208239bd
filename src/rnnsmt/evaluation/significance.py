"""Is one system better than another? Randomisation tests over the outputs of several tuning runs.

``clark``: stratified approximate randomisation over all runs (Clark et al. 2011, section 4; Riezler and Maxwell 2005).
Were the systems alike, each output of run r for sentence s could as well be the other system's. So every pair of
outputs of the same run and the same sentence is swapped with probability 1/2, each on its own, and the p-value is how
often the difference of the mean BLEU is then at least as large as the one that was seen.

That test takes the outputs of one sentence in five runs for five independent observations. They are nearly the same
text, so it finds differences that another test set of the kind would not show. ``strict`` does not: a sentence is
swapped in all runs at once (another sample of sentences), and noise of the mean over tuning runs is added, drawn from
the runs' own deviations from their system's mean (another sample of runs).

All on BLEU's sufficient statistics (``multi_bleu``): R runs, S sentences, 9 integers each.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rnnsmt.bleu.multi_bleu import ORDER

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


def batch_bleu(statistics: NDArray[np.floating] | NDArray[np.integer]) -> NDArray[np.float64]:
    """BLEU in percent of summed statistics ``[..., 9]``, as ``multi_bleu.bleu_of`` gives it."""
    matches, totals = statistics[..., :ORDER], statistics[..., ORDER : 2 * ORDER]
    length, reference = totals[..., 0], statistics[..., -1]
    with np.errstate(divide="ignore", invalid="ignore"):
        precisions = np.log(matches / totals).mean(-1)
        penalty = np.minimum(0.0, 1.0 - reference / length)
        return np.where((matches > 0).all(-1), 100.0 * np.exp(precisions + penalty), 0.0)


def compare(first: Statistics, second: Statistics, seed: int = 1, shuffles: int = SHUFFLES) -> Comparison:
    """Compare two systems on a test set; both have the same number of runs R, paired by their number.

    The same seed gives the same p-values, whichever system comes first.

    Raises:
        ValueError: the shapes differ, or there are no runs or no sentences.
    """
    if first.shape != second.shape or first.size == 0:
        raise ValueError(f"statistics of shapes {first.shape} and {second.shape} cannot be compared")
    sums = first.sum(1), second.sum(1)
    runs = batch_bleu(sums[0]), batch_bleu(sums[1])
    difference = float(runs[1].mean() - runs[0].mean())
    if difference < 0:
        return compare(second, first, seed, shuffles)._replace(difference=difference)
    gaps = (second - first).astype(np.float64)
    R, S = first.shape[:2]
    clark, strict = 0, 0
    rng = np.random.default_rng(seed)
    for count in _portions(shuffles, S):
        total = np.zeros(count)
        for r in range(R):
            total += _swapped(sums[0][r], sums[1][r], _coins(rng, count, S) @ gaps[r])
        clark += int(np.count_nonzero(np.abs(total / R) >= difference - SLACK))
    if R == 1:
        return Comparison(difference, (clark + 1) / (shuffles + 1), None)
    for count in _portions(shuffles, S):
        coins = _coins(rng, count, S)
        total = _run_noise(rng, runs, count) * R
        for r in range(R):
            total += _swapped(sums[0][r], sums[1][r], coins @ gaps[r])
        strict += int(np.count_nonzero(np.abs(total / R) >= difference - SLACK))
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
    return batch_bleu(second - moved) - batch_bleu(first + moved)


def _run_noise(
    rng: np.random.Generator, runs: tuple[NDArray[np.float64], NDArray[np.float64]], shuffles: int
) -> NDArray[np.float64]:
    """Draws of the difference of two means over R tuning runs, two or more, of which neither system is better."""
    R = len(runs[0])
    noise = np.zeros(shuffles)
    deviations = np.concatenate([bleu - bleu.mean() for bleu in runs]) * np.sqrt(R / (R - 1))
    for sign in (1.0, -1.0):
        noise += sign * deviations[rng.integers(0, 2 * R, (shuffles, R))].mean(1)
    return noise
