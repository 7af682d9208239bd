"""A network in training: updates, the learning curve, and the state that a continuation needs."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rnnsmt.devices import Place
from rnnsmt.io import InputError
from rnnsmt.networks import optimising
from rnnsmt.networks.workers import Workers

CHECK_EVERY = 100
"""After how many updates the loss must be a number; asking makes a GPU wait."""

Index = NDArray[np.int64]


class Settings(optimising.Settings, Protocol):
    """What is needed of the settings of a training."""

    @property
    def batch(self) -> int: ...
    @property
    def clip(self) -> float: ...


class Stream(Protocol):
    """An endless sequence of minibatches: the numbers of their examples."""

    def __next__(self) -> Index: ...
    def state(self) -> dict[str, Any]: ...
    def restore(self, state: dict[str, Any]) -> None: ...


class Sums:
    """Figures since the last evaluation: counts; on the device the sums of the gradient, clipped updates and norms."""

    def __init__(self, figures: int, device: torch.device) -> None:
        self.updates = self.examples = self.words = 0
        self.measured = torch.zeros(figures + 2, dtype=torch.float64, device=device)

    def add(self, examples: int, words: int, sums: Tensor, clipped: Tensor, norm: Tensor) -> None:
        """Count one update: its examples and their target words, whether it was clipped, the gradient's norm."""
        self.updates += 1
        self.examples += examples
        self.words += words
        self.measured += torch.cat([sums, torch.stack([clipped.double(), norm.double()])])


