"""The softmax of training, which takes most of the time of all networks, together with its gradient.

Both are computed for a few rows at a time, while these are in the CPU cache; optionally over a sample of the classes.
"""

import hashlib
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rnnsmt.networks.operations import Products, put_gradient

SOFTMAX_ROWS = 256
"""Number of rows of the softmax that are computed together on a CPU: few enough for its cache."""

CUDA_SOFTMAX_ROWS = 4096


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
