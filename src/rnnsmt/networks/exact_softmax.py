"""Exact probabilities of the softmax in scoring and search.

Only a few probabilities of each row are requested. The output units are computed for one block of classes at a time.
Compiled kernels add the exponentials of these units to the sums and copy the requested units, then the block is
discarded. The kernels compute each row separately, in an order of summation that depends only on the length of the row,
so their results are bit-identical regardless of the other rows in the same call.
"""

import threading
from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rnnsmt.base.kernels.decorator import kernel
from rnnsmt.networks.vectors import exp_sum, largest

COLUMNS = 512
"""Number of classes whose output units are computed together on a CPU: few enough for the CPU cache."""


KEPT_ROWS = 1024
"""Number of rows of the buffer for output units that each thread keeps (2 MB)."""


class ExactSoftmax:
    """Softmax(weights g + biases) in float32, for rows g of the last hidden layer."""

    def __init__(self, weights: Tensor, biases: Tensor) -> None:
        """Prepare an output layer, weights [classes, E] and biases [classes]; on a CPU, split it into blocks."""
        self.classes = len(biases)
        columns = len(biases) if biases.is_cuda else COLUMNS
        parts = zip(weights.split(columns), biases.split(columns), strict=True)
        self._parts = [(block.detach().t().contiguous(), bias.detach()) for block, bias in parts]
        self._buffers = threading.local()

    @torch.inference_mode()
    def log_p(self, g: Tensor, rows: Tensor, words: Tensor) -> Tensor:
        """Compute ln p of words [R], of word r from row ``rows[r]`` of g [B, E]; return float64 [R]."""
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

        Classes below ``least_class`` are not returned, but are included in the sum of the softmax.

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
            # not addmm: it first copies the biases to every row, which takes 25 % of the time of the product
            torch.mm(g, weights, out=units)
            yield first, units.numpy(), biases.numpy()
            first += len(biases)


LANES = 64
"""Number of classes in a block that is skipped if its largest unit is too small."""


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
    """Update the ``width`` largest units of each row with the units of a block of classes.

    Args:
        units: [B, classes], the output units of the classes from ``first`` on.
        least_class: lower classes are ignored.
        best: [B, width], the largest units so far, descending; -inf before the first block.
        classes: [B, width], their classes; among equal units, the lower class comes first; 0 before the first block.
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
