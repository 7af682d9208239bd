"""The softmax: its loss and gradient in training, and exact probabilities in scoring and search.

In training it takes most of the time of all networks. Loss and gradient are computed together for a few rows at a time,
while these are in the CPU cache; optionally over a sample of the classes.

In scoring and search few probabilities of a row are requested. All output units are computed, a block of classes at a
time, by compiled kernels, but none is kept. Each row is computed separately, and the order of its sums depends only on
its length: a score is bit-identical regardless of the other rows that are computed in the same call.
"""

import threading
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rnnsmt.base.kernels.decorator import INNER, kernel
from rnnsmt.networks.draws import ClassSample

SOFTMAX_ROWS = 256
"""Number of rows of the softmax that are computed together on a CPU: few enough for its cache."""

CUDA_SOFTMAX_ROWS = 4096


class SoftmaxLoss(NamedTuple):
    """Sums over rows, float64 scalars: -ln p of the words, and (ln Z)^2, which is 0 unless it is penalised."""

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
        sample: of the classes: Z is estimated from these, and the loss is that of the estimate.
        counted: bool [P], False for rows of padding, whose loss and gradients are 0; None: there are none.

    Returns:
        The sums of -ln p and (ln Z)^2, and the gradient of g [P, E].
    """
    dtype, E = dtype or g.dtype, g.shape[1]
    W, b = weights.data, biases.data
    if sample is not None:
        W, b, words = W.index_select(0, sample.classes), b.index_select(0, sample.classes), sample.places
        b = b - sample.log_pi  # exp(unit) / pi, except that of the word of a row, see below
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


COLUMNS = 512
"""Number of classes whose output units are computed together on a CPU: few enough for its cache."""


KEPT_ROWS = 1024
"""Number of rows of the buffer for output units that a thread keeps, which has 2 MB."""


class ExactSoftmax:
    """Softmax(weights g + biases) in float32, for rows g of the last hidden layer."""

    def __init__(self, weights: Tensor, biases: Tensor) -> None:
        """Split the output layer, weights [classes, E] and biases [classes], into blocks of classes on a CPU."""
        self.classes = len(biases)
        columns = len(biases) if biases.is_cuda else COLUMNS
        parts = zip(weights.split(columns), biases.split(columns), strict=True)
        self._parts = [(block.detach().t().contiguous(), bias.detach()) for block, bias in parts]
        self._buffers = threading.local()

    @torch.inference_mode()
    def log_p(self, g: Tensor, rows: Tensor, words: Tensor) -> Tensor:
        """Compute ln p of words [R], each given row ``rows[r]`` of g [B, E]; return float64 [R]."""
        if g.is_cuda:
            ((weights, biases),) = self._parts
            units = torch.addmm(biases, g, weights)
            return units[rows, words].double() - torch.logsumexp(units, 1)[rows]
        owner, classes = rows.numpy(), words.numpy()
        tops, totals = np.full(len(g), -np.inf, np.float32), np.zeros(len(g))
        chosen = np.empty(len(classes), np.float32)
        for first, block, biases in self._units(g):
            add_exponentials(block, biases, tops, totals)
            take_units(block, first, owner, classes, chosen)
        return torch.from_numpy(chosen - (np.log(totals) + tops)[owner])

    @torch.inference_mode()
    def best(self, g: Tensor, width: int, least_class: int = 0) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Find the ``width`` most probable classes of each row of g [B, E], on a CPU.

        Classes below ``least_class`` are not returned, but are part of the sum of the softmax.

        Returns:
            ln p, descending, and the classes, both [B, width]; ln p is -inf where there are fewer classes.
        """
        tops, totals = np.full(len(g), -np.inf, np.float32), np.zeros(len(g))
        best, classes = np.full((len(g), width), -np.inf, np.float32), np.zeros((len(g), width), np.int64)
        for first, units, biases in self._units(g):
            add_exponentials(units, biases, tops, totals)
            keep_largest(units, first, least_class, best, classes)
        return best.astype(np.float64) - (np.log(totals) + tops)[:, None], classes

    def _units(self, g: Tensor) -> Iterator[tuple[int, NDArray[np.float32], NDArray[np.float32]]]:
        """Yield the output units of g [B, E], without biases, for one block of classes at a time.

        Yields:
            The first class, the units [B, classes] and the biases [classes]. The units are a view of a buffer of the
            thread, which the next block overwrites: a new buffer for every g would take 10 % of the time of the
            products, because the operating system clears its pages.
        """
        space: Tensor | None = getattr(self._buffers, "space", None)
        if space is None or len(g) > KEPT_ROWS:
            space = torch.empty(max(len(g), KEPT_ROWS) * COLUMNS)
        if len(g) <= KEPT_ROWS:
            self._buffers.space = space
        first = 0
        for weights, biases in self._parts:
            units = space[: len(g) * len(biases)].view(len(g), len(biases))
            # not addmm, which first copies the biases to every row, in 25 % of the time of the product
            torch.mm(g, weights, out=units)
            yield first, units.numpy(), biases.numpy()
            first += len(biases)


LANES = 64
"""Number of classes in a block that is skipped if its largest unit is too small."""

LOG2E = np.float32(1.4426950408889634)

ONE, LEAST = np.float32(1.0), np.float32(-126.0)

TO_WHOLE = np.float32(1.5 * 2**23)
"""Rounding constant: x + TO_WHOLE, for |x| <= 2^22, has x rounded to an integer in the lowest bits of its mantissa, in
two's complement."""

C1, C2, C3 = np.float32(0.6931472), np.float32(0.24022646), np.float32(0.05550329)

