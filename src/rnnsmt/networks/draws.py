"""Random draws for a minibatch in training: dropout masks, and a sample of the softmax classes.

On a CPU, the dropout masks depend on the seed and on the sequence numbers of the examples, not on the number of
threads; each thread samples the classes for its part of the minibatch. On a GPU, one generator draws for the whole
minibatch, so the draws differ from those on a CPU.
"""

import hashlib
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

DROPOUT_ROWS = 32
"""Number of examples per random generator on a CPU. If threads share a minibatch, their parts begin at multiples of
this number."""


def seed_of(seed: int, example: int) -> int:
    """Return the seed of a generator for consecutive examples of a training run.

    Args:
        seed: seed of the training run.
        example: sequence number of the first example.
    """
    return (seed * 1_000_003 + example) % (1 << 63)


class ClassSample(NamedTuple):
    """Sample of the softmax classes for a minibatch with P words to predict.

    Attributes:
        classes: [C], ids of the classes in the sample, ascending.
        places: [P], the index in ``classes`` of each word to predict.
        log_pi: [C], ln of the probability that a class is in the sample; ``NEVER`` for a class with a weight of 0.
    """

    classes: Tensor
    places: Tensor
    log_pi: Tensor


NEVER = 1e4
"""Value of ``log_pi`` that gives a class the weight 0; finite, because the difference of infinities is NaN."""


class ClassSampler:
    """Sampler of the classes for the softmax of a minibatch (Bengio and Senecal 2008; Jean et al. 2015).

    The sample consists of the words of the minibatch and of ``number`` draws with replacement, with probabilities
    proportional to frequency^0.75. In the estimate of Z, the exponential of a class has the weight 1 / pi, where pi is
    the probability that the class is in the sample. In a row that predicts the class, the weight is 1, because the
    sample always contains the word to predict. The estimate of Z is unbiased.
    """

    def __init__(self, counts: NDArray[np.number], number: int, seed: int) -> None:
        """Compute the probabilities of the draws.

        Args:
            counts: [classes], frequency of each class in the training data.
            number: number of draws.
        """
        self.number, self.seed = number, seed
        frequencies = torch.from_numpy(counts / counts.sum())
        drawn = torch.from_numpy(counts**0.75 / (counts**0.75).sum())
        self._drawn, self._cumulative, self._last = drawn, drawn.cumsum(0), int(drawn.nonzero()[-1])
        # ln of the probability that a class is not a given word of the minibatch, and that no draw is the class
        self._log_absent = torch.stack([torch.log1p(-frequencies), number * torch.log1p(-drawn)])

    def draw(self, words: Tensor, first: int, counted: Tensor | None = None) -> ClassSample:
        """Draw the classes for the words to predict, on a CPU.

        Args:
            words: [P], the words to predict.
            first: sequence number of the first example, which seeds the draws.
            counted: as in ``Draws.classes``.
        """
        # hashed, so the stream differs from that of dropout, whose seeds are derived from the same numbers
        digest = hashlib.blake2b(f"classes {self.seed} {first}".encode(), digest_size=8).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest, "little") >> 1)
        more = torch.multinomial(self._drawn, self.number, replacement=True, generator=generator)
        classes, places = torch.unique(torch.cat([words, more]), return_inverse=True)
        log_pi = self._log_pi(_number(words, counted), *self._log_absent[:, classes])
        return ClassSample(classes, places[: len(words)], log_pi)

    @staticmethod
    def _log_pi(words: int | Tensor, batch: Tensor, draws: Tensor) -> Tensor:
        """Return ln pi of classes: 1 - pi = P(not among the words of the minibatch) P(in no draw)."""
        return torch.log(-torch.expm1(words * batch + draws)).float()

    def draw_on_device(self, words: Tensor, generator: torch.Generator, counted: Tensor | None = None) -> ClassSample:
        """Draw the classes on a GPU; the kernel launches do not depend on the values, so a CUDA graph can record them.

        The sample has one entry for each word and each draw; repeated entries of a class have the weight 0. If that is
        at least the number of all classes, the sample contains all classes instead, with the weight 0 for those that
        are neither words nor draws.
        """
        if self._cumulative.device != words.device:
            self._cumulative, self._log_absent = self._cumulative.to(words.device), self._log_absent.to(words.device)
        draws = torch.rand(self.number, dtype=torch.float64, device=words.device, generator=generator)
        # rounding may leave the last cumulative probability below a draw
        more = torch.searchsorted(self._cumulative, draws, right=True).clamp_max_(self._last)
        classes = torch.cat([words, more])
        if len(classes) < len(self._cumulative):
            classes = classes.sort()[0]
            absent = self._log_absent.index_select(1, classes)
            left_out = torch.nn.functional.pad(classes[1:] == classes[:-1], (1, 0))
            places = torch.searchsorted(classes, words.contiguous())
        else:
            left_out = torch.ones_like(self._cumulative, dtype=torch.bool).index_fill_(0, classes, False)
            classes = torch.arange(len(self._cumulative), device=words.device)
            absent, places = self._log_absent, words
        log_pi = self._log_pi(_number(words, counted), *absent)
        return ClassSample(classes, places, log_pi.masked_fill_(left_out, NEVER))


