"""Step-by-step computation of a trained network, for search and scoring (no gradients).

On a CPU, the rows of a step are computed a few at a time, while these are in the cache, and the input products of the
first layer once per distinct word. The number of rows of every matrix product is a multiple of ``MULTIPLE``: with the
libraries tested, the result of a row is then independent of the other rows, so that scores and translations do not
depend on what else is computed in the same call. On a GPU, the network's own ``encode`` and ``decode`` are used.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rnnsmt.base.kernels.decorator import INNER, kernel
from rnnsmt.networks.exact_softmax import LOG2E, ExactSoftmax, power_of_2
from rnnsmt.seq2seq.model import State, TrainedSeq2Seq
from rnnsmt.seq2seq.sentences import as_read, padded

MULTIPLE = 16
"""Divisor of the number of rows of a product: for a few rows, the libraries use code that sums in another order."""

ROWS = 256
"""Number of rows that are computed together on a CPU."""

CUDA_ROWS = 4096
"""Number of rows whose softmax is computed together on a GPU."""

Ids = NDArray[np.int32]


class Steps:
    """A trained network that is computed one word at a time."""

    def __init__(self, trained: TrainedSeq2Seq) -> None:
        self.trained = trained
        model = trained.model
        self.device = model.W_o.device
        self.softmax = ExactSoftmax(model.W_o, model.b_o)
        self._encoder = _Layers(model.source_embedding, model.encoder)
        self._decoder = _Layers(model.target_embedding, model.decoder)

    @torch.inference_mode()
    def encode(self, sources: Sequence[Ids]) -> State:
        """Compute the initial state of the decoder, [L, B or more, H], for B sources that end in EOS."""
        sources = [as_read(source, self.trained.source_order) for source in sources]
        ids = padded(sources)
        if self.device.type != "cpu":
            return self.trained.model.encode(torch.from_numpy(ids).to(self.device))
        # by descending length: at every step the sources that are still being read are the first rows
        lengths = np.array([len(source) for source in sources])
        order = np.argsort(-lengths, kind="stable")
        state = self._encoder.zeros(_multiple(len(sources)))
        for time, words in enumerate(ids[:, order]):
            active = int(np.count_nonzero(lengths > time))
            after = self._encoder.step(words[:active], np.arange(active), state)
            # the others keep their final state
            state.h[:, :active], state.c[:, :active] = after.h[:, :active], after.c[:, :active]
        return state.select(torch.from_numpy(_filled(np.argsort(order), len(state.h[0]))))

    @torch.inference_mode()
    def step(self, words: NDArray[np.int64], parents: NDArray[np.int64], state: State) -> tuple[Tensor, State]:
        """Let the decoder read one word in each of B states.

        Args:
            words: [B], the words to read.
            parents: [B], the rows of ``state`` to start from.
            state: states of previous steps.

        Returns:
            The states g of the last layer [B or more, H] and the states of all layers; rows from B on are padding.
        """
        if self.device.type == "cpu":
            after = self._decoder.step(words, parents, state)
            return after.h[-1], after
        reads, rows = (torch.from_numpy(part).to(self.device) for part in (words, parents))
        g, after = self.trained.model.decode(reads[None], state.select(rows))
        return g[0], after

    @torch.inference_mode()
    def log_p(self, g: Tensor, nodes: NDArray[np.int64], words: NDArray[np.int64]) -> NDArray[np.float64]:
        """Compute ln p of words [R], each given row ``nodes[r]`` (ascending) of g [B, H] from ``step``; float64 [R]."""
        found = []
        number = ROWS if self.device.type == "cpu" else CUDA_ROWS
        for begin in range(0, len(g), number):
            first, last = np.searchsorted(nodes, [begin, begin + number])
            rows, own = (torch.from_numpy(part).to(g.device) for part in (nodes[first:last] - begin, words[first:last]))
            found.append(self.softmax.log_p(g[begin : begin + number].contiguous(), rows, own).cpu().numpy())
        return np.concatenate(found)

    def best(self, g: Tensor, width: int, least_class: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Compute ``ExactSoftmax.best`` of g [B, H] from ``step``, on a CPU."""
        parts = [self.softmax.best(g[begin : begin + ROWS], width, least_class) for begin in range(0, len(g), ROWS)]
        values, classes = zip(*parts, strict=True)
        return np.concatenate(values), np.concatenate(classes)


class _Layers:
    """A stack of LSTM layers with a word embedding, on a CPU."""

    def __init__(self, embedding: Tensor, layers: nn.ModuleList) -> None:
        """Take the parameters of an embedding [classes, E] and of ``nn.LSTM`` modules with one layer each."""
        self.embedding = embedding.detach()
        parameters = [[parameter.detach() for parameter in lstm.parameters()] for lstm in layers]
        self.weights = [(W.t(), U.t()) for W, U, _, _ in parameters]
        # ``nn.LSTM`` adds two biases, one of the inputs and one of the states
        self.biases = [own + other for _, _, own, other in parameters]
        self.hidden = len(self.biases[0]) // 4

    def zeros(self, rows: int) -> State:
        """Return the state before the first word."""
        return State(*(torch.zeros(len(self.biases), rows, self.hidden) for _ in range(2)))

    def step(self, words: NDArray[np.int64], parents: NDArray[np.int64], state: State) -> State:
        """Compute the state [L, B or more, H] after words [B] read in the rows ``parents`` [B] of ``state``."""
        number = _multiple(len(words))
        words, parents = (_filled(part, number) for part in (words, parents))
        inputs, which = self._inputs(words)
        h, c = (torch.empty(len(self.biases), number, self.hidden) for _ in range(2))
        # all layers of a block of rows before the next block, while the rows are in the cache
        for begin in range(0, number, ROWS):
            end = min(begin + ROWS, number)
            rows = torch.from_numpy(parents[begin:end])
            x = torch.empty(0)  # output of the previous layer, unused in the first
            for layer, ((W, U), b) in enumerate(zip(self.weights, self.biases, strict=True)):
                own_h, own_c = h[layer, begin:end], c[layer, begin:end]
                gates = torch.addmm(b, x, W) if layer else inputs.index_select(0, which[begin:end])
                gates.addmm_(state.h[layer].index_select(0, rows), U)
                torch.index_select(state.c[layer], 0, rows, out=own_c)
                lstm_units(gates.numpy(), own_c.numpy(), own_h.numpy())
                x = own_h
        return State(h, c)

    def _inputs(self, words: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        """Compute the input products of the first layer for D distinct words, [D, 4 H], and the row of each word."""
        distinct, which = np.unique(words, return_inverse=True)
        (W, _), b = self.weights[0], self.biases[0]
        distinct = _filled(distinct, _multiple(len(distinct)))
        x = self.embedding.index_select(0, torch.from_numpy(distinct))
        return torch.addmm(b, x, W), torch.from_numpy(which)


def _multiple(number: int) -> int:
    """Round up to a multiple of ``MULTIPLE``."""
    return -(-number // MULTIPLE) * MULTIPLE


def _filled(numbers: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    """Pad numbers [B] with 0 to ``length``."""
    return np.concatenate([numbers, np.zeros(length - len(numbers), np.int64)])


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
