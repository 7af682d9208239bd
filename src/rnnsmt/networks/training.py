"""Training of a network: the loop of updates, evaluations and checkpoints.

``Trainer.fit`` is the loop and ``Trainer.step`` a single update. ``EpochTrainer`` evaluates after every epoch and stops
early. The subclasses (in ``rnn.training``, ``networks.feed_forward`` and ``seq2seq.training``) define the training
data, the gradient, the evaluations and the content of the output files. Further below: the optimiser and the log.
"""

import math
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from rnnsmt.base.io import InputError, write_json
from rnnsmt.base.progress import LOG_SECONDS, say
from rnnsmt.base.resuming import Stop
from rnnsmt.networks.data import Batches, Index, ShuffledBatches
from rnnsmt.networks.devices import DeviceSetup
from rnnsmt.networks.gradients import (
    Dropout,
    GradientThreads,
    GraphedGradient,
    Products,
    Randomness,
    flatten,
    flushed_denormals,
    seed_of,
)
from rnnsmt.networks.model_file import Checkpoint
from rnnsmt.networks.settings import FeedForwardSettings, TrainingSettings
from rnnsmt.networks.softmax import ClassSampler
from rnnsmt.stages import STAGES

CHECK_EVERY = 100
"""Number of updates between two checks that the loss is finite; a check synchronises with the GPU."""


class ThreadParts(NamedTuple):
    """Split of a minibatch among the threads.

    Attributes:
        dimension: the dimension of the examples in the tensors of a minibatch.
        grain: the parts begin at multiples of this number of examples.
    """

    dimension: int
    grain: int


