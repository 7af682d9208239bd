"""Loss and gradient of the softmax in training.

The softmax takes most of the training time of all networks. Loss and gradient are computed together, for a few rows at
a time so that these remain in the CPU cache. The sum is over all classes or over a sample of them.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from rnnsmt.networks.draws import ClassSample

SOFTMAX_ROWS = 256
"""Number of rows of the softmax that are computed together on a CPU: few enough for the CPU cache."""

CUDA_SOFTMAX_ROWS = 4096


class SoftmaxLoss(NamedTuple):
    """Sum of -ln p and sum of (ln Z)^2 over all rows, float64 scalars; the latter is 0 if alpha is 0."""

    loss: Tensor
    squares: Tensor


@torch.no_grad()
def softmax_gradient(
    weights: nn.Parameter,
    biases: nn.Parameter,
    g: Tensor,
    words: Tensor,
    dtype: torch.dtype | None = None,
    alpha: float = 0.0,
    sample: ClassSample | None = None,
    counted: Tensor | None = None,
) -> tuple[SoftmaxLoss, Tensor]:
    """Compute -sum ln softmax(weights g + biases)[words] + alpha sum (ln Z)^2 and its gradients.

    Z is the sum of exp over the classes; with alpha above 0, training moves it towards 1 (self-normalisation, Devlin et
    al. 2014). The gradients of weights and biases are filled.

    Args:
        weights, biases: [classes, E] and [classes].
        g: [P, E], the last hidden layer.
        words: [P], the classes to predict.
        dtype: type to which the factors of matrix products are rounded; None: they are not rounded.
        alpha: weight of the penalty on ln Z.
        sample: classes from which Z is estimated for loss and gradient; None: Z is the sum over all classes.
        counted: bool [P], False for rows of padding, whose loss and gradients are 0; None: there are none.

    Returns:
        The sums of -ln p and (ln Z)^2, and the gradient of g [P, E].
    """
    dtype, E = dtype or g.dtype, g.shape[1]
    W, b = weights.data, biases.data
    if sample is not None:
        W, b, words = W.index_select(0, sample.classes), b.index_select(0, sample.classes), sample.places
        b = b - sample.log_pi  # gives exp(unit) the weight 1 / pi; corrected for the word of a row below
    # the biases are two more columns, the rounded values and the rounding errors, so they keep 16 significant bits
    bias = b.to(dtype)
    matrix = torch.cat([W.to(dtype), bias[:, None], (b - bias).to(dtype)[:, None]], 1)
    extended = torch.cat([g.to(dtype), bias.new_ones(len(g), 2)], 1)
    padding = None if counted is None else ~counted
    if padding is not None:
        extended.masked_fill_(padding[:, None], 0)  # so d loss / d matrix is 0
    d_matrix, d_g = torch.empty(0), torch.empty_like(g)
    chunk = CUDA_SOFTMAX_ROWS if g.is_cuda else SOFTMAX_ROWS
    # one buffer [rows, classes] for logits, p and d loss / d logits of all chunks
    space = matrix.new_empty(min(chunk, len(g)), len(matrix))
    loss, squares = torch.zeros(2, dtype=torch.float64, device=g.device)
    for begin in range(0, len(g), chunk):
        rows, targets = extended[begin : begin + chunk], words[begin : begin + chunk]
        index = torch.arange(len(rows), device=g.device), targets
        logits = torch.mm(rows, matrix.t(), out=space[: len(rows)])
        if sample is not None:
            # the word of a row has the weight 1
            logits[index] += sample.log_pi[targets].to(logits.dtype)
        units = logits[index].double() if alpha else None  # before softmax overwrites them: ln Z = unit - ln p
        p = torch.softmax(logits, 1, out=logits)
        chosen = p[index]
        logs = chosen.double().clamp_min(1e-38).log()
        if padding is not None:
            logs.masked_fill_(padding[begin : begin + chunk], 0)
        loss -= logs.sum()
        if units is not None:
            log_sums = units - logs
            if padding is not None:
                log_sums.masked_fill_(padding[begin : begin + chunk], 0)
            squares += log_sums.square().sum()
            # d (-ln p_w + alpha (ln Z)^2) / d unit_i = (1 + 2 alpha ln Z) p_i - [i = w]
            p *= (1 + 2 * alpha * log_sums)[:, None].to(p.dtype)
            chosen = p[index]
        p[index] = chosen - 1
        d_g[begin : begin + chunk] = p @ matrix[:, :E]
        part = p.t() @ rows
        d_matrix = d_matrix.add_(part) if begin else part.to(g.dtype)
    if padding is not None:
        d_g.masked_fill_(padding[:, None], 0)
    for parameter, gradient in ((weights, d_matrix[:, :E]), (biases, d_matrix[:, E])):
        assert parameter.grad is not None
        if sample is None:
            parameter.grad.copy_(gradient)
        else:
            # on a GPU, classes may be repeated; the gradient of all but one of the copies is 0
            into = parameter.grad.zero_()
            put = into.index_add_ if into.is_cuda else into.index_copy_
            put(0, sample.classes, gradient.to(into.dtype))
    return SoftmaxLoss(loss, squares), d_g
