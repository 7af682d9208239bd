"""What the networks spend their time on: matrix products of rounded factors, and the softmax.

In training the softmax is computed for a few rows at a time while it is still in the processor's cache, its gradient
with it. In scoring only some of its probabilities are asked for: all its units are computed, none is kept.
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rnnsmt.networks.kernels.softmax import add_exponentials, keep_largest, take_units

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

    def add_to(self, total: Tensor, a: Tensor, b: Tensor) -> Tensor:
        """total + a @ b, perhaps in the place of ``total``: on a GPU the product adds to it, a launch less."""
        if total.is_cuda and self.dtype is None:
            return total.addmm_(a, b)
        return self(a, b).add_(total)


def put_gradient(parameter: nn.Parameter, gradient: Tensor) -> None:
    """Set the gradient of a parameter in its place."""
    assert parameter.grad is not None
    parameter.grad.copy_(gradient)


def put_gradients(parameters: Sequence[nn.Parameter], gradients: Sequence[Tensor]) -> None:
    """Set the gradients of several parameters, in one launch on a GPU."""
    torch._foreach_copy_([parameter.grad for parameter in parameters if parameter.grad is not None], list(gradients))


class SoftmaxLoss(NamedTuple):
    """Sums over rows, float64 scalars: -ln p of the words; (ln Z)^2, only where it is penalised."""

    loss: Tensor
    squares: Tensor


class ClassSampler:
    """Draws the classes over which the softmax of a minibatch is summed (Bengio and Senecal 2008; Jean et al. 2015).

    The words of the minibatch, and so many more, drawn with replacement in proportion to their frequency to the power
    of 0.75. A class is among them with probability pi; its exponential counts 1 / pi, but for the class of the row's
    own word, which is there for certain: so the sum has the right expectation.
    """

    def __init__(self, counts: NDArray[np.number], number: int, seed: int) -> None:
        """counts: [classes], how often each is a word of the training data. number: of draws; 0: all classes count."""
        self.number, self.seed = number, seed
        frequencies = torch.from_numpy(counts / counts.sum())
        drawn = torch.from_numpy(counts**0.75 / (counts**0.75).sum())
        self._drawn, self._log_absent = drawn, (torch.log1p(-frequencies), number * torch.log1p(-drawn))

    def draw(self, words: Tensor, first: int) -> tuple[Tensor, Tensor, Tensor] | None:
        """For the words [P] of a minibatch whose first example has this number; the same numbers give the same classes.

        Returns: classes [C], ascending; the place of each word among them [P]; ln pi [C]. None: all classes count.
        """
        if not self.number:
            return None
        # another stream than that of dropout, which begins with the same numbers
        digest = hashlib.blake2b(f"classes {self.seed} {first}".encode(), digest_size=8).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest, "little") >> 1)
        more = torch.multinomial(self._drawn, self.number, replacement=True, generator=generator)
        classes, places = torch.unique(torch.cat([words.cpu(), more]), return_inverse=True)
        batch, draws = (part[classes] for part in self._log_absent)
        log_pi = torch.log(-torch.expm1(len(words) * batch + draws)).float()
        return classes.to(words.device), places[: len(words)].to(words.device), log_pi.to(words.device)


@torch.no_grad()
def softmax_gradient(
    mm: Products,
    weights: nn.Parameter,
    biases: nn.Parameter,
    g: Tensor,
    words: Tensor,
    alpha: float = 0.0,
    sample: tuple[Tensor, Tensor, Tensor] | None = None,
) -> tuple[SoftmaxLoss, Tensor]:
    """-sum ln softmax(weights g + biases)[words] + alpha sum (ln Z)^2, with its gradients. g: [P, E], words: [P].

    Z: the sum of exp over the classes, which alpha above 0 draws towards 1 (Devlin et al. 2014). The biases are columns
    of the matrix: rounded to bfloat16 once, and what the rounding lost once more. sample: the classes that Z is
    estimated from, of ``ClassSampler.draw``; the loss is that of the estimate.

    Returns: both sums and the gradient of g; fills those of weights and biases.
    """
    if sample is None:
        sums, d_g, d_weights, d_biases = _softmax_gradient(mm, weights, biases, g, words, alpha, None)
        put_gradient(weights, d_weights)
        put_gradient(biases, d_biases)
        return sums, d_g
    classes, places, log_pi = sample
    some = weights.index_select(0, classes), biases.index_select(0, classes)
    sums, d_g, d_weights, d_biases = _softmax_gradient(mm, *some, g, places, alpha, log_pi)
    for parameter, part in ((weights, d_weights), (biases, d_biases)):
        assert parameter.grad is not None
        parameter.grad.zero_().index_copy_(0, classes, part.to(parameter.dtype))
    return sums, d_g


def _softmax_gradient(
    mm: Products, weights: Tensor, biases: Tensor, g: Tensor, words: Tensor, alpha: float, log_pi: Tensor | None
) -> tuple[SoftmaxLoss, Tensor, Tensor, Tensor]:
    """As ``softmax_gradient`` over all rows of weights; exponentials count 1 / pi but for the row's own word.

    Returns: both sums, the gradients of g, of weights and of biases.
    """
    E = g.shape[1]
    if log_pi is not None:
        biases = biases - log_pi
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
        if log_pi is not None:
            logits[place] += log_pi[targets].to(logits.dtype)
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
    return SoftmaxLoss(loss, squares), d_g, d_matrix[:, :E], d_matrix[:, E]


COLUMNS = 512
"""Classes whose output units are computed together on a processor: few enough to stay in its cache."""


class ExactSoftmax:
    """softmax(weights g + biases), in float32, for rows of last hidden units g."""

    def __init__(self, weights: Tensor, biases: Tensor) -> None:
        """weights: [classes, E]. biases: [classes]."""
        self.classes = len(biases)
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
        for first, part in self._units(g):
            add_exponentials(part, tops, totals)
            take_units(part, first, owner, classes, chosen)
        return torch.from_numpy(chosen - (np.log(totals) + tops)[owner])

    @torch.inference_mode()
    def best(self, g: Tensor, width: int, least_class: int = 0) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """ln p of the likeliest classes of each row of g [B, E], on a processor, and which they are: [B, width].

        Classes below ``least_class`` are left out, but have their part of the sum. Where fewer are left, ln p is -inf.
        """
        tops, totals = np.full(len(g), -np.inf, np.float32), np.zeros(len(g))
        best, classes = np.full((len(g), width), -np.inf, np.float32), np.zeros((len(g), width), np.int64)
        for first, units in self._units(g):
            add_exponentials(units, tops, totals)
            keep_largest(units, first, least_class, best, classes)
        return best.astype(np.float64) - (np.log(totals) + tops)[:, None], classes

    def _units(self, g: Tensor) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """The output units of g [B, E], some classes at a time: the first of them, and [B, classes]."""
        space = torch.empty(len(g) * COLUMNS)
        first = 0
        for weights, biases in self._parts:
            units = space[: len(g) * len(biases)].view(len(g), len(biases))
            torch.addmm(biases, g, weights, out=units)
            yield first, units.numpy()
            first += len(biases)
