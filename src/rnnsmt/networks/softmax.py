"""What both networks spend their time on: matrix products of rounded factors, and the softmax.

In training the softmax is computed for a few rows at a time while it is still in the processor's cache, its gradient
with it. In scoring only some of its probabilities are asked for: all its units are computed, none is kept.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from rnnsmt.networks.kernels.softmax import add_exponentials, take_units

SOFTMAX_ROWS = 256
"""Rows of the softmax that are computed together on a CPU: few enough to stay in its cache."""

CUDA_SOFTMAX_ROWS = 4096


class Products:
    """Matrix products, of factors that are rounded to ``dtype`` (bfloat16) or left as they are (None).

    Rounded products are rounded too, when they have been summed in float32; what is added to them is not.
    """

    def __init__(self, dtype: torch.dtype | None = None) -> None:
        self.dtype = dtype

    def round(self, x: Tensor) -> Tensor:
        """A factor of several products: rounded once."""
        return x if self.dtype is None else x.to(self.dtype)

    def __call__(self, a: Tensor, b: Tensor) -> Tensor:
        """a @ b, in the type of a parameter."""
        if self.dtype is None:
            return a @ b
        return (a.to(self.dtype) @ b.to(self.dtype)).float()


def put_gradient(parameter: nn.Parameter, gradient: Tensor) -> None:
    """Set the gradient of a parameter in its place."""
    assert parameter.grad is not None
    parameter.grad.copy_(gradient)


class SoftmaxLoss(NamedTuple):
    """Sums over rows, float64 scalars: -ln p of the words; (ln Z)^2, only where it is penalised."""

    loss: Tensor
    squares: Tensor


def softmax_gradient(
    mm: Products, weights: nn.Parameter, biases: nn.Parameter, g: Tensor, words: Tensor, alpha: float = 0.0
) -> tuple[SoftmaxLoss, Tensor]:
    """-sum ln softmax(weights g + biases)[words] + alpha sum (ln Z)^2, with its gradients. g: [P, E], words: [P].

    Z: the sum of exp over the classes, which alpha above 0 draws towards 1 (Devlin et al. 2014). The biases are columns
    of the matrix: rounded to bfloat16 once, and what the rounding lost once more.

    Returns: both sums and the gradient of g; fills those of weights and biases.
    """
    E = g.shape[1]
    bias = mm.round(biases)
    matrix = torch.cat([mm.round(weights), bias[:, None], mm.round(biases - bias)[:, None]], 1)
    extended = torch.cat([mm.round(g), bias.new_ones(len(g), 2)], 1)
    d_matrix = torch.zeros_like(matrix, dtype=g.dtype)
    d_g = torch.empty_like(g)
    chunk = CUDA_SOFTMAX_ROWS if g.is_cuda else SOFTMAX_ROWS
    space = matrix.new_empty(min(chunk, len(g)), len(matrix))
    loss, squares = torch.zeros(2, dtype=torch.float64, device=g.device)
    for begin in range(0, len(g), chunk):
        part, targets = extended[begin : begin + chunk], words[begin : begin + chunk]
        place = torch.arange(len(part), device=g.device), targets
        logits = torch.mm(part, matrix.t(), out=space[: len(part)])
        units = logits[place].double() if alpha else None
        p = torch.softmax(logits, 1, out=logits)
        chosen = p[place]
        logs = chosen.double().clamp_min(1e-38).log()
        loss -= logs.sum()
        if units is not None:
            log_sums = units - logs
            squares += log_sums.square().sum()
            p *= (1 + 2 * alpha * log_sums)[:, None].to(p.dtype)
            chosen = p[place]
        p[place] = chosen - 1
        d_g[begin : begin + chunk] = p @ matrix[:, :E]
        d_matrix += p.t() @ part
    put_gradient(weights, d_matrix[:, :E])
    put_gradient(biases, d_matrix[:, E])
    return SoftmaxLoss(loss, squares), d_g


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
