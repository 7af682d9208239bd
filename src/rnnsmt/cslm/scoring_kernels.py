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
