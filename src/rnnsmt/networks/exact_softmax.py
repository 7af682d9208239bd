"""The logarithms of single probabilities of a softmax: all its units are computed, none is kept."""

import numpy as np
import torch
from torch import Tensor

from rnnsmt.networks.softmax_kernels import add_exponentials, take_units

COLUMNS = 512
"""Classes whose output units are computed together on a processor: few enough to stay in its cache."""


class ExactSoftmax:
    """softmax(weights g + biases), in float32, for rows of last hidden units g."""

    def __init__(self, weights: Tensor, biases: Tensor) -> None:
        """weights: [classes, E]. biases: [classes]."""
        columns = len(biases) if biases.is_cuda else COLUMNS
        parts = zip(weights.split(columns), biases.split(columns), strict=True)
        self._parts = [(part.t().contiguous(), bias) for part, bias in parts]

    @torch.inference_mode()
    def log_p(self, g: Tensor, rows: Tensor, words: Tensor) -> Tensor:
        """ln of the probabilities of words [R] on top of g[rows[R]]. g: [B, E]. Returns: float64 [R]."""
        if g.is_cuda:
            ((weights, biases),) = self._parts
            units = torch.addmm(biases, g, weights)
            return units[rows, words].double() - torch.logsumexp(units, 1)[rows]
        owner, classes = rows.numpy(), words.numpy()
        tops, totals = np.full(len(g), -np.inf, np.float32), np.zeros(len(g))
        chosen = np.empty(len(classes), np.float32)
        space = torch.empty(len(g) * COLUMNS)
        first = 0
        for weights, biases in self._parts:
            units = space[: len(g) * len(biases)].view(len(g), len(biases))
            torch.addmm(biases, g, weights, out=units)
            add_exponentials(units.numpy(), tops, totals)
            take_units(units.numpy(), first, owner, classes, chosen)
            first += len(biases)
        return torch.from_numpy(chosen - (np.log(totals) + tops)[owner])
