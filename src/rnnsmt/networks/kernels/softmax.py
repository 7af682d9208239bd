"""Sums of exponentials over output units, compiled: every row by itself, in an order that its length alone decides."""

import numpy as np
from numpy.typing import NDArray

from rnnsmt.kernels.decorator import INNER, kernel

SHARE = 0.002
"""Classes with at least this share of the sum are computed again in float32."""

LANES = 64
"""Classes whose largest unit tells whether they are looked at one by one."""

LARGE = np.float32(512.0)
"""Above this, bfloat16 is off by one and more."""

LOG2E = np.float32(1.4426950408889634)

ONE, LEAST = np.float32(1.0), np.float32(-126.0)

TO_WHOLE = np.float32(1.5 * 2**23)
"""Added to a float32 of at most 2^22, it rounds it to a whole number and shows that in the lowest bits."""

C1, C2, C3 = np.float32(0.6931472), np.float32(0.24022646), np.float32(0.05550329)

C4, C5, C6 = np.float32(0.00961852), np.float32(0.001339986), np.float32(0.00015337577)
"""2 to the f is 1 + C1 f + C2 f^2 ... for f from -1/2 to 1/2: to 2e-8."""


@kernel(fastmath={"contract"}, **INNER)
def power_of_2(y: np.float32) -> np.float32:
    """2 to the y for y below 128, at least 2^-126; nan for nan. The whole part of y is added to the exponent's bits.

    No reordering: TO_WHOLE is added and subtracted.
    """
    y = LEAST if y < LEAST else y
    shifted = y + TO_WHOLE
    f = y - (shifted - TO_WHOLE)
    part = ONE + f * (C1 + f * (C2 + f * (C3 + f * (C4 + f * (C5 + f * C6)))))
    exponent = np.int32(np.float32(shifted).view(np.int32) << np.int32(23))
    return np.int32(np.float32(part).view(np.int32) + exponent).view(np.float32)


@kernel(fastmath={"reassoc", "contract"}, **INNER)
def dot(a: NDArray[np.float32], b: NDArray[np.float32]) -> np.float32:
    """The order of the sum follows from the length alone."""
    total = np.float32(0.0)
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@kernel(fastmath={"reassoc", "contract"}, **INNER)
def exp_sum(x: NDArray[np.float32], top: np.float32) -> np.float32:
    """The sum of exp(x - top); top is at least the largest x."""
    total = np.float32(0.0)
    for i in range(len(x)):
        total += power_of_2((x[i] - top) * LOG2E)
    return total


@kernel(**INNER)
def largest(x: NDArray[np.float32]) -> np.float32:
    """Of numbers that are no nan.

    Their bits are compared, which goes side by side: they are ordered as integers, those of negative numbers backwards.
    """
    top = np.int32(-(2**31))
    for i in range(len(x)):
        bits = np.float32(x[i]).view(np.int32)
        top = max(top, np.int32(bits ^ ((bits >> np.int32(31)) & np.int32(2**31 - 1))))
    return np.int32(top ^ ((top >> np.int32(31)) & np.int32(2**31 - 1))).view(np.float32)


@kernel()
def add_exponentials(units: NDArray[np.float32], tops: NDArray[np.float32], totals: NDArray[np.float64]) -> None:
    """Go on with sums of exp over rows by some more classes: the sum of a row is exp(top) total.

    units: [B, classes]. tops: [B], -inf before the first. totals: [B], 0 before the first.
    """
    for row in range(len(units)):
        top = largest(units[row])
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
def keep_largest(
    units: NDArray[np.float32], first: int, least_class: int, best: NDArray[np.float32], classes: NDArray[np.int64]
) -> None:
    """Go on with the largest units of rows by some more classes.

    units: [B, classes], of the classes from ``first`` on; those below ``least_class`` do not count. best, classes:
    [B, width], the largest so far, descending, the lower class first where two are equal, and which they are; -inf
    and 0 before the first.
    """
    width = best.shape[1]
    for row in range(len(units)):
        own, values, names = units[row], best[row], classes[row]
        for begin in range(0, len(own), LANES):
            if not largest(own[begin : begin + LANES]) > values[width - 1]:
                continue
            for i in range(begin, min(begin + LANES, len(own))):
                x = own[i]
                if x > values[width - 1] and first + i >= least_class:
                    place = width - 1
                    while place > 0 and values[place - 1] < x:
                        values[place], names[place] = values[place - 1], names[place - 1]
                        place -= 1
                    values[place], names[place] = x, first + i


@kernel(**INNER)
def widened(bits: np.uint16) -> np.float32:
    """The number that 16 bits are in bfloat16."""
    return np.uint32(np.uint32(bits) << np.uint32(16)).view(np.float32)


@kernel(fastmath={"reassoc", "contract"}, **INNER)
def bfloat16_exp_sum(x: NDArray[np.uint16], top: np.float32) -> np.float32:
    """``exp_sum`` of bfloat16 numbers."""
    total = np.float32(0.0)
    for i in range(len(x)):
        total += power_of_2((widened(x[i]) - top) * LOG2E)
    return total


@kernel(**INNER)
def bfloat16_largest(x: NDArray[np.uint16]) -> np.float32:
    """``largest`` of bfloat16 numbers."""
    top = np.int16(-(2**15))
    for i in range(len(x)):
        bits = np.int16(x[i])
        top = max(top, np.int16(bits ^ ((bits >> np.int16(15)) & np.int16(2**15 - 1))))
    return widened(np.uint16(top ^ ((top >> np.int16(15)) & np.int16(2**15 - 1))))


@kernel(**INNER)
def exact_log_sum(
    hidden: NDArray[np.float32], weights: NDArray[np.float32], bias: NDArray[np.float32], x: NDArray[np.float32]
) -> np.float32:
    """ln of the sum of exp over all classes. hidden: [H], weights: [classes, H]. x: [classes], to work in."""
    for i in range(len(x)):
        x[i] = dot(hidden, weights[i]) + bias[i]
    top = largest(x)
    return np.float32(top + np.log(np.float64(exp_sum(x, top))))


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
    integers. hidden: [B, H], weights: [classes, H]. out: [B]. A row with units beyond ``LARGE`` is computed in float32.
    """
    classes = units.shape[1]
    space = np.empty(classes, np.float32)
    tops = np.empty((classes + LANES - 1) // LANES, np.float32)
    for row in range(len(out)):
        own = units[row]
        for part in range(len(tops)):
            tops[part] = bfloat16_largest(own[part * LANES : (part + 1) * LANES])
        top = tops.max()
        if abs(top) > LARGE:
            out[row] = exact_log_sum(hidden[row], weights, bias, space)
            continue
        total = np.float64(bfloat16_exp_sum(own, top))
        least = top + np.float32(np.log(SHARE * total))
        for part in range(len(tops)):
            if tops[part] < least:
                continue
            for i in range(part * LANES, min((part + 1) * LANES, classes)):
                x = widened(own[i])
                if x >= least:
                    exact = dot(hidden[row], weights[i]) + bias[i]
                    total += np.exp(np.float64(exact) - np.float64(top)) - power_of_2((x - top) * LOG2E)
        out[row] = np.float32(top + np.log(total))
