"""Training a network: the loop of updates, evaluations and checkpoints, and what an update consists of.

``Trainer.fit`` is the loop and ``Trainer.step`` an update; ``rnn.training`` and ``cslm.training`` say what a network
learns from, its gradient, when it is evaluated, and what is written. Below them: the threads that share a minibatch,
the optimiser, the log.
"""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from rnnsmt.io import InputError
from rnnsmt.networks.batches import Batches, Index
from rnnsmt.networks.checkpoint import Checkpoint, corrupt_as_input_error
from rnnsmt.networks.cuda_graphs import GraphedGradient
from rnnsmt.networks.devices import Place
from rnnsmt.networks.settings import TrainingSettings
from rnnsmt.progress import LOG_SECONDS, say
from rnnsmt.stopping import Stop

CHECK_EVERY = 100
"""After how many updates the loss must be a number; asking makes a GPU wait."""

AGREE_EVERY = 50
"""How many updates lie between two looks at signals and the time limit where several processes must agree."""


class Trainer(ABC):
    """A network in training. Every process has one; all hold the same parameters and draw the same minibatches."""

    examples: str
    """What the network learns from, for the log: pairs, n-grams."""

    n_sums = 1
    """How many sums over a minibatch come with its gradient; the first one is -ln p of its words."""

    sum_of_losses = False
    """Whether the loss of a minibatch is the sum of its examples' losses instead of their mean."""

    total: int
    """After how many updates training is over, at most."""

    def __init__(
        self,
        model: nn.Module,
        settings: TrainingSettings,
        place: Place,
        batches: Batches,
        threads: int,
        dimension: int,
        grain: int = 1,
    ) -> None:
        """model: on the device of ``place``. threads: on a CPU. dimension, grain: as ``GradientThreads`` takes them."""
        self._settings, self.place, self.batches = settings, place, batches
        number = sum(parameter.numel() for parameter in model.parameters())
        self.shared = torch.zeros(number + self.n_sums, device=place.device)
        """The gradient, and behind it the sums of the minibatch: what several processes add up, all at once."""
        self.flat = flatten(model, self.shared)
        self.optimiser = make_optimiser(self.flat, settings)
        threads = threads if place.device.type == "cpu" else 1
        self.threads = GradientThreads(model, self.flat, threads, dimension, grain)
        self.graphed: GraphedGradient | None = None
        if place.device.type == "cuda" and self.same_launches:
            assert self.flat.grad is not None
            self.graphed = GraphedGradient(lambda *batch: self.loss_and_gradient(model, *batch), self.flat.grad)
        self.update = self.seen = 0
        self.sums = Sums(self.n_sums, place.device)
        self.history: list[dict[str, Any]] = []
        self.best: tuple[int, Tensor] | None = None
        """The row of the learning curve where the held-out examples were likeliest, and the parameters then."""
        self.checkpoint: Checkpoint | None = None

    # the loop

    def fit(self, state_dir: str | Path, save_every: float, stop: Stop) -> None:
        """Train to the end, from the last checkpoint in ``state_dir`` if there is one.

        A checkpoint is saved every ``save_every`` seconds, at the end, and when ``stop`` says that it is time. The
        folder is locked from here on as long as this object lives.

        Raises:
            InputError: a checkpoint of other settings, or a loss that is not a number.
            SystemExit: 75, stopped by SIGTERM or the time limit with its state saved; 130 the same after Ctrl-C.
        """
        self.checkpoint = checkpoint = Checkpoint(state_dir, self.fingerprint())
        if self.place.first:
            checkpoint.lock()
        self.place.any(False)  # the others wait for the first process
        saved = checkpoint.load(self.place.device)
        if saved is not None:
            with corrupt_as_input_error(checkpoint.path, checkpoint.remedy):
                self.restore(saved)
        log = TrainingLog(self)
        last_save = time.monotonic()

        while not self.finished:
            self.step()
            if self.evaluation_due:
                log.evaluation(self.evaluate())
            log.progress()
            stopping = self._is_time_to(stop)
            due = time.monotonic() - last_save > save_every or self.finished
            if self.place.first and (stopping or due):
                checkpoint.save(self.state())
                last_save = time.monotonic()
            if stopping and not self.finished:
                log.say(f"stopped {stop.reason()} after {self.update:,} updates, state saved: run again to go on")
                raise SystemExit(stop.exit_code())

    def step(self) -> None:
        """One update: loss and gradient of a minibatch, their sum over the processes, clipping, the optimiser."""
        settings, place, gradient = self._settings, self.place, self.flat.grad
        assert gradient is not None
        index = next(self.batches)
        own = index[place.rank :: place.processes]
        sums = self.accumulate(own) if len(own) else gradient.zero_()[: self.n_sums].double()
        if place.processes > 1:
            self.shared[len(gradient) :] = sums
            sums = place.sum(self.shared)[len(gradient) :].double()
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

    def accumulate(self, index: Index) -> Tensor:
        """Fill the gradient with the sum over all examples of a minibatch; return the sums over it [n_sums]."""
        return self.gradient(self.minibatch(index)).reshape(-1)

    def gradient(self, batch: tuple[Tensor, ...]) -> Tensor:
        """Fill the gradient; the sums over the minibatch."""
        if self.graphed is not None:
            return self.graphed(batch)
        return self.threads.run(self.loss_and_gradient, batch)

    def check(self) -> None:
        """Refuse to go on where the loss or the gradient has become infinite or not a number.

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

    def _is_time_to(self, stop: Stop) -> bool:
        """Whether to save and stop now: asked after every update, the same for all processes, which stop together."""
        if self.place.processes == 1:
            return stop.asked()
        return self.update % AGREE_EVERY == 0 and self.place.any(stop.asked())

    # the learning curve

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
        self.sums = Sums(self.n_sums, self.place.device)
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

    # going on

    def state(self) -> dict[str, Any]:
        """Everything that a continuation needs.

        Raises:
            InputError: the loss is not a number: what was saved before must not be replaced.
        """
        self.check()
        return {
            "parameters": self.flat.detach(),
            "optimiser": self.optimiser.state_dict(),
            "batches": self.batches.state(),
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
        self.batches.restore(state["batches"])
        self.update, self.seen = int(state["update"]), int(state["seen"])
        self.sums.updates, self.sums.examples, self.sums.words = map(int, state["counts"])
        self.sums.measured.copy_(state["measured"])
        self.history = [row | {"update": int(row["update"])} for row in state["history"]]
        self.best = None
        if state["best"]:
            number, parameters = state["best"]
            self.best = range(len(self.history))[number], parameters.view_as(self.flat)

    def finish(self) -> None:
        """Remember that the outputs are written: the state folder then gives way to other settings."""
        if self.checkpoint is not None and self.place.first:
            self.checkpoint.finish()

    # what every network says for itself

    @abstractmethod
    def fingerprint(self) -> dict[str, object]:
        """Everything that the result depends on, but for the rounding of another device or number of threads."""

    @abstractmethod
    def minibatch(self, index: Index) -> tuple[Tensor, ...]:
        """The tensors that the gradient is taken of."""

    @abstractmethod
    def loss_and_gradient(self, model: Any, *batch: Tensor) -> Tensor:
        """Fill ``.grad`` of the network's parameters with the sum over what ``minibatch`` gave; the ``n_sums`` sums."""

    @property
    def same_launches(self) -> bool:
        """Whether ``loss_and_gradient`` does the same for all minibatches of a shape, as ``GraphedGradient`` needs."""
        return False

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
    def save(self, model_file: str | Path, history_file: str | Path) -> dict[str, object]:
        """Write the network with the parameters that are kept, and the learning curve; the stats of the stage."""

    @abstractmethod
    def begins(self) -> str:
        """For the log: what is trained, on how much."""

    @abstractmethod
    def says(self, row: dict[str, Any]) -> str:
        """For the log: a row of the learning curve."""


