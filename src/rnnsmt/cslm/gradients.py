"""The loss of a batch of n-grams with a hand-written gradient: the equations of ``model``, faster on a CPU.

The softmax takes nearly all the time; ``softmax_gradient`` computes it with its gradient for a few rows at a time.
"""

import torch
from torch import Tensor

from rnnsmt.cslm.model import FeedForwardLM
from rnnsmt.networks.operations import Dropout, Products, put_gradient
from rnnsmt.networks.softmax import ClassSampler, softmax_gradient


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

    Every parameter must have a ``.grad``, which is overwritten.

    Args:
        model: the network.
        contexts: [B, C], the words before the predicted ones, oldest first.
        words: [B], the words to predict.
        rows: [B], in CPU memory, the numbers of the n-grams, from which dropout and sampler draw.
        mm: the matrix products.
        alpha: weight of the self-normalisation penalty.
        dropout: applied to the projections and both hidden layers.
        sampler: of the classes from which Z is estimated; None: all classes.

    Returns:
        float64 [2]: the sum of -ln p, and that of (ln Z)^2, which is 0 if alpha is 0.
    """
    generators = dropout.generators(rows, contexts.device)
    x = model.R.index_select(0, contexts.flatten()).view(len(contexts), -1)
    # dropout after each layer, in place: x, h and g hold the dropped-out values from here on
    x_factors = _leave_out(dropout, x, generators)
    x = mm.round(x)
    h = model.activation(mm(x, model.W_1.t()).add_(model.b_1))
    h_factors = _leave_out(dropout, h, generators)
    rounded_h = mm.round(h)
    g = model.activation(mm(rounded_h, model.W_2.t()).add_(model.b_2))
    g_factors = _leave_out(dropout, g, generators)

    sample = None if sampler is None else sampler.draw(words, int(rows[0]))
    sums, d_g = softmax_gradient(mm, model.W_o, model.b_o, g, words, alpha, sample)

    # d_a: gradient of the pre-activations, first of the second hidden layer, then of the first
    kind = model.sizes.activation
    d_a = _through(kind, d_g, g, g_factors)
    put_gradient(model.b_2, d_a.sum(0))
    d_a = mm.round(d_a)
    put_gradient(model.W_2, mm(d_a.t(), rounded_h))
    d_a = _through(kind, mm(d_a, model.W_2), h, h_factors)
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
    """Apply dropout to x [B, units] in place; return the factors [B, units], or None."""
    factors = dropout.factors(len(x), x.shape[1], generators)
    if factors is not None:
        x *= factors
    return factors


def _through(activation: str, d: Tensor, units: Tensor, factors: Tensor | None) -> Tensor:
    """Backpropagate d [B, units] through dropout and activation function, in place.

    units: the values after both; a dropped unit is 0 like an inactive rectifier, and its gradient is 0 too.
    """
    if activation == "relu":
        d *= units > 0
        if factors is not None:
            d *= factors
    elif factors is None:
        d *= 1 - units.square()  # tanh' = 1 - tanh^2
    else:
        # a unit is c tanh or 0, its factor c or 0: c (1 - (unit / c)^2) = c - unit^2 / c, and 0 where it is dropped
        d *= factors - units.square() / factors.max().clamp_min(1)
    return d
