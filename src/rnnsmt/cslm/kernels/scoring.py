"""The parts of scoring that are no matrix products, compiled: every row is computed by itself, in one order."""

import numpy as np
from numpy.typing import NDArray

from rnnsmt.kernels.decorator import kernel
from rnnsmt.networks.kernels.softmax import dot


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


@kernel()
def output_units(
    hidden: NDArray[np.float32],
    owner: NDArray[np.int32],
    words: NDArray[np.int32],
    weights: NDArray[np.float32],
    bias: NDArray[np.float32],
    out: NDArray[np.float32],
) -> None:
    """The output unit of words[r] on top of hidden[owner[r]], before the softmax.

    hidden: [B, H]. weights: [vocabulary, H]. out: [R].
    """
    for r in range(len(words)):
        out[r] = dot(hidden[owner[r]], weights[words[r]]) + bias[words[r]]
