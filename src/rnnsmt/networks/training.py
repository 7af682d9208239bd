"""What turns a gradient into an update: all parameters in one tensor, the optimiser, the learning rate.

The gradient of a minibatch from several threads of one process, each with some of its pairs.

A step is hundreds of small operations. Threads inside each of them wait for each other every time, and where other
processes use the same cores they wait long: here every thread computes alone, and they meet once a minibatch.

A network in training: updates, the learning curve, and the state that a continuation needs.

The training loop: updates, evaluations, checkpoints, progress, the end.
"""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rnnsmt.io import InputError
from rnnsmt.networks.checkpoint import Checkpoint, refusing
from rnnsmt.networks.devices import Place
from rnnsmt.progress import LOG_SECONDS, say
from rnnsmt.stopping import Stop


class OptimiserSettings(Protocol):
    """What is needed of the settings of a training; optimiser: adadelta or adam, schedule: constant or linear."""

    @property
    def optimiser(self) -> str: ...
    @property
    def learning_rate(self) -> float: ...
    @property
    def schedule(self) -> str: ...
    @property
    def warmup(self) -> int: ...
    @property
    def batch(self) -> int: ...
    @property
    def clip(self) -> float: ...


def lay_out(model: nn.Module, values: Tensor, gradients: Tensor) -> None:
    """Make the parameters of a network, and their gradients, views of two flat tensors."""
    parameters = list(model.parameters())
    sizes = [parameter.numel() for parameter in parameters]
    for parameter, value, gradient in zip(parameters, values.split(sizes), gradients.split(sizes), strict=True):
        parameter.data = value.view(parameter.shape)
        parameter.grad = gradient.view(parameter.shape)


def flatten(model: nn.Module) -> nn.Parameter:
    """Lay all parameters, and all gradients, one after the other in one tensor each, of which they become views.

    Norm, clipping, the sum over processes and the optimiser then are one operation each.
    """
    flat = nn.Parameter(torch.cat([parameter.detach().flatten() for parameter in model.parameters()]))
    flat.grad = torch.zeros_like(flat)
    lay_out(model, flat.data, flat.grad)
    return flat


def make_optimiser(flat: nn.Parameter, settings: OptimiserSettings) -> torch.optim.Optimizer:
    """Adadelta with the paper's rho 0.95 and eps 1e-6, or Adam."""
    if settings.optimiser == "adadelta":
        return torch.optim.Adadelta([flat], lr=settings.learning_rate, rho=0.95, eps=1e-6)
    return torch.optim.Adam([flat], lr=settings.learning_rate, betas=(0.9, 0.999), eps=1e-8, fused=True)


def learning_rate(settings: OptimiserSettings, update: int, total: int) -> float:
    """The learning rate of an update, counted from 0, of ``total``."""
    factor = 1.0 if settings.schedule == "constant" else max(1.0 - update / total, 0.0)
    return settings.learning_rate * factor * min((update + 1) / (settings.warmup + 1), 1.0)


