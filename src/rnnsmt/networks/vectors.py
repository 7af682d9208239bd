"""Arithmetic on rows of float32 in compiled kernels whose loops vectorise.

The exponential and the maximum are computed from the bits of the numbers, because a loop with function calls, or with
comparisons of floats that may be NaN, is not vectorised.
"""

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.kernels.decorator import INNER, kernel

LOG2E = np.float32(1.4426950408889634)
"""log2(e): exp(x) is ``power_of_2(x * LOG2E)``."""

ONE, LEAST = np.float32(1.0), np.float32(-126.0)

TO_WHOLE = np.float32(1.5 * 2**23)
"""Rounding constant: for |x| <= 2^22, the lowest bits of the mantissa of x + TO_WHOLE are x rounded to an integer, in
two's complement."""

C1, C2, C3 = np.float32(0.6931472), np.float32(0.24022646), np.float32(0.05550329)

C4, C5, C6 = np.float32(0.00961852), np.float32(0.001339986), np.float32(0.00015337577)
"""Coefficients of the polynomial 1 + C1 f + C2 f^2 + ..., which approximates 2^f for f in [-1/2, 1/2] with an error of
2e-8."""


@kernel(fastmath={"contract"}, **INNER)
def power_of_2(y: np.float32) -> np.float32:
    """Return 2^y for y below 128; 2^-126 for y below -126; NaN for NaN.

    2^y = 2^n 2^f, where n is y rounded to an integer and f = y - n is in [-1/2, 1/2]. A polynomial gives 2^f, and n is
    added to the exponent bits of the result. There are no branches or table look-ups, so loops vectorise.
    """
    # fastmath without "reassoc": it would cancel the addition and subtraction of TO_WHOLE
    y = LEAST if y < LEAST else y  # 2^-126 is the smallest normal number: a lower n would overflow into the sign bit
    shifted = y + TO_WHOLE
    f = y - (shifted - TO_WHOLE)
    factor = ONE + f * (C1 + f * (C2 + f * (C3 + f * (C4 + f * (C5 + f * C6)))))
    # the shift moves the lowest 9 bits of ``shifted``, which are n, to the exponent, and discards all other bits
    exponent = np.int32(np.float32(shifted).view(np.int32) << np.int32(23))
    return np.int32(np.float32(factor).view(np.int32) + exponent).view(np.float32)


@kernel(fastmath={"reassoc", "contract"}, **INNER)
def dot(a: NDArray[np.float32], b: NDArray[np.float32]) -> np.float32:
    """Return the dot product of two rows; the order of summation depends on their length alone."""
    total = np.float32(0.0)
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@kernel(fastmath={"reassoc", "contract"}, **INNER)
def exp_sum(x: NDArray[np.float32], top: np.float32) -> np.float32:
    """Return the sum of exp(x - top); ``top`` must be at least the largest x."""
    total = np.float32(0.0)
    for i in range(len(x)):
        total += power_of_2((x[i] - top) * LOG2E)
    return total


@kernel(**INNER)
def largest(x: NDArray[np.float32]) -> np.float32:
    """Return the largest number of a row without NaN.

    The bits are compared as integers: unlike a maximum of floats, which must handle NaN, this vectorises. The bits of
    positive numbers are in the order of the numbers. The bits of negative numbers are in reverse order, so all bits
    except the sign are inverted; the same inversion restores the result.
    """
    top = np.int32(-(2**31))
    for i in range(len(x)):
        bits = np.float32(x[i]).view(np.int32)
        top = max(top, np.int32(bits ^ ((bits >> np.int32(31)) & np.int32(2**31 - 1))))
    return np.int32(top ^ ((top >> np.int32(31)) & np.int32(2**31 - 1))).view(np.float32)
