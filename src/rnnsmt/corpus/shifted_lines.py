"""Ranges of a parallel text in which one side is shifted by a line, found by the lengths of the sentences.

A sentence and its translation have about the same number of characters, up to a factor that depends on the languages
(Gale and Church 1993); neighbouring lines do not. Let d be ln(target characters / source characters) minus its mean,
for source line i and target line i + o. The evidence for offset o is ::

    e_o(i) = ln N(d; 0, s) - ln N(d; 0, w)

where s and w are the standard deviations of d for lines that are translations of each other and for lines that are not;
both are estimated from windows of the text. The gain of offset o is e_o minus the larger e of the other offsets. The
range of source lines with the largest sum of gains is shifted by o if this sum is large enough.

The method requires no dictionary. It reports nothing if the lengths are not informative: for sorted text, and for lines
of equal length.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

WINDOW = 100
"""Number of lines of the windows from which s and w are estimated."""

MIN_RATIO = 1.3
"""Minimum w / s of a text that is examined; for unrelated texts, the estimate of w / s is up to 1.2."""

CAP = 3.0
"""Maximum evidence of a line, in nats, which limits the influence of outliers."""

MIN_EVIDENCE = 40.0
"""Minimum evidence of a range that is reported, in nats; ranges of correct text have at most a third of it."""

MIN_LINES = 30
"""Minimum number of lines of a range that is reported."""

MAX_RANGES = 5
"""Number of ranges after which the search ends."""

MAX_SEARCHES = 200
"""Maximum number of parts of the text that are searched, if many ranges are too short to be reported."""

OFFSETS = (-1, 1)


class ShiftedLines(NamedTuple):
    """Range of source lines (1-based, both ends included) whose translations are ``offset`` lines later.

    Attributes:
        fit, fit_as_given: correlation of the log lengths of both sides in the range, with and without the offset.
    """

    first: int
    last: int
    offset: int
    fit: float
    fit_as_given: float


def shifted_lines(source: Sequence[int], target: Sequence[int]) -> list[ShiftedLines]:
    """Find the ranges of a text that fit better if they are shifted by one line.

    Args:
        source, target: numbers of characters of each line; 0: an empty line, whose evidence is 0.

    Returns:
        At most ``MAX_RANGES`` ranges, in the order of the text.
    """
    sides = [np.array(side, np.float64) for side in (source, target)]
    with np.errstate(divide="ignore"):
        lengths = [np.where(side > 0, np.log(side), np.nan) for side in sides]
    ratios = {offset: _later(lengths[1], offset) - lengths[0] for offset in (0, *OFFSETS)}
    widths = _deviations(ratios)
    if widths is None:
        return []
    evidence = {offset: _evidence(ratio, *widths) for offset, ratio in ratios.items()}
    gains = {offset: evidence[offset] - np.maximum(evidence[0], evidence[-offset]) for offset in OFFSETS}
    ranges: list[ShiftedLines] = []
    searched = [(0, len(sides[0]))]
    for _ in range(MAX_SEARCHES):
        if not searched or len(ranges) == MAX_RANGES:
            break
        begin, end = searched.pop()
        best = max((_largest_sum(gain[begin:end], offset) for offset, gain in gains.items()), key=lambda s: s.total)
        if best.total < MIN_EVIDENCE:
            continue
        first, last = begin + best.begin, begin + best.end
        searched += [(begin, first), (last, end)]
        if last - first >= MIN_LINES:
            span = slice(first, last)
            fits = [_correlation(lengths[0][span], _later(lengths[1], o)[span]) for o in (best.offset, 0)]
            ranges.append(ShiftedLines(first + 1, last, best.offset, *fits))
    return sorted(ranges)


def shift_warnings(ranges: Sequence[ShiftedLines]) -> Iterator[str]:
    """Yield a warning for every range."""
    for span in ranges:
        yield (
            f"lines {span.first:,} to {span.last:,} of the source fit the target better one line "
            f"{'further down' if span.offset > 0 else 'further up'} (correlation of the lengths {span.fit:.2f} instead "
            f"of {span.fit_as_given:.2f}); a line of one side may be missing near line {span.first:,}"
        )


def _later(values: NDArray[np.float64], offset: int) -> NDArray[np.float64]:
    """Return for every line the value ``offset`` lines later, NaN outside the text."""
    shifted = np.full(len(values), np.nan)
    if offset > 0:
        shifted[:-offset] = values[offset:]
    elif offset < 0:
        shifted[-offset:] = values[:offset]
    else:
        shifted[:] = values
    return shifted


def _deviations(ratios: dict[int, NDArray[np.float64]]) -> tuple[float, float, float] | None:
    """Estimate the mean of d, and s and w; return None if the text is too short or its lengths are not informative.

    In most windows, one offset is correct and has the smallest standard deviation; the largest one is of a wrong
    offset.
    """
    windows = len(ratios[0]) // WINDOW
    if not windows:
        return None
    shaped = np.array([ratio[: windows * WINDOW].reshape(windows, WINDOW) for ratio in ratios.values()])
    enough = (~np.isnan(shaped)).sum(2).min(0) >= WINDOW // 2
    if not enough.any():
        return None
    shaped = shaped[:, enough]
    deviations = np.nanstd(shaped, 2)
    right, wrong = float(np.median(deviations.min(0))), float(np.median(deviations.max(0)))
    if right <= 0 or wrong < MIN_RATIO * right:
        return None
    return float(np.nanmedian(shaped)), right, wrong


def _evidence(ratio: NDArray[np.float64], mean: float, right: float, wrong: float) -> NDArray[np.float64]:
    """Compute e_o of every line, at least -``CAP`` and at most ``CAP``; 0 if a side is empty."""
    square = (ratio - mean) ** 2 / 2
    evidence = np.log(wrong / right) - square / right**2 + square / wrong**2
    return np.nan_to_num(np.clip(evidence, -CAP, CAP))


class _Range(NamedTuple):
    """Range of lines with the largest sum: sum, offset, first line and end (0-based)."""

    total: float
    offset: int
    begin: int
    end: int


def _largest_sum(values: NDArray[np.float64], offset: int) -> _Range:
    sums = np.concatenate([[0.0], np.cumsum(values)])
    least = np.minimum.accumulate(sums)
    end = int(np.argmax(sums - least))
    return _Range(float(sums[end] - least[end]), offset, int(np.argmin(sums[: end + 1])), end)


def _correlation(source: NDArray[np.float64], target: NDArray[np.float64]) -> float:
    """Compute the correlation of the pairs without NaN; 0 if one side does not vary."""
    valid = ~(np.isnan(source) | np.isnan(target))
    if valid.sum() < 2 or min(np.std(source[valid]), np.std(target[valid])) == 0:
        return 0.0
    return float(np.corrcoef(source[valid], target[valid])[0, 1])
