"""The units of an LSTM after its matrix products, compiled: every row by itself."""

import numpy as np
from numpy.typing import NDArray

from rnnsmt.kernels.decorator import INNER, kernel
from rnnsmt.networks.kernels.softmax import LOG2E, power_of_2

ONE, TWO = np.float32(1.0), np.float32(2.0)

MOST = np.float32(126.0)


@kernel(fastmath={"contract"}, error_model="numpy", **INNER)
def sigmoid(x: np.float32) -> np.float32:
    """To 1e-7; nan for nan."""
    y = -x * LOG2E
    return ONE / (ONE + power_of_2(MOST if y > MOST else y))


@kernel(error_model="numpy", **INNER)
def to_sigmoid(x: NDArray[np.float32]) -> None:
    """Replace every number by its sigmoid."""
    for i in range(len(x)):
        x[i] = sigmoid(x[i])


@kernel(fastmath={"contract"}, error_model="numpy", **INNER)
def cells_after(
    enters: NDArray[np.float32], keeps: NDArray[np.float32], new: NDArray[np.float32], c: NDArray[np.float32]
) -> None:
    """c = keeps c + enters tanh(new)."""
    for i in range(len(c)):
        c[i] = keeps[i] * c[i] + enters[i] * (TWO * sigmoid(TWO * new[i]) - ONE)


@kernel(fastmath={"contract"}, error_model="numpy", **INNER)
def states_after(leaves: NDArray[np.float32], c: NDArray[np.float32], h: NDArray[np.float32]) -> None:
    """h = leaves tanh(c)."""
    for i in range(len(h)):
        h[i] = leaves[i] * (TWO * sigmoid(TWO * c[i]) - ONE)


@kernel(error_model="numpy")
def lstm_units(gates: NDArray[np.float32], c: NDArray[np.float32], h: NDArray[np.float32]) -> None:
    """The cells and states of some rows.

    gates: [B, 4 H], the sums of the input gate, the forget gate, the new input and the output gate, as torch.nn.LSTM
    has them; they are overwritten. c: [B, H], the cells before, which are replaced by those after. h: [B, H], filled.
    """
    H = c.shape[1]
    for row in range(len(gates)):
        own = gates[row]
        to_sigmoid(own[: 2 * H])
        to_sigmoid(own[3 * H :])
        cells_after(own[:H], own[H : 2 * H], own[2 * H : 3 * H], c[row])
        states_after(own[3 * H :], c[row], h[row])