class Trainer(ABC):
    """A network in training.

    Attributes:
        inputs, model, total: see ``__init__``.
        products: matrix products, rounded as configured in ``setup``.
        dropout: dropout with the rate and the seed of the training run.
        sampler: sampler of the classes of the softmax; None: the sum is over all classes.
        update, seen: numbers of updates and of training examples so far.
        history: the learning curve.
        best: index of the best row of the learning curve by the held-out examples, and the parameters at that point.
    """

    package: str
    """The package whose command ``train`` runs this trainer."""

    examples: str
    """Name of the training examples, for the log: pairs, n-grams."""

    kept_by = "update"
    """Column of the learning curve that names the kept parameters in the output files."""

    n_sums = 1
    """Number of sums over a minibatch that are computed with its gradient; the first one is -ln p of its words."""

    sum_of_losses = False
    """Whether the loss of a minibatch is the sum of the losses of its examples instead of their mean."""

    def __init__(
        self,
        model: nn.Module,
        settings: TrainingSettings,
        seed: int,
        inputs: dict[str, object],
        setup: DeviceSetup,
        batches: Batches,
        threads: int,
        parts: ThreadParts,
        total: int,
        evaluations: int = 0,
        sampler: ClassSampler | None = None,
    ) -> None:
        """Lay out parameters and gradient in flat tensors and create the optimiser.

        Args:
            model: the network, on the device of ``setup``.
            inputs: name -> value of everything that the result depends on except the settings, for the fingerprint.
            threads: number of threads that share a minibatch on a CPU.
            total: maximum number of updates.
            evaluations: number of evaluations, at equal intervals.
        """
        self.model, self.settings, self.seed, self.inputs = model, settings, seed, inputs
        self.setup, self.batches, self.total, self.sampler = setup, batches, total, sampler
        self.products, self.dropout = Products(setup.matmul_dtype), Dropout(settings.dropout, seed)
        number = min(evaluations, total)
        self.evaluations = {round(total * k / number) for k in range(1, number + 1)}
        """Numbers of updates after which there is an evaluation."""
        self.flat = flatten(model)
        self.optimiser = make_optimiser(self.flat, settings)
        threads = threads if setup.device.type == "cpu" else 1
        self.threads = GradientThreads(model, self.flat, threads, parts.dimension, parts.grain)
        self.generator: torch.Generator | None = None
        """On a GPU, the generator of the random numbers of all minibatches."""
        self.graphed: GraphedGradient | None = None
        if setup.device.type == "cuda":
            self.generator = torch.Generator(setup.device)
            if self.same_launches:
                assert self.flat.grad is not None
                self.graphed = GraphedGradient(
                    lambda *batch: self.loss_and_gradient(model, *batch), self.flat.grad, self.generator
                )
        self.update = self.seen = 0
        self.sums = Sums(self.n_sums, setup.device)
        self.history: list[dict[str, Any]] = []
        self.best: tuple[int, Tensor] | None = None
        self.checkpoint: Checkpoint | None = None

    # the loop

    @flushed_denormals()
    def fit(self, checkpoint_dir: str | Path, save_every: float, stop: Stop) -> None:
        """Train to the end, resuming from the last checkpoint in ``checkpoint_dir`` if there is one.

        A checkpoint is saved every ``save_every`` seconds, at the end, and when ``stop`` requests it. The directory
        remains locked as long as this object exists.

        Raises:
            SystemExit: 75 after SIGTERM or at the time limit, 130 after Ctrl-C, both with the checkpoint saved.
        """
        self.checkpoint = checkpoint = Checkpoint(checkpoint_dir, self.fingerprint())
        checkpoint.lock()
        saved = checkpoint.load(self.setup.device)
        if saved is not None:
            self.restore(saved)
        log = TrainingLog(self)
        last_save = time.monotonic()

        while not self.finished:
            self.step()
            if self.evaluation_due:
                log.evaluation(self.evaluate())
            log.progress()
            stopping = stop.asked()
            due = time.monotonic() - last_save > save_every or self.finished
            if stopping or due:
                checkpoint.save(self.state())
                last_save = time.monotonic()
            if stopping and not self.finished:
                say(
                    f"stopped {stop.reason()} after {self.update:,} updates, checkpoint saved; run the same command "
                    "again to resume"
                )
                raise SystemExit(stop.exit_code())

    def step(self) -> None:
        """Make one update: loss and gradient of a minibatch, clipping, optimiser step."""
        settings, gradient = self.settings, self.flat.grad
        assert gradient is not None
        index = next(self.batches)
        sums = self.accumulate(index)
        # the nominal size, also for a smaller minibatch at the end of an epoch: all examples have the same weight
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
        """Fill the gradient with its sum over the examples of a minibatch; return the sums over it [n_sums]."""
        return self.gradient(self.minibatch(index)).reshape(-1)

    def gradient(self, batch: tuple[Tensor, ...]) -> Tensor:
        """Fill the gradient, by a CUDA graph or the threads; return the sums over the minibatch."""
        if self.generator is not None:
            self.generator.manual_seed(seed_of(self.seed, int(batch[-1].flatten()[0])))
        if self.graphed is not None:
            return self.graphed(batch)
        return self.threads.run(self.loss_and_gradient, batch)

    def check(self) -> None:
        """Check that the loss and the gradient have been finite since the last evaluation."""
        if all(math.isfinite(value) for value in self.sums.measured.tolist()):
            return
        raise InputError(
            f"the loss or its gradient became infinite or NaN in the {CHECK_EVERY} updates before update "
            f"{self.update}; use a lower --learning-rate or --precision float32, and a new --checkpoint-dir (the last "
            "valid checkpoint is kept)"
        )

    # the learning curve

    def evaluate(self) -> dict[str, Any]:
        """Add a row to the learning curve: the updates since the last row and the held-out results; return it."""
        self.check()
        *_, clipped, norm = (value / max(self.sums.updates, 1) for value in self.sums.measured.tolist())
        row: dict[str, Any] = {
            "update": self.update,
            self.examples.replace("-", ""): self.seen,
            "learning rate": learning_rate(self.settings, self.update - 1, self.total),
            "clip rate": clipped,
            "gradient norm": norm,
        }
        better = self.measure(row)
        self.sums = Sums(self.n_sums, self.setup.device)
        self.history.append(row)
        if better:
            self.best = len(self.history) - 1, self.flat.detach().clone()
        return row

    @property
    def kept(self) -> dict[str, Any]:
        """Return the row of the learning curve whose parameters are kept: the best, or the last if no row is best."""
        return self.history[self.best[0] if self.best else -1]

    def choose(self) -> dict[str, Any]:
        """Set the parameters to those that are kept; return their row of the learning curve."""
        if self.best is not None:
            self.flat.data.copy_(self.best[1])
        return self.kept

    # checkpoints

    def state(self) -> dict[str, Any]:
        """Return everything that is needed to resume."""
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
        """Resume from a state that ``state`` returned."""
        self.flat.data.copy_(state["parameters"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.batches.restore(state["batches"])
        self.update, self.seen = state["update"], state["seen"]
        self.sums.updates, self.sums.examples, self.sums.words = state["counts"]
        self.sums.measured.copy_(state["measured"])
        self.history = state["history"]
        best = state["best"]
        self.best = (best[0], best[1]) if best else None

    def fingerprint(self) -> dict[str, object]:
        """Return everything that the result depends on, except for the device and the number of threads.

        These change the rounding and, with dropout or sampled classes, the random numbers.
        """
        version = {f"version of {self.package} train": STAGES[self.package]["train"].version}
        return version | self.inputs | self.settings.as_dict()

    # the output files

    def save(self, model_file: str | Path, history_file: str | Path) -> dict[str, object]:
        """Write the network with the kept parameters, and the learning curve; return the statistics of the stage.

        After that, a training run with other settings may clear the checkpoint directory.
        """
        kept_row = self.choose()
        description, stats = self.describe(kept_row), self.statistics(kept_row)
        self.save_network(model_file, description, stats)
        header = description | {"parameters": self.flat.numel()} | self.history_header(stats)
        write_json(history_file, header | {"curve": self.history})
        if self.checkpoint is not None:
            self.checkpoint.finish()
        return stats

    def describe(self, kept_row: dict[str, Any]) -> dict[str, object]:
        """Return the entries that both output files have: settings, seed, row of the kept parameters."""
        return {"settings": self.settings.as_dict(), "seed": self.seed, f"kept {self.kept_by}": kept_row[self.kept_by]}

    # implemented for each network

    @abstractmethod
    def minibatch(self, index: Index) -> tuple[Tensor, ...]:
        """Return the tensors of a minibatch, the arguments of ``loss_and_gradient``; the last: ``example_numbers``."""

    def example_numbers(self, number: int, begin: int = 0) -> Tensor:
        """Return the sequence numbers [B] of examples in the training run, in CPU memory.

        They determine the random draws of dropout and sampler.

        Args:
            number: number of examples.
            begin: the position of the first one in the minibatch.
        """
        return torch.arange(begin, begin + number) + self.update * self.settings.batch

    def randomness(self, rows: Tensor) -> Randomness:
        """Return the source of the random numbers of the examples with these numbers [B]."""
        return rows if self.generator is None else self.generator

    @abstractmethod
    def loss_and_gradient(self, model: Any, *batch: Tensor) -> Tensor:
        """Fill ``.grad`` of all parameters with the gradient summed over (a part of) a minibatch; return the sums."""

    @property
    def same_launches(self) -> bool:
        """Return whether ``loss_and_gradient`` launches the same kernels for all minibatches of one shape."""
        return False

    @abstractmethod
    def words(self, index: Index) -> int:
        """Return the number of words to predict in these examples."""

    @property
    def finished(self) -> bool:
        """Return whether training is over."""
        return self.update >= self.total

    @property
    def evaluation_due(self) -> bool:
        """Return whether a row of the learning curve is due after this update."""
        return self.update in self.evaluations

    @abstractmethod
    def measure(self, row: dict[str, Any]) -> bool:
        """Add training and held-out results to a row; return whether the held-out result is the best so far."""

    @abstractmethod
    def statistics(self, kept_row: dict[str, Any]) -> dict[str, object]:
        """Return the statistics of the stage, given the row of the kept parameters."""

    @abstractmethod
    def save_network(self, path: str | Path, description: dict[str, object], stats: dict[str, object]) -> None:
        """Write the model file, with the results of ``describe`` and ``statistics``."""

    @abstractmethod
    def history_header(self, stats: dict[str, object]) -> dict[str, object]:
        """Return the entries of the history on data, device and baselines, given the result of ``statistics``."""

    @abstractmethod
    def start_message(self) -> str:
        """Return the training data and their size, for the log."""

    @abstractmethod
    def format_metrics(self, row: dict[str, Any]) -> str:
        """Return a row of the learning curve as text, for the log."""


class EpochTrainer(Trainer):
    """Training with an evaluation after every epoch, which stops early if the held-out result no longer improves."""

    kept_by = "epoch"

    settings: FeedForwardSettings
    batches: ShuffledBatches

    @property
    def epochs_without_better(self) -> int:
        """Return the number of epochs since the best held-out result."""
        return len(self.history) - 1 - self.best[0] if self.best else 0

    @property
    def finished(self) -> bool:
        """Return whether all epochs are over, or ``patience`` epochs without an improvement have passed."""
        return len(self.history) >= self.settings.epochs or self.epochs_without_better >= self.settings.patience

    @property
    def evaluation_due(self) -> bool:
        """Return whether an epoch is over."""
        return self.update > 0 and self.batches.position == 0


class Sums:
    """Counts and sums since the last evaluation.

    Attributes:
        updates, examples, words: counts.
        measured: float64 [n_sums + 2], on the device, so that updates do not synchronise with it: the sums that are
            computed with the gradients, the number of clipped updates, the sum of the gradient norms.
    """

    def __init__(self, n_sums: int, device: torch.device) -> None:
        self.updates = self.examples = self.words = 0
        self.measured = torch.zeros(n_sums + 2, dtype=torch.float64, device=device)

    def add(self, examples: int, words: int, sums: Tensor, clipped: Tensor, norm: Tensor) -> None:
        """Add one update: its numbers of examples and target words, whether it was clipped, its gradient norm."""
        self.updates += 1
        self.examples += examples
        self.words += words
        self.measured += torch.cat([sums, torch.stack([clipped.double(), norm.double()])])


def make_optimiser(flat: nn.Parameter, settings: TrainingSettings) -> torch.optim.Optimizer:
    """Create the optimiser: Adadelta (rho 0.95, eps 1e-6 as in the paper), AdamW with weight decay, or plain SGD."""
    rate = settings.learning_rate
    if settings.optimiser == "sgd":
        return torch.optim.SGD([flat], lr=rate)
    if settings.optimiser == "adadelta":
        return torch.optim.Adadelta([flat], lr=rate, rho=0.95, eps=1e-6)
    return torch.optim.AdamW(
        [flat], lr=rate, betas=(0.9, 0.999), eps=1e-8, weight_decay=settings.weight_decay, fused=True
    )


def learning_rate(settings: TrainingSettings, update: int, total: int) -> float:
    """Return the learning rate of the 0-based ``update`` of ``total`` updates."""
    factor = 1.0
    if settings.schedule == "linear":
        factor = max(1.0 - update / total, 0.0)
    elif settings.schedule == "halving":
        # 1 for two thirds of the updates (5 of 7.5 epochs), then halved every fifteenth of them (half an epoch)
        factor = 0.5 ** max((15 * update - 10 * total) // total + 1, 0)
    return settings.learning_rate * factor * min((update + 1) / (settings.warmup + 1), 1.0)


def perplexity_of(log_p: float) -> float:
    """Return the perplexity exp(-log_p) of a mean natural-log probability; at most exp(700), to avoid an overflow."""
    return math.exp(min(-log_p, 700.0))


class TrainingLog:
    """The log of a training run: progress, speed, remaining time, learning curve."""

    def __init__(self, trainer: Trainer) -> None:
        self.trainer = trainer
        self.began = self.last = time.monotonic()
        self.first_update, self.first_seen = trainer.update, trainer.seen
        say(
            f"{trainer.start_message()}; {trainer.flat.numel():,} parameters; on {trainer.setup}; "
            f"{'resuming after' if trainer.update else 'starting:'} {trainer.update:,} of {trainer.total:,} updates"
        )

    def progress(self) -> None:
        """Write a line if ``LOG_SECONDS`` have passed since the last one."""
        if time.monotonic() - self.last >= LOG_SECONDS:
            say(self._line())

    def evaluation(self, row: dict[str, Any]) -> None:
        """Write a line with a row of the learning curve."""
        clipped = f"{100 * row['clip rate']:.0f} % of the updates clipped"
        say(f"{self._line()}; {self.trainer.format_metrics(row)}; {clipped}")

    def _line(self) -> str:
        """Return progress, speed and an upper bound of the remaining time."""
        trainer = self.trainer
        self.last = time.monotonic()
        seconds = max(self.last - self.began, 1e-9)
        left = (trainer.total - trainer.update) * seconds / max(trainer.update - self.first_update, 1)
        rate = (trainer.seen - self.first_seen) / seconds
        progress = f"update {trainer.update:,} of {trainer.total:,} ({100 * trainer.update / trainer.total:.0f} %)"
        return f"{progress}, {rate:,.0f} {trainer.examples}/s, at most {left:.0f} s left"
