"""The parts of scoring that are no matrix products, compiled: every row is computed by itself, in one order."""

import numpy as np
from numpy.typing import NDArray

from rnnsmt.compiled import INNER, kernel


@kernel()
def first_layer(
    contexts: NDArray[np.int32], table: NDArray[np.float32], bias: NDArray[np.float32], out: NDArray[np.float32]
) -> None:
    """relu(b_1 + sum of the table's rows of every context's words).

    contexts: [B, C]. table: [C, vocabulary, H]: W_1 R, by position and word. out: [at least B, H].
    """
    units = len(bias)
    for row in range(len(contexts)):
        total = out[row]
        for unit in range(units):
            total[unit] = bias[unit]
        for place in range(contexts.shape[1]):
            part = table[place, contexts[row, place]]
            for unit in range(units):
                total[unit] += part[unit]
        for unit in range(units):
            total[unit] = max(total[unit], np.float32(0.0))


@kernel(fastmath={"reassoc", "contract"}, **INNER)
def _dot(a: NDArray[np.float32], b: NDArray[np.float32]) -> np.float32:
    """The order of the sum follows from the length alone."""
    total = np.float32(0.0)
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@kernel()
def output_units(
    hidden: NDArray[np.float32],
    owner: NDArray[np.int32],
    first: int,
    words: NDArray[np.int32],
    weights: NDArray[np.float32],
    bias: NDArray[np.float32],
    out: NDArray[np.float32],
) -> None:
    """The output unit of words[r] on top of hidden[owner[r] - first], before the softmax.

    hidden: [B, H]. weights: [vocabulary, H]. out: [R].
    """
    for r in range(len(words)):
        out[r] = _dot(hidden[owner[r] - first], weights[words[r]]) + bias[words[r]]


SHARE = 0.002
"""Classes with at least this share of the sum are computed again in float32."""

LANES = 64

LOG2E = np.float32(1.4426950408889634)
C1, C2, C3 = np.float32(0.693147042), np.float32(0.240229325), np.float32(0.0554852202)
C4, C5, C6 = np.float32(0.00967553263), np.float32(0.00124673764), np.float32(0.000216138082)
"""2 to the f is 1 + C1 f + C2 f^2 ... for f from 0 to 1: to 2e-9 before rounding."""


@kernel(fastmath={"contract"}, **INNER)
def _powers(x: NDArray[np.float32], top: np.float32, parts: NDArray[np.float32], bits: NDArray[np.uint32]) -> None:
    """exp(x - top) as products: parts, 2 to the fraction of the exponent, and bits, the float32 2 to its integer."""
    for i in range(len(x)):
        y = max((x[i] - top) * LOG2E, np.float32(-126.0))
        whole = np.floor(y)
        f = y - whole
        parts[i] = np.float32(1.0) + f * (C1 + f * (C2 + f * (C3 + f * (C4 + f * (C5 + f * C6)))))
        bits[i] = np.uint32(np.int32(whole) + np.int32(127)) << np.uint32(23)


@kernel(**INNER)
def _largest(x: NDArray[np.float32], lanes: NDArray[np.float32]) -> np.float32:
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


@kernel()
def log_sums(
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
    parts = np.empty(classes, np.float32)
    bits = np.empty(classes, np.uint32)
    lanes = np.empty(LANES, np.float32)
    x, scales = wide.view(np.float32), bits.view(np.float32)
    for row in range(len(out)):
        own = units[row]
        for i in range(classes):
            wide[i] = np.uint32(own[i]) << np.uint32(16)
        top = _largest(x, lanes)
        _powers(x, top, parts, bits)
        total = np.float64(_dot(parts, scales))
        least = top + np.float32(np.log(SHARE * total))
        for i in range(classes):
            if x[i] >= least:
                exact = _dot(hidden[row], weights[i]) + bias[i]
                total += np.exp(np.float64(exact) - np.float64(top)) - np.float64(parts[i] * scales[i])
        out[row] = np.float32(top + np.log(total))