def _number(words: Tensor, counted: Tensor | None) -> int | Tensor:
    """Return the number of words to predict without padding, without reading it from the device."""
    return len(words) if counted is None else counted.sum()


class Draws:
    """Random draws for a minibatch or for a part of it.

    The dropout rate is rounded to a multiple of 1/256, at least 1/256 if it is not 0. Units that are not dropped are
    scaled up (Srivastava et al. 2014).
    """

    def __init__(
        self, source: Tensor | torch.Generator, seed: int, dropout: float = 0.0, sampler: ClassSampler | None = None
    ) -> None:
        """Prepare the draws.

        Args:
            source: on a CPU, the sequence numbers of the examples [B]: every ``DROPOUT_ROWS``-th of them seeds a
                generator of dropout masks, the first one also the generator of the classes. On a GPU, a generator that
                was seeded for the minibatch.
            seed: seed of the training run.
            dropout: the dropout rate.
            sampler: sampler of the classes of the softmax; None: the sum is over all classes.
        """
        self.source, self.seed, self.sampler = source, seed, sampler
        self.limit = min(max(round(256 * dropout), 1), 255) if dropout > 0 else 0

    @cached_property
    def _generators(self) -> list[torch.Generator]:
        if isinstance(self.source, torch.Generator):
            return [self.source]
        firsts = self.source[::DROPOUT_ROWS].tolist()
        return [torch.Generator().manual_seed(seed_of(self.seed, first)) for first in firsts]

    def drop(self, x: Tensor) -> Tensor:
        """Apply dropout to units x [B, U], or x [K, B, U] with a separate mask at every step."""
        factors = self.factors(x)
        return x if factors is None else x * factors

    def factors(self, x: Tensor) -> Tensor | None:
        """Draw the factors of units x: 0 for dropped units, else 1 / (1 - rate); return None without dropout."""
        if not self.limit:
            return None
        (rows, width), steps = x.shape[-2:], x.shape[:-2].numel()
        units = steps * width
        size = (DROPOUT_ROWS if x.device.type == "cpu" else rows) * units
        # one random byte per unit, drawn as int64: a byte below ``limit`` drops its unit
        draws = torch.empty(len(self._generators), -(-size // 8), dtype=torch.int64, device=x.device)
        for row, generator in zip(draws, self._generators, strict=True):
            row.random_(-(1 << 63), None, generator=generator)
        bytes_ = draws.view(torch.uint8)[:, :size].reshape(-1)[: rows * units]
        factors = (bytes_ >= self.limit).float().mul_(256 / (256 - self.limit))
        return factors.view(rows, steps, width).transpose(0, 1).view(x.shape)

    def classes(self, words: Tensor, counted: Tensor | None = None) -> ClassSample | None:
        """Sample the softmax classes for the words to predict [P]; return None if the sum is over all classes.

        counted: bool [P], False for padding; the id of the padding must also occur among the other words. None: there
            is no padding.
        """
        if self.sampler is None:
            return None
        if isinstance(self.source, torch.Generator):
            return self.sampler.draw_on_device(words, self.source, counted)
        return self.sampler.draw(words, int(self.source[0]), counted)


NOTHING_DRAWN = Draws(torch.arange(0), 0)
"""No dropout, and all classes of the softmax."""
