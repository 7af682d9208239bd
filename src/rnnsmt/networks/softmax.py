"""Matrix products of rounded factors and the softmax, which take most of the time of all networks.

In training, the softmax and its gradient are computed together, for a few rows at a time while these are in the CPU
cache. In scoring, few probabilities of a row are requested: all output units are computed, but none is kept.
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
"""Number of rows of the softmax that are computed together on a CPU: few enough for its cache."""

CUDA_SOFTMAX_ROWS = 4096


class Products:
    """Matrix products of factors that are rounded to ``dtype`` (bfloat16), or not rounded (None).

    Products of rounded factors are summed in float32 and the result is rounded as well; what is added later is not.
    """

    def __init__(self, dtype: torch.dtype | None = None) -> None:
        self.dtype = dtype

    def round(self, x: Tensor) -> Tensor:
        """Round a factor that is used in several products, so that it is rounded only once."""
        return x if self.dtype is None else x.to(self.dtype)

    def __call__(self, a: Tensor, b: Tensor) -> Tensor:
        """Compute a @ b, float32."""
        if self.dtype is None:
            return a @ b
        return (a.to(self.dtype) @ b.to(self.dtype)).float()

    def add_to(self, total: Tensor, a: Tensor, b: Tensor) -> Tensor:
        """Compute total + a @ b, which may overwrite ``total``: on a GPU this saves a kernel launch."""
        if total.is_cuda and self.dtype is None:
            return total.addmm_(a, b)
        return self(a, b).add_(total)


def put_gradient(parameter: nn.Parameter, gradient: Tensor) -> None:
    """Copy a gradient into the existing ``.grad`` of a parameter, which may be a view of a flat tensor."""
    assert parameter.grad is not None
    parameter.grad.copy_(gradient)


def put_gradients(parameters: Sequence[nn.Parameter], gradients: Sequence[Tensor]) -> None:
    """Copy gradients into the existing ``.grad`` of several parameters, in one launch on a GPU."""
    torch._foreach_copy_([parameter.grad for parameter in parameters if parameter.grad is not None], list(gradients))


class SoftmaxLoss(NamedTuple):
    """Sums over rows, float64 scalars: -ln p of the words, and (ln Z)^2, which is 0 unless it is penalised."""

    loss: Tensor
    squares: Tensor


class ClassSampler:
    """Sampler of the classes for the softmax of a minibatch (Bengio and Senecal 2008; Jean et al. 2015).

    The sample consists of the words of the minibatch and of ``number`` draws with replacement, with probabilities
    proportional to frequency^0.75. If pi is the probability that a class is in the sample, its exponential gets the
    weight 1 / pi, except in the rows whose own word it is, where it is in the sample for certain. The estimate of Z is
    then unbiased.
    """

    def __init__(self, counts: NDArray[np.number], number: int, seed: int) -> None:
        """Compute the probabilities of the draws.

        Args:
            counts: [classes], frequency of each class in the training data.
            number: number of draws; 0: no sampling, all classes are summed.
            seed: seed of the draws.
        """
        self.number, self.seed = number, seed
        frequencies = torch.from_numpy(counts / counts.sum())
        drawn = torch.from_numpy(counts**0.75 / (counts**0.75).sum())
        self._drawn, self._log_absent = drawn, (torch.log1p(-frequencies), number * torch.log1p(-drawn))

    def draw(self, words: Tensor, first: int) -> tuple[Tensor, Tensor, Tensor] | None:
        """Draw the classes for the words [P] of a minibatch; the same seed and ``first`` give the same draws.

        Args:
            words: [P], the words to predict.
            first: the index of the first example of the minibatch.

        Returns:
            The classes [C], ascending; the index among them of each word [P]; ln pi [C]. None: all classes are summed.
        """
        if not self.number:
            return None
        # hashed, so that the stream differs from that of dropout, whose seeds are derived from the same numbers
        digest = hashlib.blake2b(f"classes {self.seed} {first}".encode(), digest_size=8).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest, "little") >> 1)
        more = torch.multinomial(self._drawn, self.number, replacement=True, generator=generator)
        classes, places = torch.unique(torch.cat([words.cpu(), more]), return_inverse=True)
        # 1 - pi = P(not among the words of the minibatch) P(in no draw)
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
    """Compute -sum ln softmax(weights g + biases)[words] + alpha sum (ln Z)^2 and its gradients.

    Z is the sum of exp over the classes; alpha above 0 draws it towards 1 (self-normalisation, Devlin et al. 2014).
    Fills the gradients of weights and biases.

    Args:
        mm: the matrix products.
        weights, biases: [classes, E] and [classes].
        g: [P, E], the last hidden layer.
        words: [P], the classes to predict.
        alpha: weight of the penalty on ln Z.
        sample: the result of ``ClassSampler.draw``: Z is estimated from these classes, and the loss is that of the
            estimate.

    Returns:
        The sums of -ln p and (ln Z)^2, and the gradient of g [P, E].
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
    """Compute ``softmax_gradient`` over all rows of ``weights``.

    log_pi: None, or ln pi [classes]: exponentials get the weight 1 / pi, except that of the word of a row.

    Returns:
        Both sums; the gradients of g, weights and biases.
    """
    E = g.shape[1]
    if log_pi is not None:
        biases = biases - log_pi  # exp(unit) / pi
    # the biases are two more columns, rounded to bfloat16 and the rounding error, so that they keep 16 significant bits
    bias = mm.round(biases)
    matrix = torch.cat([mm.round(weights), bias[:, None], mm.round(biases - bias)[:, None]], 1)
    extended = torch.cat([mm.round(g), bias.new_ones(len(g), 2)], 1)
    d_matrix = torch.zeros_like(matrix, dtype=g.dtype)
    d_g = torch.empty_like(g)
    chunk = CUDA_SOFTMAX_ROWS if g.is_cuda else SOFTMAX_ROWS
    # one buffer [rows, classes] for logits, p and d loss / d logits of all chunks
    space = matrix.new_empty(min(chunk, len(g)), len(matrix))
    loss, squares = torch.zeros(2, dtype=torch.float64, device=g.device)
    for begin in range(0, len(g), chunk):
        part, targets = extended[begin : begin + chunk], words[begin : begin + chunk]
        place = torch.arange(len(part), device=g.device), targets
        logits = torch.mm(part, matrix.t(), out=space[: len(part)])
        if log_pi is not None:
            # the word of a row has the weight 1
            logits[place] += log_pi[targets].to(logits.dtype)
        units = logits[place].double() if alpha else None  # before softmax overwrites them: ln Z = unit - ln p
        p = torch.softmax(logits, 1, out=logits)
        chosen = p[place]
        logs = chosen.double().clamp_min(1e-38).log()
        loss -= logs.sum()
        if units is not None:
            log_sums = units - logs
            squares += log_sums.square().sum()
            # d (-ln p_w + alpha (ln Z)^2) / d unit_i = (1 + 2 alpha ln Z) p_i - [i = w]
            p *= (1 + 2 * alpha * log_sums)[:, None].to(p.dtype)
            chosen = p[place]
        p[place] = chosen - 1
        d_g[begin : begin + chunk] = p @ matrix[:, :E]
        d_matrix += p.t() @ part
    return SoftmaxLoss(loss, squares), d_g, d_matrix[:, :E], d_matrix[:, E]