class Workers:
    """Networks that share their parameters and have a gradient each; with one thread, the network itself."""

    def __init__(
        self,
        model: nn.Module,
        flat: nn.Parameter,
        threads: int,
        gradient: Callable[..., Tensor],
        dimension: int,
        grain: int = 1,
    ) -> None:
        """flat: the parameters of ``model``, which are views of it, and their gradients.

        gradient: takes a network and the tensors of a minibatch, fills the network's ``.grad``, and returns sums over
        it. dimension: of these tensors, which is shared out in multiples of ``grain``.
        """
        assert flat.grad is not None
        self.gradient, self.dimension, self.grain = gradient, dimension, grain
        self.models, self.gradients = [model], [flat.grad]
        for _ in range(threads - 1):
            with torch.device("meta"):
                other: nn.Module = type(model)(model.sizes, seed=None)
            other.to_empty(device=flat.device)
            self.gradients.append(torch.zeros_like(flat.grad))
            lay_out(other, flat.data, self.gradients[-1])
            self.models.append(other)
        self._pool = ThreadPoolExecutor(threads, "gradient", torch.set_num_threads, (1,)) if threads > 1 else None

    def __call__(self, *batch: Tensor) -> Tensor:
        """The sums over a minibatch; its gradient goes to ``flat``'s."""
        if self._pool is None:
            return self.gradient(self.models[0], *batch)
        grains = -(-batch[0].shape[self.dimension] // self.grain)
        number = min(len(self.models), grains)
        borders = tuple(self.grain * (grains * k // number) for k in range(1, number))
        parts = zip(*(tensor.tensor_split(borders, self.dimension) for tensor in batch), strict=True)
        sums = list(self._pool.map(lambda model, part: self.gradient(model, *part), self.models[:number], parts))
        for gradient in self.gradients[1:number]:
            self.gradients[0] += gradient
        return torch.stack(sums).sum(0)


CHECK_EVERY = 100
"""After how many updates the loss must be a number; asking makes a GPU wait."""

Index = NDArray[np.int64]


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
        settings: OptimiserSettings,
        place: Place,
        stream: Stream,
        gradient: Callable[..., Tensor],
        dimension: int,
        threads: int = 1,
        grain: int = 1,
    ) -> None:
        """gradient, dimension, threads, grain: as ``Workers`` takes them."""
        self._settings, self.place, self.stream = settings, place, stream
        self.flat = flatten(model)
        self.optimiser = make_optimiser(self.flat, settings)
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
            group["lr"] = learning_rate(settings, self.update, self.total)
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
            "learning rate": learning_rate(self._settings, self.update - 1, self.total),
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


SomeTrainer = TypeVar("SomeTrainer", bound=Trainer)

Figures = dict[str, object]


@dataclass(frozen=True)
class Outputs:
    """Where a training writes, how often (seconds between checkpoints), and after how many seconds it must be over."""

    model: str | Path
    history: str | Path
    state_dir: str | Path
    save_every: float = 300.0
    time_limit: float | None = None


def run(make: Callable[[], SomeTrainer], outputs: Outputs, write: Callable[[SomeTrainer, Outputs], Figures]) -> Figures:
    """Train a network, or go on with one, and write it; the figures of the stage, as ``write`` returns them.

    Raises:
        InputError: a checkpoint of other settings, or a loss that is not a number.
        SystemExit: 75, stopped by SIGTERM or the time limit with its state saved; 130 the same after Ctrl-C.
    """
    with Stop(outputs.time_limit) as stop:
        trainer = make()
        checkpoint = Checkpoint(outputs.state_dir, trainer.fingerprint())
        if trainer.place.first:
            checkpoint.lock()
        trainer.place.any(False)  # the others wait for the first process
        saved = checkpoint.load(trainer.place.device)
        if saved is not None:
            with refusing(checkpoint.path, checkpoint.remedy):
                trainer.restore(saved)
        log = Log(trainer)
        last_save = time.monotonic()

        while not trainer.finished:
            trainer.step()
            if trainer.evaluation_due:
                log.evaluation(trainer.evaluate())
            log.progress()
            stopping = stop.agreed(trainer.update, trainer.place)
            due = time.monotonic() - last_save > outputs.save_every or trainer.finished
            if trainer.place.first and (stopping or due):
                checkpoint.save(trainer.state())
                last_save = time.monotonic()
            if stopping and not trainer.finished:
                log.say(f"stopped {stop.reason()} after {trainer.update:,} updates, state saved: run again to go on")
                raise SystemExit(stop.exit_code())

        figures = write(trainer, outputs)
        if trainer.place.first:
            checkpoint.finish()
        return figures


class Log:
    """What the first process says: where it is, rate and expected time, the learning curve."""

    def __init__(self, trainer: Trainer) -> None:
        self.trainer = trainer
        self.began = self.last = time.monotonic()
        self.first_update, self.first_seen = trainer.update, trainer.seen
        self.say(
            f"{trainer.begins()}; {trainer.flat.numel():,} parameters; "
            f"{'goes on after' if trainer.update else 'begins:'} {trainer.update:,} of {trainer.total:,} updates"
        )

    def say(self, text: str) -> None:
        if self.trainer.place.first:
            say(text)

    def progress(self) -> None:
        """A line, when it is time for one."""
        if time.monotonic() - self.last >= LOG_SECONDS:
            self.say(self._line())

    def evaluation(self, row: dict[str, Any]) -> None:
        """A line with a row of the learning curve."""
        self.say(f"{self._line()}; {self.trainer.says(row)}; {100 * row['clip rate']:.0f} % of the updates clipped")

    def _line(self) -> str:
        trainer = self.trainer
        self.last = time.monotonic()
        seconds = max(self.last - self.began, 1e-9)
        left = (trainer.total - trainer.update) * seconds / max(trainer.update - self.first_update, 1)
        rate = (trainer.seen - self.first_seen) / seconds
        place = f"update {trainer.update:,} of {trainer.total:,} ({100 * trainer.update / trainer.total:.0f} %)"
        return f"{place}, {rate:,.0f} {trainer.examples}/s, at most {left:.0f} s left"
