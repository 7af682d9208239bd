"""A trained network computed one word at a time, for search and scores, where nothing is learnt from the result.

On a processor the rows of a step are computed a few at a time, while they are in its cache, the products of the first
layer's inputs once for every different word. The matrix products have numbers of rows that are multiples of
``MULTIPLE``: the same row then comes out the same whatever it stands beside, with the libraries that this was tried
with, so that scores and translations do not depend on what else is computed together. On a GPU it is the network's own
``encode`` and ``decode``.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rnnsmt.networks.kernels.lstm import lstm_units
from rnnsmt.networks.softmax import ExactSoftmax
from rnnsmt.seq2seq.model import State, TrainedSeq2Seq
from rnnsmt.seq2seq.sentences import as_read, padded

MULTIPLE = 16
"""Of rows in a product: the libraries' code for a handful of rows adds up in another order."""

ROWS = 256
"""Rows that are computed together."""

CUDA_ROWS = 4096
"""Rows whose softmax is computed together on a GPU."""

Ids = NDArray[np.int32]


class Steps:
    """A trained network."""

    def __init__(self, trained: TrainedSeq2Seq) -> None:
        self.trained = trained
        model = trained.model
        self.device = model.W_o.device
        self.softmax = ExactSoftmax(model.W_o, model.b_o)
        self._encoder = _Layers(model.source_embedding, model.encoder)
        self._decoder = _Layers(model.target_embedding, model.decoder)

    @torch.inference_mode()
    def encode(self, sources: Sequence[Ids]) -> State:
        """The decoder's first state for sources that end in EOS, [L, at least as many, H]."""
        sources = [as_read(source, self.trained.source_order) for source in sources]
        ids = padded(sources)
        if self.device.type != "cpu":
            return self.trained.model.encode(torch.from_numpy(ids).to(self.device))
        # the longest first: those that are read at a time are the first of all
        lengths = np.array([len(source) for source in sources])
        order = np.argsort(-lengths, kind="stable")
        state = self._encoder.zeros(_multiple(len(sources)))
        for time, words in enumerate(ids[:, order]):
            active = int(np.count_nonzero(lengths > time))
            after = self._encoder.step(words[:active], np.arange(active), state)
            state.h[:, :active], state.c[:, :active] = after.h[:, :active], after.c[:, :active]
        return state.select(torch.from_numpy(_filled(np.argsort(order), len(state.h[0]))))

    @torch.inference_mode()
    def step(self, words: NDArray[np.int64], parents: NDArray[np.int64], state: State) -> tuple[Tensor, State]:
        """The decoder reads a word on top of some of the states: words and parents, the states' rows, [B].

        Returns: the last layer's states g [at least B, H] and all layers'; rows from B on mean nothing.
        """
        if self.device.type == "cpu":
            after = self._decoder.step(words, parents, state)
            return after.h[-1], after
        reads, rows = (torch.from_numpy(part).to(self.device) for part in (words, parents))
        g, after = self.trained.model.decode(reads[None], state.select(rows))
        return g[0], after

    @torch.inference_mode()
    def log_p(self, g: Tensor, nodes: NDArray[np.int64], words: NDArray[np.int64]) -> NDArray[np.float64]:
        """ln p of words [R] on top of g[nodes[R]], nodes ascending; g [B, H] as ``step`` gives it."""
        found = []
        number = ROWS if self.device.type == "cpu" else CUDA_ROWS
        for begin in range(0, len(g), number):
            first, last = np.searchsorted(nodes, [begin, begin + number])
            rows, own = (torch.from_numpy(part).to(g.device) for part in (nodes[first:last] - begin, words[first:last]))
            found.append(self.softmax.log_p(g[begin : begin + number].contiguous(), rows, own).cpu().numpy())
        return np.concatenate(found)

    def best(self, g: Tensor, width: int, least_class: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """``ExactSoftmax.best`` of g [B, H] as ``step`` gives it, on a processor."""
        parts = [self.softmax.best(g[begin : begin + ROWS], width, least_class) for begin in range(0, len(g), ROWS)]
        values, classes = zip(*parts, strict=True)
        return np.concatenate(values), np.concatenate(classes)


class _Layers:
    """A stack of LSTMs on top of embedded words, on a processor."""

    def __init__(self, embedding: Tensor, layers: nn.ModuleList) -> None:
        """embedding: [classes, E]. layers: of ``nn.LSTM`` with one layer each."""
        self.embedding = embedding.detach()
        parameters = [[parameter.detach() for parameter in lstm.parameters()] for lstm in layers]
        self.weights = [(W.t(), U.t()) for W, U, _, _ in parameters]
        self.biases = [own + other for _, _, own, other in parameters]
        self.hidden = len(self.biases[0]) // 4

    def zeros(self, rows: int) -> State:
        """The state before the first word."""
        return State(*(torch.zeros(len(self.biases), rows, self.hidden) for _ in range(2)))

    def step(self, words: NDArray[np.int64], parents: NDArray[np.int64], state: State) -> State:
        """The state after words [B] that are read in the states with the numbers parents [B]: [L, multiple, H]."""
        number = _multiple(len(words))
        words, parents = (_filled(part, number) for part in (words, parents))
        inputs, which = self._inputs(words)
        h, c = (torch.empty(len(self.biases), number, self.hidden) for _ in range(2))
        for begin in range(0, number, ROWS):
            end = min(begin + ROWS, number)
            rows = torch.from_numpy(parents[begin:end])
            x = torch.empty(0)
            for layer, ((W, U), b) in enumerate(zip(self.weights, self.biases, strict=True)):
                own_h, own_c = h[layer, begin:end], c[layer, begin:end]
                gates = torch.addmm(b, x, W) if layer else inputs.index_select(0, which[begin:end])
                gates.addmm_(state.h[layer].index_select(0, rows), U)
                torch.index_select(state.c[layer], 0, rows, out=own_c)
                lstm_units(gates.numpy(), own_c.numpy(), own_h.numpy())
                x = own_h
        return State(h, c)

    def _inputs(self, words: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        """What the gates of the first layer get from different words, [D, 4 H], and which of them each word is."""
        distinct, which = np.unique(words, return_inverse=True)
        (W, _), b = self.weights[0], self.biases[0]
        distinct = _filled(distinct, _multiple(len(distinct)))
        x = self.embedding.index_select(0, torch.from_numpy(distinct))
        return torch.addmm(b, x, W), torch.from_numpy(which)


def _multiple(number: int) -> int:
    """The next multiple of ``MULTIPLE``."""
    return -(-number // MULTIPLE) * MULTIPLE


def _filled(numbers: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    """Numbers [B] with 0 behind them."""
    return np.concatenate([numbers, np.zeros(length - len(numbers), np.int64)])