COLUMNS = 512
"""Number of classes whose output units are computed together on a CPU: few enough for its cache."""


class ExactSoftmax:
    """Softmax(weights g + biases) in float32, for rows g of the last hidden layer."""

    def __init__(self, weights: Tensor, biases: Tensor) -> None:
        """Split the output layer, weights [classes, E] and biases [classes], into blocks of classes on a CPU."""
        self.classes = len(biases)
        columns = len(biases) if biases.is_cuda else COLUMNS
        parts = zip(weights.split(columns), biases.split(columns), strict=True)
        self._parts = [(part.t().contiguous(), bias) for part, bias in parts]

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
        for first, part in self._units(g):
            add_exponentials(part, tops, totals)
            take_units(part, first, owner, classes, chosen)
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
        for first, units in self._units(g):
            add_exponentials(units, tops, totals)
            keep_largest(units, first, least_class, best, classes)
        return best.astype(np.float64) - (np.log(totals) + tops)[:, None], classes

    def _units(self, g: Tensor) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """Yield the output units of g [B, E] for one block of classes at a time: the first class, and [B, classes].

        The array is a view of a buffer that the next block overwrites.
        """
        space = torch.empty(len(g) * COLUMNS)
        first = 0
        for weights, biases in self._parts:
            units = space[: len(g) * len(biases)].view(len(g), len(biases))
            torch.addmm(biases, g, weights, out=units)
            yield first, units.numpy()
            first += len(biases)
