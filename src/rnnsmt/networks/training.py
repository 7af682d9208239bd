"""Training of a network: the loop of updates, evaluations and checkpoints.

A ``Task`` (``rnnsmt.networks.task``) is the part of training that depends on the kind of network. ``Training`` does
everything else: ``Training.fit`` is the loop, ``Training.step`` a single update. The module also defines the optimizer
and the log.
"""

import math
import time
from typing import Any

import torch
from torch import Tensor, nn

from rnnsmt.base.errors import InputError
from rnnsmt.base.paths import StrPath
from rnnsmt.base.progress import LOG_SECONDS, say
from rnnsmt.base.resuming import Stop
from rnnsmt.base.writing import write_json
from rnnsmt.networks.batches import Index
from rnnsmt.networks.draws import Draws, seed_of
from rnnsmt.networks.gradients import GradientThreads, GraphedGradient, flatten, flushed_denormals
from rnnsmt.networks.model_file import Checkpoint
from rnnsmt.networks.settings import TrainingSettings
from rnnsmt.networks.task import Row, Sums, Task
from rnnsmt.registries import NETWORKS

CHECK_EVERY = 100
"""Number of updates between two checks that the loss is finite; a check synchronises with the GPU."""


class Training:
    """A network in training.

    Attributes:
        flat: all parameters in one tensor, with their gradient.
        update, seen: numbers of updates and of training examples so far.
        history: the rows of the learning curve.
        best: index of the row of the learning curve with the best held-out result, and the parameters at that point;
            None: no row is best.
    """

    def __init__(self, task: Task, threads: int = 1) -> None:
        """Move parameters and gradient to flat tensors, and create the optimizer.

        threads: number of threads that share a minibatch on a CPU.
        """
        self.task, device = task, task.setup.device
        self.flat = flatten(task.model)
        self.optimizer = make_optimizer(self.flat, task.settings)
        threads = threads if device.type == "cpu" else 1
        self.threads = GradientThreads(task.model, self.flat, threads, task.grain)
        self.generator: torch.Generator | None = None
        """On a GPU, the generator of the random numbers of all minibatches."""
        self.graphed: GraphedGradient | None = None
        if device.type == "cuda":
            self.generator = torch.Generator(device)
            if task.same_launches:
                assert self.flat.grad is not None
                self.graphed = GraphedGradient(
                    lambda *batch: self.loss_and_gradient(task.model, *batch), self.flat.grad, self.generator
                )
        self.update = self.seen = 0
        self.sums = Sums(task.number_of_sums, device)
        self.history: list[Row] = []
        self.best: tuple[int, Tensor] | None = None
        self.checkpoint: Checkpoint | None = None

    @flushed_denormals()
    def fit(self, checkpoint_dir: StrPath, save_every: float, stop: Stop) -> None:
        """Train to the end, resuming from the last checkpoint in ``checkpoint_dir`` if there is one.

        A checkpoint is saved every ``save_every`` seconds, at the end, and when ``stop`` requests it. The directory
        remains locked as long as this object exists.

        Raises:
            SystemExit: 75 after SIGTERM or at the time limit, 130 after Ctrl-C, both with the checkpoint saved.
        """
        self.checkpoint = checkpoint = Checkpoint(checkpoint_dir, self.fingerprint())
        with stop.waiting():
            checkpoint.lock()
        saved = checkpoint.load(self.task.setup.device)
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
            if stopping or self.finished or time.monotonic() - last_save > save_every:
                checkpoint.save(self.state())
                last_save = time.monotonic()
            if stopping and not self.finished:
                say(
                    f"stopped {stop.reason()} after {self.update:,} updates, checkpoint saved; run the same command "
                    "again to resume"
                )
                raise SystemExit(stop.exit_code())

    @property
    def finished(self) -> bool:
        """Return whether all updates are made, or ``patience`` evaluations have brought no improvement."""
        return self.update >= self.task.total or self.without_better >= self.task.patience

    @property
    def without_better(self) -> int:
        """Return the number of evaluations since the best held-out result."""
        return len(self.history) - 1 - self.best[0] if self.best else 0

    @property
    def evaluation_due(self) -> bool:
        """Return whether the network is to be evaluated after this update."""
        return self.update in self.task.evaluations

    # an update

    def step(self) -> None:
        """Make one update: loss and gradient of a minibatch, clipping, optimizer step."""
        task, settings, gradient = self.task, self.task.settings, self.flat.grad
        assert gradient is not None
        index = next(task.batches)
        sums = self.gradient(self.minibatch(index))
        # the nominal size, even for a smaller minibatch at the end of an epoch, so all examples have the same weight
        scale = 1.0 if task.sum_of_losses else 1.0 / settings.batch
        norm = torch.linalg.vector_norm(gradient) * scale
        gradient *= scale * torch.clamp(settings.clip / norm, max=1.0)
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(settings, self.update, task.total)
        self.optimizer.step()
        self.update += 1
        self.seen += len(index)
        self.sums.add(len(index), task.words(index), sums, norm > settings.clip, norm)
        if self.update % CHECK_EVERY == 0:
            self.check()

    def minibatch(self, index: Index) -> tuple[Tensor, ...]:
        """Return the tensors of examples, followed by their sequence numbers [B] in the training run, on the CPU.

        The sequence numbers determine the random draws.
        """
        numbers = torch.arange(len(index)) + self.update * self.task.settings.batch
        return *self.task.tensors(index, self.update), numbers

    def gradient(self, batch: tuple[Tensor, ...]) -> Tensor:
        """Fill the gradient by a CUDA graph or by threads; return the sums over the minibatch [number_of_sums]."""
        if self.generator is not None:
            self.generator.manual_seed(seed_of(self.task.seed, int(batch[-1][0])))
        if self.graphed is not None:
            return self.graphed(batch).reshape(-1)
        return self.threads.run(self.loss_and_gradient, batch).reshape(-1)

    def loss_and_gradient(self, model: nn.Module, *batch: Tensor) -> Tensor:
        """Fill the gradient of ``model`` and return the sums, given the tensors of ``minibatch``."""
        task, (*tensors, numbers) = self.task, batch
        source = numbers if self.generator is None else self.generator
        draws = Draws(source, task.seed, task.settings.dropout, task.sampler)
        return task.loss_and_gradient(model, *tensors, draws)

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

    def evaluate(self) -> Row:
        """Add a row to the learning curve, with the updates since the last row and the held-out results; return it."""
        self.check()
        task = self.task
        *_, clipped, norm = (value / max(self.sums.updates, 1) for value in self.sums.measured.tolist())
        row = {
            "update": self.update,
            task.examples.replace("-", ""): self.seen,
            "learning rate": learning_rate(task.settings, self.update - 1, task.total),
            "clip rate": clipped,
            "gradient norm": norm,
            **task.evaluate(self.seen, self.sums),
        }
        self.sums = Sums(task.number_of_sums, task.setup.device)
        self.history.append(row)
        if task.quality(row) > (task.quality(self.kept) if self.best else -math.inf):
            self.best = len(self.history) - 1, self.flat.detach().clone()
        return row

    @property
    def kept(self) -> Row:
        """Return the row of the learning curve whose parameters are saved: the best, or the last if no row is best."""
        return self.history[self.best[0] if self.best else -1]

    # checkpoints

    def state(self) -> dict[str, Any]:
        """Return everything that is needed to resume."""
        self.check()
        return {
            "parameters": self.flat.detach(),
            "optimizer": self.optimizer.state_dict(),
            "batches": self.task.batches.state(),
            "update": self.update,
            "seen": self.seen,
            "counts": [self.sums.updates, self.sums.examples, self.sums.words],
            "measured": self.sums.measured,
            "history": self.history,
            "best": self.best,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from a state that ``state`` returned."""
        self.flat.data.copy_(state["parameters"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.task.batches.restore(state["batches"])
        self.update, self.seen = state["update"], state["seen"]
        self.sums.updates, self.sums.examples, self.sums.words = state["counts"]
        self.sums.measured.copy_(state["measured"])
        self.history, self.best = state["history"], state["best"]

    def fingerprint(self) -> dict[str, object]:
        """Return all values on which the result depends, except the device and the number of threads.

        These two change the rounding. In addition, the device changes the dropout masks, and both change the samples of
        classes.
        """
        task = self.task
        version = {f"version of {NETWORKS.versioned(task.network)} train": NETWORKS[task.network].version}
        return {**version, **task.inputs, "seed": task.seed, **task.settings.as_dict()}

    # the output files

    def choose(self) -> Row:
        """Set the parameters to those that are to be saved; return their row of the learning curve."""
        if self.best is not None:
            self.flat.data.copy_(self.best[1])
        return self.kept

    def save(self, model_file: StrPath, history_file: StrPath) -> dict[str, object]:
        """Write the network with the chosen parameters, and the learning curve; return the statistics of the stage.

        After that, a training run with other settings may clear the checkpoint directory.
        """
        task, kept_row = self.task, self.choose()
        description: dict[str, object] = {"settings": task.settings.as_dict(), "seed": task.seed}
        description[f"kept {task.kept_by}"] = kept_row[task.kept_by]
        stats, entries = task.results(self.history, kept_row)
        task.save_model(model_file, description, stats)
        write_json(history_file, {**description, "parameters": self.flat.numel(), **entries, "curve": self.history})
        if self.checkpoint is not None:
            self.checkpoint.finish()
        return stats


def make_optimizer(flat: nn.Parameter, settings: TrainingSettings) -> torch.optim.Optimizer:
    """Create the optimizer: Adadelta (rho 0.95, eps 1e-6 as in the paper), AdamW with weight decay, or plain SGD."""
    rate = settings.learning_rate
    if settings.optimizer == "sgd":
        return torch.optim.SGD([flat], lr=rate)
    if settings.optimizer == "adadelta":
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
        # 1 for 2/3 of the updates (5 of 7.5 epochs), then halved every 1/15 of the updates (half an epoch)
        factor = 0.5 ** max((15 * update - 10 * total) // total + 1, 0)
    return settings.learning_rate * factor * min((update + 1) / (settings.warmup + 1), 1.0)


class TrainingLog:
    """The log of a training run: progress, speed, remaining time, learning curve."""

    def __init__(self, training: Training) -> None:
        self.training = training
        self.began = self.last = time.monotonic()
        self.first_update, self.first_seen = training.update, training.seen
        task = training.task
        say(
            f"{task.start_message()}; {training.flat.numel():,} parameters; on {task.setup}; "
            f"{'resuming after' if training.update else 'starting:'} {training.update:,} of {task.total:,} updates"
        )

    def progress(self) -> None:
        """Write a line if ``LOG_SECONDS`` have passed since the last one."""
        if time.monotonic() - self.last >= LOG_SECONDS:
            say(self._line())

    def evaluation(self, row: Row) -> None:
        """Write a line with a row of the learning curve."""
        task, without = self.training.task, self.training.without_better
        text = f"{self._line()}; {task.format(row)}"
        if without and task.patience < math.inf:
            text += f", no improvement for {without} of {task.patience} epochs"
        say(f"{text}; {100 * row['clip rate']:.0f} % of the updates clipped")

    def _line(self) -> str:
        """Return progress, speed and an upper bound of the remaining time as text."""
        training, total = self.training, self.training.task.total
        self.last = time.monotonic()
        seconds = max(self.last - self.began, 1e-9)
        left = (total - training.update) * seconds / max(training.update - self.first_update, 1)
        rate = (training.seen - self.first_seen) / seconds
        progress = f"update {training.update:,} of {total:,} ({100 * training.update / total:.0f} %)"
        return f"{progress}, {rate:,.0f} {training.task.examples}/s, at most {left:.0f} s left"
