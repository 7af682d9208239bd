"""Interface of a network for training: model, minibatches, gradient, evaluation on held-out examples, output files."""

import math
from abc import ABC, abstractmethod
from collections.abc import Container
from typing import Any

import torch
from torch import Tensor

from rnnsmt.base.paths import StrPath
from rnnsmt.networks.batches import Index, ShuffledBatches, SortedBatches, WindowBatches
from rnnsmt.networks.devices import DeviceSetup
from rnnsmt.networks.draws import ClassSampler
from rnnsmt.networks.settings import TrainingSettings

Row = dict[str, Any]
"""A row of the learning curve: column -> value."""


class Sums:
    """Counts and sums since the last evaluation.

    Attributes:
        updates, examples, words: counts.
        measured: float64 [number + 2]: the ``number`` sums that are computed with the gradients, then the number of
            clipped updates, then the sum of the gradient norms. The tensor is on the device, so that updates do not
            wait for the device.
    """

    def __init__(self, number: int, device: torch.device) -> None:
        self.updates = self.examples = self.words = 0
        self.measured = torch.zeros(number + 2, dtype=torch.float64, device=device)

    def add(self, examples: int, words: int, sums: Tensor, clipped: Tensor, norm: Tensor) -> None:
        """Add the values of one update.

        Args:
            examples, words: numbers of examples and of target words.
            sums: [number], the sums that were computed with the gradient.
            clipped: whether the gradient was clipped.
            norm: norm of the gradient before clipping.
        """
        self.updates += 1
        self.examples += examples
        self.words += words
        self.measured += torch.cat([sums, torch.stack([clipped.double(), norm.double()])])


class Task(ABC):
    """A network with its training data and settings: the part of training that depends on the kind of network.

    A subclass sets the attributes that have no default value, in the class or in the constructor.

    Attributes:
        network: the name of the network in ``rnnsmt.registries.NETWORKS``.
        examples: name of the training examples in the log, such as pairs or n-grams.
        model: the network, on the device of ``setup``.
        batches: the minibatches, as indices of examples.
        inputs: fingerprint of the training data, by name.
        total: maximum number of updates.
        evaluations: numbers of updates after which the network is evaluated.
        patience: number of evaluations without an improvement after which training stops.
        kept_by: column of the learning curve that identifies the saved parameters in the output files.
        sampler: sampler of the softmax classes; None: the sum is over all classes.
        number_of_sums: number of sums over a minibatch that are computed with its gradient; the first one is -ln p.
        sum_of_losses: whether the loss of a minibatch is the sum of the losses of its examples instead of their mean.
        grain: the parts of a minibatch that threads compute begin at multiples of this number of examples.
        same_launches: whether ``loss_and_gradient`` launches the same kernels for all minibatches of one shape.
    """

    network: str
    examples: str
    model: Any
    batches: ShuffledBatches | SortedBatches | WindowBatches
    inputs: dict[str, str]
    total: int
    evaluations: Container[int]
    patience = math.inf
    kept_by = "update"
    sampler: ClassSampler | None = None
    number_of_sums = 1
    sum_of_losses = False
    grain: int
    same_launches = False

    def __init__(self, settings: TrainingSettings, seed: int, setup: DeviceSetup) -> None:
        self.settings, self.seed, self.setup = settings, seed, setup

    # an update

    @abstractmethod
    def tensors(self, index: Index, update: int) -> tuple[Tensor, ...]:
        """Return examples as tensors on the device; the last dimension of each tensor is that of the examples.

        update: number of updates so far.
        """

    @abstractmethod
    def loss_and_gradient(self, model: Any, *batch: Any) -> Tensor:
        """Fill ``.grad`` of all parameters with the gradient summed over a minibatch or a part of it; return the sums.

        batch: the tensors of ``tensors``, followed by the random draws (``Draws``).
        """

    @abstractmethod
    def words(self, index: Index) -> int:
        """Return the number of words to predict in these examples."""

    # the learning curve

    @abstractmethod
    def evaluate(self, seen: int, sums: Sums) -> Row:
        """Evaluate the network; return the columns of the learning curve that depend on the kind of network.

        These are the training results since the last evaluation, and the held-out results.

        seen: number of training examples so far.
        """

    @abstractmethod
    def quality(self, row: Row) -> float:
        """Return the held-out result by which the best row is selected, higher is better; -inf: never selected."""

    @abstractmethod
    def start_message(self) -> str:
        """Return a description of the training data and their size, for the log."""

    @abstractmethod
    def format(self, row: Row) -> str:
        """Return the columns of ``evaluate`` as text, for the log."""

    # the output files

    @abstractmethod
    def results(self, history: list[Row], kept_row: Row) -> tuple[dict[str, object], dict[str, object]]:
        """Return the statistics of the stage, and the entries of the history file on data, device and baselines.

        The model has the parameters that will be saved.
        """

    @abstractmethod
    def save_model(self, path: StrPath, description: dict[str, object], stats: dict[str, object]) -> None:
        """Write the model file.

        Args:
            description: settings, seed, and the update or epoch of the saved parameters.
            stats: the statistics that ``results`` returned.
        """


def evenly(total: int, number: int) -> set[int]:
    """Return the updates after which to evaluate: ``number`` of ``total`` at equal intervals, including the last."""
    number = min(number, total)
    return {round(total * k / number) for k in range(1, number + 1)}


def perplexity_of(log_p: float) -> float:
    """Return the perplexity exp(-log_p) of a mean natural-log probability; at most exp(700), to avoid an overflow."""
    return math.exp(min(-log_p, 700.0))
