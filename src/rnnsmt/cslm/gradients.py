"""The loss of a batch of n-grams and its gradient, written by hand: the equations of ``model``, faster on a CPU.

Nearly all work is the softmax, which ``softmax_gradient`` computes a few rows at a time, its gradient with it.
"""

import torch
from torch import Tensor

from rnnsmt.cslm.model import FeedForwardLM
from rnnsmt.networks.dropout import Dropout
from rnnsmt.networks.softmax import ClassSampler, Products, put_gradient, softmax_gradient


@torch.no_grad()
def loss_and_gradient(
    model: FeedForwardLM,
    contexts: Tensor,
    words: Tensor,
    rows: Tensor,
    mm: Products,
    alpha: float,
    dropout: Dropout,
    sampler: ClassSampler | None = None,
) -> Tensor:
    """Fill ``.grad`` of every parameter with the gradient of sum(-ln p(word | context) + alpha (ln Z)^2).

    contexts: [B, C], words, rows: [B]; rows are the numbers of the n-grams, on the processor, see ``Dropout``. Every
    parameter must have its ``.grad``; what it held is replaced. mm: how matrices are multiplied. sampler: of the
    classes from which Z is estimated, if not from all. Returns float64 [2]: the sum of -ln p, and of (ln Z)^2 if alpha
    is not 0.
    """
    generators = dropout.generators(rows, contexts.device)
    x = model.R.index_select(0, contexts.flatten()).view(len(contexts), -1)
    x_factors = _leave_out(dropout, x, generators)
    x = mm.round(x)
    h = mm(x, model.W_1.t()).add_(model.b_1).relu_()
    h_factors = _leave_out(dropout, h, generators)
    rounded_h = mm.round(h)
    g = mm(rounded_h, model.W_2.t()).add_(model.b_2).relu_()
    g_factors = _leave_out(dropout, g, generators)

    sample = None if sampler is None else sampler.draw(words, int(rows[0]))
    sums, d_g = softmax_gradient(mm, model.W_o, model.b_o, g, words, alpha, sample)

    d_a = _through(d_g, g, g_factors)
    put_gradient(model.b_2, d_a.sum(0))
    d_a = mm.round(d_a)
    put_gradient(model.W_2, mm(d_a.t(), rounded_h))
    d_a = _through(mm(d_a, model.W_2), h, h_factors)
    put_gradient(model.b_1, d_a.sum(0))
    d_a = mm.round(d_a)
    put_gradient(model.W_1, mm(d_a.t(), x))
    d_x = mm(d_a, model.W_1)
    if x_factors is not None:
        d_x *= x_factors
    assert model.R.grad is not None
    model.R.grad.zero_().index_add_(0, contexts.flatten(), d_x.view(-1, model.R.shape[1]))
    return torch.stack(sums)


def _leave_out(dropout: Dropout, x: Tensor, generators: list[torch.Generator]) -> Tensor | None:
    """Leave out units of x [B, units], in place; the factors of its elements, or None."""
    factors = dropout.factors(len(x), x.shape[1], generators)
    if factors is not None:
        x *= factors
    return factors


def _through(d: Tensor, units: Tensor, factors: Tensor | None) -> Tensor:
    """The gradient before a rectifier and the dropout behind it: in place, where the units are above 0."""
    d *= units > 0
    if factors is not None:
        d *= factors
    return d
