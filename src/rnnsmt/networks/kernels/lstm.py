"""The elementwise part of an LSTM step, after its matrix products, compiled; each row is computed on its own."""

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.kernels.decorator import INNER, kernel
from rnnsmt.networks.kernels.softmax import LOG2E, power_of_2

ONE, TWO = np.float32(1.0), np.float32(2.0)

MOST = np.float32(126.0)
"""Upper bound of the exponent in ``sigmoid``: ``power_of_2`` needs an argument below 128."""

# error_model="numpy" in all kernels below: Python's check for a division by zero would keep loops from vectorising


@kernel(fastmath={"contract"}, error_model="numpy", **INNER)
def sigmoid(x: np.float32) -> np.float32:
    """Return 1 / (1 + exp(-x)) with an error of at most 1e-7; NaN for NaN."""
    y = -x * LOG2E
    return ONE / (ONE + power_of_2(MOST if y > MOST else y))


@kernel(error_model="numpy", **INNER)
def to_sigmoid(x: NDArray[np.float32]) -> None:
    """Replace every number of an array by its sigmoid, in place."""
    for i in range(len(x)):
        x[i] = sigmoid(x[i])


@kernel(fastmath={"contract"}, error_model="numpy", **INNER)
def cells_after(
    enters: NDArray[np.float32], keeps: NDArray[np.float32], new: NDArray[np.float32], c: NDArray[np.float32]
) -> None:
    """Update the cells of one row in place: c = keeps * c + enters * tanh(new).

    Args:
        enters, keeps: [H], the input gate and the forget gate, after the sigmoid.
        new: [H], the new input before its tanh.
        c: [H].
    """
    # tanh(x) = 2 sigmoid(2 x) - 1
    for i in range(len(c)):
        c[i] = keeps[i] * c[i] + enters[i] * (TWO * sigmoid(TWO * new[i]) - ONE)


@kernel(fastmath={"contract"}, error_model="numpy", **INNER)
def states_after(leaves: NDArray[np.float32], c: NDArray[np.float32], h: NDArray[np.float32]) -> None:
    """Fill the states of one row: h = leaves * tanh(c); ``leaves`` [H]: the output gate, after the sigmoid."""
    for i in range(len(h)):
        h[i] = leaves[i] * (TWO * sigmoid(TWO * c[i]) - ONE)


@kernel(error_model="numpy")
def lstm_units(gates: NDArray[np.float32], c: NDArray[np.float32], h: NDArray[np.float32]) -> None:
    """Compute the cells and states of B rows after one step of an LSTM layer.

    Args:
        gates: [B, 4 H], the pre-activations of input gate, forget gate, new input and output gate side by side, the
            order of ``torch.nn.LSTM``; overwritten.
        c: [B, H], the cells before the step; replaced by those after it.
        h: [B, H], filled with the states after the step.
    """
    H = c.shape[1]
    for row in range(len(gates)):
        own = gates[row]
        to_sigmoid(own[: 2 * H])
        to_sigmoid(own[3 * H :])
        cells_after(own[:H], own[H : 2 * H], own[2 * H : 3 * H], c[row])
        states_after(own[3 * H :], c[row], h[row])