class Sums:
    """Since the last evaluation: counts; on the device what came with the gradients, clipped updates, their norms."""

    def __init__(self, n_sums: int, device: torch.device) -> None:
        self.updates = self.examples = self.words = 0
        self.measured = torch.zeros(n_sums + 2, dtype=torch.float64, device=device)

    def add(self, examples: int, words: int, sums: Tensor, clipped: Tensor, norm: Tensor) -> None:
        """Count one update: its examples and their target words, whether it was clipped, the gradient's norm."""
        self.updates += 1
        self.examples += examples
        self.words += words
        self.measured += torch.cat([sums, torch.stack([clipped.double(), norm.double()])])


class GradientThreads:
    """The gradient of a minibatch from several threads, each with some of its examples and a gradient of its own.

    A step is hundreds of small operations. Threads inside each of them wait for each other every time, and where other
    processes use the same cores they wait long: here every thread computes alone, and they meet once a minibatch. The
    threads share the parameters; with one thread there is none, and the network itself is used.
    """

    def __init__(self, model: nn.Module, flat: nn.Parameter, threads: int, dimension: int, grain: int = 1) -> None:
        """flat: the parameters of ``model``, which are views of it, and their gradients. dimension: of the tensors of a
        minibatch, which is shared out in multiples of ``grain``.
        """
        assert flat.grad is not None
        self.dimension, self.grain = dimension, grain
        self.models, self.gradients = [model], [flat.grad]
        for _ in range(threads - 1):
            with torch.device("meta"):
                other: nn.Module = type(model)(model.sizes, seed=None)
            other.to_empty(device=flat.device)
            self.gradients.append(torch.zeros_like(flat.grad))
            lay_out(other, flat.data, self.gradients[-1])
            self.models.append(other)
        self._pool = ThreadPoolExecutor(threads, "gradient", torch.set_num_threads, (1,)) if threads > 1 else None

    def run(self, gradient_of: Callable[..., Tensor], batch: tuple[Tensor, ...]) -> Tensor:
        """The sums over a minibatch; its gradient goes to ``flat``'s. gradient_of: ``Trainer.loss_and_gradient``."""
        if self._pool is None:
            return gradient_of(self.models[0], *batch)
        grains = -(-batch[0].shape[self.dimension] // self.grain)
        number = min(len(self.models), grains)
        borders = tuple(self.grain * (grains * k // number) for k in range(1, number))
        parts = zip(*(tensor.tensor_split(borders, self.dimension) for tensor in batch), strict=True)
        sums = list(self._pool.map(lambda model, part: gradient_of(model, *part), self.models[:number], parts))
        for gradient in self.gradients[1:number]:
            self.gradients[0] += gradient
        return torch.stack(sums).sum(0)


def lay_out(model: nn.Module, values: Tensor, gradients: Tensor) -> None:
    """Make the parameters of a network, and their gradients, views of two flat tensors."""
    parameters = list(model.parameters())
    sizes = [parameter.numel() for parameter in parameters]
    for parameter, value, gradient in zip(parameters, values.split(sizes), gradients.split(sizes), strict=True):
        parameter.data = value.view(parameter.shape)
        parameter.grad = gradient.view(parameter.shape)


def flatten(model: nn.Module, space: Tensor | None = None) -> nn.Parameter:
    """Lay all parameters, and all gradients, one after the other in one tensor each, of which they become views.

    Norm, clipping, the sum over processes and the optimiser then are one operation each. space: for the gradients, of
    zeros, perhaps larger.
    """
    flat = nn.Parameter(torch.cat([parameter.detach().flatten() for parameter in model.parameters()]))
    flat.grad = torch.zeros_like(flat) if space is None else space[: len(flat)]
    lay_out(model, flat.data, flat.grad)
    return flat


def make_optimiser(flat: nn.Parameter, settings: TrainingSettings) -> torch.optim.Optimizer:
    """Adadelta with the paper's rho 0.95 and eps 1e-6, Adam, or SGD; weight decay as ``TrainingSettings`` says."""
    rate = settings.learning_rate
    if settings.optimiser == "sgd":
        return torch.optim.SGD([flat], lr=rate)
    if settings.optimiser == "adadelta":
        return torch.optim.Adadelta([flat], lr=rate, rho=0.95, eps=1e-6)
    return torch.optim.AdamW(
        [flat], lr=rate, betas=(0.9, 0.999), eps=1e-8, weight_decay=settings.weight_decay, fused=True
    )


def learning_rate(settings: TrainingSettings, update: int, total: int) -> float:
    """The learning rate of an update, counted from 0, of ``total``."""
    factor = 1.0
    if settings.schedule == "linear":
        factor = max(1.0 - update / total, 0.0)
    elif settings.schedule == "halving":
        factor = 0.5 ** max((15 * update - 10 * total) // total + 1, 0)
    return settings.learning_rate * factor * min((update + 1) / (settings.warmup + 1), 1.0)


def perplexity_of(log_p: float) -> float:
    """Of a mean natural logarithm; a large number where it is too large for one."""
    return math.exp(min(-log_p, 700.0))


class TrainingLog:
    """What the first process says: where it is, rate and expected time, the learning curve."""

    def __init__(self, trainer: Trainer) -> None:
        self.trainer = trainer
        self.began = self.last = time.monotonic()
        self.first_update, self.first_seen = trainer.update, trainer.seen
        self.say(
            f"{trainer.begins()}; {trainer.flat.numel():,} parameters; on {trainer.place}; "
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
