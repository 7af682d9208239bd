"""Sums of exponentials over output units, compiled: every row by itself, in an order that its length alone decides."""

import numpy as np
from numpy.typing import NDArray

from rnnsmt.compiled import INNER, kernel

SHARE = 0.002
"""Classes with at least this share of the sum are computed again in float32."""

LANES = 64

LOG2E = np.float32(1.4426950408889634)
C1, C2, C3 = np.float32(0.693147042), np.float32(0.240229325), np.float32(0.0554852202)
C4, C5, C6 = np.float32(0.00967553263), np.float32(0.00124673764), np.float32(0.000216138082)
"""2 to the f is 1 + C1 f + C2 f^2 ... for f from 0 to 1: to 2e-9 before rounding."""


@kernel(fastmath={"reassoc", "contract"}, **INNER)
def dot(a: NDArray[np.float32], b: NDArray[np.float32]) -> np.float32:
    """The order of the sum follows from the length alone."""
    total = np.float32(0.0)
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@kernel(fastmath={"reassoc", "contract"}, **INNER)
def exp_sum(x: NDArray[np.float32], top: np.float32) -> np.float32:
    """The sum of exp(x - top); top is at least the largest x. The integer part of an exponent is written as bits."""
    total = np.float32(0.0)
    for i in range(len(x)):
        y = max((x[i] - top) * LOG2E, np.float32(-126.0))
        whole = np.floor(y)
        f = y - whole
        part = np.float32(1.0) + f * (C1 + f * (C2 + f * (C3 + f * (C4 + f * (C5 + f * C6)))))
        total += part * np.int32((np.int32(whole) + np.int32(127)) << np.int32(23)).view(np.float32)
    return total


@kernel(**INNER)
def largest(x: NDArray[np.float32], lanes: NDArray[np.float32]) -> np.float32:
    """lanes: [LANES], to work in: side by side, which the compiler does not do with one maximum."""
    whole = len(x) - len(x) % LANES
    lanes[:] = x[0]
    for begin in range(0, whole, LANES):
        part = x[begin : begin + LANES]
        for k in range(LANES):
            lanes[k] = part[k] if part[k] > lanes[k] else lanes[k]
    top = x[0]
    for k in range(LANES):
        top = max(top, lanes[k])
    for i in range(whole, len(x)):
        top = max(top, x[i])
    return top


@kernel(**INNER)
def some_above(x: NDArray[np.float32], least: np.float32) -> bool:
    """Counted, not looked for: that goes side by side."""
    found = 0
    for i in range(len(x)):
        found += x[i] >= least
    return found > 0


@kernel()
def add_exponentials(units: NDArray[np.float32], tops: NDArray[np.float32], totals: NDArray[np.float64]) -> None:
    """Go on with sums of exp over rows by some more classes: the sum of a row is exp(top) total.

    units: [B, classes]. tops: [B], -inf before the first. totals: [B], 0 before the first.
    """
    lanes = np.empty(LANES, np.float32)
    for row in range(len(units)):
        top = largest(units[row], lanes)
        if top > tops[row]:
            totals[row] *= np.exp(np.float64(tops[row]) - np.float64(top))
            tops[row] = top
        totals[row] += np.float64(exp_sum(units[row], tops[row]))


@kernel()
def take_units(
    units: NDArray[np.float32], first: int, rows: NDArray[np.int64], words: NDArray[np.int64], out: NDArray[np.float32]
) -> None:
    """out[r] = units[rows[r], words[r] - first] where that is one of the classes of units, [B, classes]."""
    classes = units.shape[1]
    for r in range(len(words)):
        word = words[r] - first
        if 0 <= word < classes:
            out[r] = units[rows[r], word]


@kernel()
def reduced_log_sums(
    units: NDArray[np.uint16],
    hidden: NDArray[np.float32],
    weights: NDArray[np.float32],
    bias: NDArray[np.float32],
    out: NDArray[np.float32],
) -> None:
    """ln of the sum of exp over each row of output units that were computed in bfloat16.

    The largest ones, which make up most of the sum, are computed again in float32. units: bfloat16 [B, classes], as
    integers. hidden: [B, H], weights: [classes, H]. out: [B].
    """
    classes = units.shape[1]
    wide = np.empty(classes, np.uint32)
    lanes = np.empty(LANES, np.float32)
    x = wide.view(np.float32)
    for row in range(len(out)):
        own = units[row]
        for i in range(classes):
            wide[i] = np.uint32(own[i]) << np.uint32(16)
        top = largest(x, lanes)
        total = np.float64(exp_sum(x, top))
        least = top + np.float32(np.log(SHARE * total))
        for begin in range(0, classes, LANES):
            end = min(begin + LANES, classes)
            if not some_above(x[begin:end], least):
                continue
            for i in range(begin, end):
                if x[i] >= least:
                    exact = dot(hidden[row], weights[i]) + bias[i]
                    total += np.exp(np.float64(exact) - np.float64(top)) - np.exp(np.float64(x[i]) - np.float64(top))
        out[row] = np.float32(top + np.log(total))