C4, C5, C6 = np.float32(0.00961852), np.float32(0.001339986), np.float32(0.00015337577)
"""Coefficients of the polynomial 1 + C1 f + C2 f^2 + ..., which is 2^f for f in [-1/2, 1/2] with an error of 2e-8."""


@kernel(fastmath={"contract"}, **INNER)
def power_of_2(y: np.float32) -> np.float32:
    """Return 2^y for y below 128; 2^-126 for y below -126; NaN for NaN.

    2^y = 2^n 2^f with y rounded to an integer n and f = y - n in [-1/2, 1/2]: a polynomial gives 2^f, and n is added to
    its exponent bits. There are no branches or table look-ups, so loops over it vectorise.
    """
    # fastmath without "reassoc": it would cancel the addition and subtraction of TO_WHOLE
    y = LEAST if y < LEAST else y  # 2^-126 is the smallest normal number: a lower n would overflow into the sign bit
    shifted = y + TO_WHOLE
    f = y - (shifted - TO_WHOLE)
    factor = ONE + f * (C1 + f * (C2 + f * (C3 + f * (C4 + f * (C5 + f * C6)))))
    # the shift moves the lowest 9 bits of ``shifted``, which are n, to the exponent, and discards all other bits
    exponent = np.int32(np.float32(shifted).view(np.int32) << np.int32(23))
    return np.int32(np.float32(factor).view(np.int32) + exponent).view(np.float32)


@kernel(fastmath={"reassoc", "contract"}, **INNER)
def dot(a: NDArray[np.float32], b: NDArray[np.float32]) -> np.float32:
    """Return the dot product of two rows; the order of summation depends on their length alone."""
    total = np.float32(0.0)
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@kernel(fastmath={"reassoc", "contract"}, **INNER)
def exp_sum(x: NDArray[np.float32], top: np.float32) -> np.float32:
    """Return the sum of exp(x - top); ``top`` must be at least the largest x."""
    total = np.float32(0.0)
    for i in range(len(x)):
        total += power_of_2((x[i] - top) * LOG2E)
    return total


@kernel(**INNER)
def largest(x: NDArray[np.float32]) -> np.float32:
    """Return the largest number of a row without NaN.

    The bits are compared as integers: unlike a maximum of floats, which must respect NaN, this vectorises. The bits of
    positive numbers are in the order of the numbers; those of negative ones, whose order is reversed, get all bits but
    the sign inverted. The same inversion restores the result.
    """
    top = np.int32(-(2**31))
    for i in range(len(x)):
        bits = np.float32(x[i]).view(np.int32)
        top = max(top, np.int32(bits ^ ((bits >> np.int32(31)) & np.int32(2**31 - 1))))
    return np.int32(top ^ ((top >> np.int32(31)) & np.int32(2**31 - 1))).view(np.float32)


@kernel()
def add_exponentials(
    units: NDArray[np.float32], biases: NDArray[np.float32], tops: NDArray[np.float32], totals: NDArray[np.float64]
) -> None:
    """Add the exponentials of a block of classes to running sums; the sum of row i is exp(tops[i]) totals[i].

    Args:
        units: [B, classes], the output units of the block without their biases, which are added in place.
        biases: [classes].
        tops: [B], the largest unit so far; -inf before the first block.
        totals: [B], the sum of exp(unit - top) so far; 0 before the first block.
    """
    for row in range(len(units)):
        unit = units[row]
        for i in range(len(unit)):
            unit[i] += biases[i]
        top = largest(unit)
        if top > tops[row]:
            # rescale the sum to the new maximum; in the first block the factor is exp(-inf) = 0
            totals[row] *= np.exp(np.float64(tops[row]) - np.float64(top))
            tops[row] = top
        totals[row] += np.float64(exp_sum(unit, tops[row]))


@kernel()
def take_units(
    units: NDArray[np.float32], first: int, rows: NDArray[np.int64], words: NDArray[np.int64], out: NDArray[np.float32]
) -> None:
    """Copy the requested units of a block of classes: out[r] = units[rows[r], words[r] - first].

    Args:
        units: [B, classes], the output units of the classes from ``first`` on.
        rows, words: [R], row and class of every request; a request for a class of another block is skipped.
        out: [R].
    """
    classes = units.shape[1]
    for r in range(len(words)):
        word = words[r] - first
        if 0 <= word < classes:
            out[r] = units[rows[r], word]


@kernel()
def keep_largest(
    units: NDArray[np.float32], first: int, least_class: int, best: NDArray[np.float32], classes: NDArray[np.int64]
) -> None:
    """Update the ``width`` largest units of each row with those of a block of classes.

    Args:
        units: [B, classes], the output units of the classes from ``first`` on.
        least_class: lower classes are ignored.
        best: [B, width], the largest units so far, descending; -inf before the first block.
        classes: [B, width], their classes; of equal units the lower class comes first; 0 before the first block.
    """
    width = best.shape[1]
    for row in range(len(units)):
        unit, values, names = units[row], best[row], classes[row]
        for begin in range(0, len(unit), LANES):
            # most blocks contain no large enough unit: ``largest`` vectorises, the insertion below does not
            if not largest(unit[begin : begin + LANES]) > values[width - 1]:
                continue
            for i in range(begin, min(begin + LANES, len(unit))):
                x = unit[i]
                if x > values[width - 1] and first + i >= least_class:
                    # insertion; strict comparisons, since classes ascend, keep the lower one first among equal units
                    index = width - 1
                    while index > 0 and values[index - 1] < x:
                        values[index], names[index] = values[index - 1], names[index - 1]
                        index -= 1
                    values[index], names[index] = x, first + i
