"""The parts of scoring besides matrix products, compiled; each row is computed on its own, in a fixed order."""

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.kernels.decorator import kernel
from rnnsmt.networks.kernels.softmax import dot


@kernel()
def first_layer(
    contexts: NDArray[np.int32], table: NDArray[np.float32], bias: NDArray[np.float32], out: NDArray[np.float32]
) -> None:
    """Compute the first hidden layer of B contexts, relu(b_1 + sum of W_1 R over the words).

    Args:
        contexts: int32 [B, C], the words before the predicted one, oldest first.
        table: [C, vocabulary, H], W_1 R for every position and word.
        bias: [H], b_1.
        out: [at least B, H]; the first B rows are filled.
    """
    units = len(bias)
    for row in range(len(contexts)):
        total = out[row]
        for unit in range(units):
            total[unit] = bias[unit]
        # units innermost: the rows of the table are contiguous, and each unit is summed in the order of the positions
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
    """Compute the output units of the requested words before the softmax.

    Args:
        hidden: [B, H], the last hidden layer.
        owner: [R], the row of ``hidden`` for each request.
        words: [R], the word of each request.
        weights: [vocabulary, H], W_o.
        bias: [vocabulary], b_o.
        out: [R], filled.
    """
    for r in range(len(words)):
        out[r] = dot(hidden[owner[r]], weights[words[r]]) + bias[words[r]]