class Trainer(ABC):
    """A network in training. Every process has one; all hold the same parameters and draw the same minibatches."""

    examples: str
    """What the network learns from, for the log: pairs, n-grams."""

    figures = 1
    """How many sums over a minibatch come with its gradient; the first one is -ln p of its words."""

    sum_of_losses = False
    """Whether the loss of a minibatch is the sum of its examples' losses instead of their mean."""

    total: int
    """After how many updates training is over, at most."""

    def __init__(
        self,
        model: nn.Module,
        settings: Settings,
        place: Place,
        stream: Stream,
        gradient: Callable[..., Tensor],
        dimension: int,
        threads: int = 1,
        grain: int = 1,
    ) -> None:
        """gradient, dimension, threads, grain: as ``Workers`` takes them."""
        self._settings, self.place, self.stream = settings, place, stream
        self.flat = optimising.flatten(model)
        self.optimiser = optimising.make_optimiser(self.flat, settings)
        self.gradient_of = Workers(model, self.flat, threads, gradient, dimension, grain)
        self.update = self.seen = 0
        self.sums = Sums(self.figures, place.device)
        self.history: list[dict[str, Any]] = []
        self.best: tuple[int, Tensor] | None = None
        """The row of the learning curve with the best figure of held-out examples, and the parameters then."""

    @abstractmethod
    def fingerprint(self) -> dict[str, object]:
        """Everything that the result depends on, but for the rounding of another device or number of threads."""

    @abstractmethod
    def minibatch(self, index: Index) -> tuple[Tensor, ...]:
        """The tensors that the gradient is taken of."""

    @abstractmethod
    def words(self, index: Index) -> int:
        """How many words the network has to predict in these examples."""

    @property
    @abstractmethod
    def finished(self) -> bool:
        """Whether training is over."""

    @property
    @abstractmethod
    def evaluation_due(self) -> bool:
        """Whether a row of the learning curve is due after this update."""

    @abstractmethod
    def measure(self, row: dict[str, Any]) -> bool:
        """Add to a row what the sums and the held-out examples say; whether these are better than ever before."""

    @abstractmethod
    def begins(self) -> str:
        """For the log: what is trained, on how much."""

    @abstractmethod
    def says(self, row: dict[str, Any]) -> str:
        """For the log: a row of the learning curve."""

    def step(self) -> None:
        """One update: loss and gradient of a minibatch, their sum over the processes, clipping, the optimiser."""
        settings, place, gradient = self._settings, self.place, self.flat.grad
        assert gradient is not None
        index = next(self.stream)
        own = index[place.rank :: place.processes]
        if len(own):
            sums = self.gradient_of(*self.minibatch(own)).reshape(-1)
        else:
            sums = gradient.zero_()[: self.figures].double()
        place.sum(gradient)
        place.sum(sums)
        # a minibatch at the end of an epoch may be smaller: its examples weigh as much as others
        scale = 1.0 if self.sum_of_losses else 1.0 / settings.batch
        norm = torch.linalg.vector_norm(gradient) * scale
        gradient *= scale * torch.clamp(settings.clip / norm, max=1.0)
        for group in self.optimiser.param_groups:
            group["lr"] = optimising.learning_rate(settings, self.update, self.total)
        self.optimiser.step()
        self.update += 1
        self.seen += len(index)
        self.sums.add(len(index), self.words(index), sums, norm > settings.clip, norm)
        if self.update % CHECK_EVERY == 0:
            self.check()

    def check(self) -> None:
        """Stop where the loss or the gradient has become infinite or not a number.

        Raises:
            InputError: it has, since the last evaluation.
        """
        if all(math.isfinite(value) for value in self.sums.measured.tolist()):
            return
        raise InputError(
            f"the loss or its gradient became infinite or not a number at update {self.update} or up to {CHECK_EVERY} "
            "before it; use a lower --learning-rate or --precision float32 and another --state-dir; the last good "
            "checkpoint is kept"
        )

    def evaluate(self) -> dict[str, Any]:
        """Add a row to the learning curve: the updates since the last one, and the held-out examples."""
        self.check()
        *_, clipped, norm = (value / max(self.sums.updates, 1) for value in self.sums.measured.tolist())
        row: dict[str, Any] = {
            "update": self.update,
            self.examples.replace("-", ""): self.seen,
            "learning rate": optimising.learning_rate(self._settings, self.update - 1, self.total),
            "clip rate": clipped,
            "gradient norm": norm,
        }
        better = self.measure(row)
        self.sums = Sums(self.figures, self.place.device)
        self.history.append(row)
        if better:
            self.best = len(self.history) - 1, self.flat.detach().clone()
        return row

    @property
    def kept(self) -> dict[str, Any]:
        """The row of the learning curve whose parameters are kept: the best, or the last if none is known as best."""
        return self.history[self.best[0] if self.best else -1]

    def choose(self) -> dict[str, Any]:
        """Take the parameters that are kept; the row of the learning curve that they belong to."""
        if self.best is not None:
            self.flat.data.copy_(self.best[1])
        return self.kept

    def state(self) -> dict[str, Any]:
        """Everything that a continuation needs.

        Raises:
            InputError: the loss is not a number: what was saved before must not be replaced.
        """
        self.check()
        return {
            "parameters": self.flat.detach(),
            "optimiser": self.optimiser.state_dict(),
            "stream": self.stream.state(),
            "update": self.update,
            "seen": self.seen,
            "counts": [self.sums.updates, self.sums.examples, self.sums.words],
            "measured": self.sums.measured,
            "history": self.history,
            "best": list(self.best) if self.best else None,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on where ``state`` was taken.

        Raises:
            RuntimeError, LookupError, TypeError, ValueError: the state is not what ``state`` gives.
        """
        self.flat.data.copy_(state["parameters"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.stream.restore(state["stream"])
        self.update, self.seen = int(state["update"]), int(state["seen"])
        self.sums.updates, self.sums.examples, self.sums.words = map(int, state["counts"])
        self.sums.measured.copy_(state["measured"])
        self.history = [row | {"update": int(row["update"])} for row in state["history"]]
        self.best = None
        if state["best"]:
            number, parameters = state["best"]
            self.best = range(len(self.history))[number], parameters.view_as(self.flat)
