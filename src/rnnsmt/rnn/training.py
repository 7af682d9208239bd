"""The training loop."""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from rnnsmt.checkpoint import Checkpoint
from rnnsmt.devices import Place
from rnnsmt.io import InputError, write_json
from rnnsmt.progress import LOG_SECONDS, say
from rnnsmt.rnn.batches import BatchStream, hold_out, words_of
from rnnsmt.rnn.gradients import Products, loss_and_gradient
from rnnsmt.rnn.heldout import HeldOut, unigram_likelihood
from rnnsmt.rnn.model import RNNEncoderDecoder
from rnnsmt.rnn.model_file import save_model, vocabularies_of
from rnnsmt.rnn.pairs import Pairs
from rnnsmt.rnn.presets import Settings
from rnnsmt.rnn.signals import Stop
from rnnsmt.stages import STAGES


@dataclass(frozen=True)
class Outputs:
    """Where a training writes, how often (seconds between checkpoints), and after how many seconds it must be over."""

    model: str | Path
    history: str | Path
    state_dir: str | Path
    save_every: float = 300.0
    time_limit: float | None = None


class Sums:
    """Figures since the last evaluation, added up on the device."""

    NAMES = ("loss", "words", "pairs", "clipped", "norm", "updates")

    def __init__(self, device: torch.device) -> None:
        self.values = torch.zeros(len(self.NAMES), dtype=torch.float64, device=device)

    def add(self, *values: Tensor | float) -> None:
        self.values += torch.stack([torch.as_tensor(value, dtype=torch.float64).to(self.values) for value in values])

    def read(self) -> dict[str, float]:
        return dict(zip(self.NAMES, self.values.tolist(), strict=True))


def flatten(model: nn.Module) -> nn.Parameter:
    """Lay all parameters, and all gradients, one after the other in one tensor each, of which they become views.

    Norm, clipping, the sum over processes and the optimiser then are one operation each.
    """
    parameters = list(model.parameters())
    flat = nn.Parameter(torch.cat([parameter.detach().flatten() for parameter in parameters]))
    flat.grad = torch.zeros_like(flat)
    sizes = [parameter.numel() for parameter in parameters]
    pieces = zip(parameters, flat.data.split(sizes), flat.grad.split(sizes), strict=True)
    for parameter, values, gradient in pieces:
        parameter.data = values.view_as(parameter)
        parameter.grad = gradient.view_as(parameter)
    return flat


def make_optimiser(flat: nn.Parameter, settings: Settings) -> torch.optim.Optimizer:
    """Adadelta with the paper's rho 0.95 and eps 1e-6, or Adam."""
    if settings.optimiser == "adadelta":
        return torch.optim.Adadelta([flat], lr=settings.learning_rate, rho=0.95, eps=1e-6)
    return torch.optim.Adam([flat], lr=settings.learning_rate, betas=(0.9, 0.999), eps=1e-8, fused=True)


def learning_rate(settings: Settings, update: int, total: int) -> float:
    """The learning rate of an update, from 0."""
    factor = 1.0 if settings.schedule == "constant" else max(1.0 - update / total, 0.0)
    return settings.learning_rate * factor * min((update + 1) / (settings.warmup + 1), 1.0)


class Trainer:
    """A network in training: one update after the other, evaluations, checkpoints."""

    def __init__(self, pairs: Pairs, settings: Settings, seed: int, place: Place) -> None:
        self.pairs, self.settings, self.seed, self.place = pairs, settings, seed, place
        sizes = settings.sizes(*(len(vocabulary) for vocabulary in pairs.vocabularies))
        self.model = RNNEncoderDecoder(sizes, seed, settings.deviation).to(place.device)
        self.flat = flatten(self.model)
        self.optimiser = make_optimiser(self.flat, settings)
        self.held_out = hold_out(len(pairs), settings.held_out, seed)
        self.stream = BatchStream(pairs, settings.batch, seed, self.held_out)
        self.total = settings.updates or self.stream.updates(settings.epochs)
        self.update = 0
        self.pairs_seen = 0
        self.sums = Sums(place.device)
        self.history: list[dict[str, Any]] = []
        self.best: tuple[float, Tensor] | None = None

    def fingerprint(self) -> dict[str, object]:
        """Everything that the result depends on."""
        version = STAGES["rnn"]["train"].version
        place = {
            "device": self.place.device.type,
            "threads": torch.get_num_threads(),
            "processes": self.place.processes,
        }
        return {
            "version": version,
            "pairs": self.pairs.fingerprint,
            "seed": self.seed,
            **self.settings.as_dict(),
            **place,
        }

    def step(self) -> None:
        """One update: loss and gradient of a minibatch, sum over the processes, clip, optimiser."""
        settings, place = self.settings, self.place
        index = next(self.stream)
        own = index[place.rank :: place.processes]
        assert self.flat.grad is not None
        if len(own):
            source, target = words_of(self.pairs, own, place.device)
            loss = self._loss_and_gradient(source, target)
        else:
            loss = self.flat.grad.zero_().sum(dtype=torch.float64)
        place.sum(self.flat.grad)
        # a minibatch at the end of an epoch may be smaller: its pairs weigh no more than others
        scale = 1.0 / settings.batch if settings.loss == "mean" else 1.0
        norm = torch.linalg.vector_norm(self.flat.grad) * scale
        self.flat.grad *= scale * torch.clamp(settings.clip / norm, max=1.0)
        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate(settings, self.update, self.total)
        self.optimiser.step()
        words = len(index) * int(self.pairs.sides[1].lengths(index[:1])[0])
        self.sums.add(loss, words, len(index), norm > settings.clip, norm, 1.0)
        self.update += 1
        self.pairs_seen += len(index)

    def _loss_and_gradient(self, source: Tensor, target: Tensor) -> Tensor:
        if self.settings.variant == "paper":
            return loss_and_gradient(self.model, source, target, Products(self.place.factors))
        assert self.flat.grad is not None
        self.flat.grad.zero_()
        lengths = [torch.full((side.shape[1],), len(side), device=side.device) for side in (source, target)]
        loss = -self.model.log_probability(source.t(), lengths[0], target.t(), lengths[1]).sum()
        loss.backward()
        return loss.detach().double()

    def evaluate(self, held_out: HeldOut) -> dict[str, Any]:
        """Add a line to the learning curve: what was trained since the last one, and the held-out pairs."""
        sums = self._finite()
        self.sums = Sums(self.place.device)
        row: dict[str, Any] = {
            "update": self.update,
            "pairs": self.pairs_seen,
            "epoch": round(self.pairs_seen / max(len(self.pairs) - len(self.held_out), 1), 4),
            "learning rate": learning_rate(self.settings, max(self.update - 1, 0), self.total),
        }
        if sums["updates"]:
            row |= {
                "train log p per pair": -sums["loss"] / sums["pairs"],
                "train log p per word": -sums["loss"] / sums["words"],
                "clip rate": sums["clipped"] / sums["updates"],
                "gradient norm": sums["norm"] / sums["updates"],
            }
        if len(self.held_out):
            likelihood = held_out.likelihood(self.model)
            row |= {"held-out log p per pair": likelihood.per_pair, "held-out log p per word": likelihood.per_word}
            if self.settings.keep == "best" and (self.best is None or likelihood.per_pair > self.best[0]):
                self.best = (likelihood.per_pair, self.flat.detach().clone())
        self.history.append(row)
        return row

    def _finite(self) -> dict[str, float]:
        """The sums, summed over all processes; stops where they have become NaN or infinite."""
        sums = self.sums.read()
        losses = self.place.sum(torch.tensor(sums["loss"], dtype=torch.float64, device=self.place.device))
        sums["loss"] = float(losses)
        if not all(math.isfinite(value) for value in sums.values()):
            raise InputError(
                f"the loss became infinite or not a number between updates {self.update - int(sums['updates'])} and "
                f"{self.update}; use a lower --learning-rate or --clip, or --precision float32; the last good "
                "checkpoint is kept"
            )
        return sums

    def state(self) -> dict[str, Any]:
        """Everything that a continuation needs; refuses to be taken after a NaN."""
        self._finite()
        return {
            "parameters": self.flat.detach(),
            "optimiser": self.optimiser.state_dict(),
            "stream": self.stream.state(),
            "update": self.update,
            "pairs seen": self.pairs_seen,
            "sums": self.sums.values,
            "history": self.history,
            "best": list(self.best) if self.best else None,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on where ``state`` was taken."""
        self.flat.data.copy_(state["parameters"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.stream.restore(state["stream"])
        self.update, self.pairs_seen = state["update"], state["pairs seen"]
        self.sums.values.copy_(state["sums"])
        self.history = state["history"]
        self.best = (state["best"][0], state["best"][1]) if state["best"] else None

    def evaluations(self) -> Iterator[int]:
        """After which updates the held-out pairs are looked at."""
        number = min(self.settings.evaluations, self.total)
        return (round(self.total * k / number) for k in range(1, number + 1))


def train(pairs: Pairs, settings: Settings, seed: int, place: Place, outputs: Outputs) -> dict[str, object]:
    """Train a network and write it with its learning curve; the figures of the stage.

    Raises:
        InputError: a checkpoint of other settings, or a loss that is not a number.
        SystemExit: 75, stopped by SIGTERM or the time limit with its state saved.
    """
    trainer = Trainer(pairs, settings, seed, place)
    checkpoint = Checkpoint(outputs.state_dir, trainer.fingerprint())
    saved = checkpoint.load(place.device)
    if saved is not None:
        trainer.restore(saved)
    held_out = HeldOut(pairs, trainer.held_out, place)
    tell = say if place.first else lambda text: None
    unigram = unigram_likelihood(pairs, trainer.held_out)
    tell(
        f"{len(pairs):,} pairs, {len(trainer.held_out):,} of them held out; "
        f"{trainer.model.sizes.count():,} parameters; "
        f"{'goes on after' if trainer.update else 'begins:'} {trainer.update:,} of {trainer.total:,} updates"
    )
    due = set(trainer.evaluations())
    progress = Progress(trainer)
    with Stop(outputs.time_limit) as stop:
        last_save = time.monotonic()
        while trainer.update < trainer.total:
            trainer.step()
            if trainer.update in due:
                row = trainer.evaluate(held_out)
                tell(progress.evaluation(row, unigram.per_word))
            elif progress.is_due():
                tell(progress.line())
            now = time.monotonic()
            stopping = place.any(stop.asked()) if trainer.update % stop.EVERY == 0 or place.processes == 1 else False
            if place.first and (stopping or now - last_save > outputs.save_every):
                checkpoint.save(trainer.state())
                last_save = time.monotonic()
            if stopping:
                tell(f"stopped {stop.reason()}; saved after {trainer.update:,} of {trainer.total:,} updates: run again")
                raise SystemExit(stop.exit_code())
    return finish(trainer, unigram.per_word, outputs, checkpoint)


def finish(trainer: Trainer, unigram: float, outputs: Outputs, checkpoint: Checkpoint) -> dict[str, object]:
    """Write the model and its learning curve."""
    settings, place = trainer.settings, trainer.place
    last = trainer.history[-1]
    chosen = last
    if trainer.best is not None:
        trainer.flat.data.copy_(trainer.best[1])
        chosen = next(row for row in trainer.history if row["held-out log p per pair"] == trainer.best[0])
    if place.first:
        meta = {"settings": settings.as_dict(), "seed": trainer.seed, "update": chosen["update"]}
        meta |= vocabularies_of(trainer.pairs) | {"pairs": trainer.pairs.fingerprint}
        save_model(outputs.model, trainer.model, meta)
        history = {"settings": settings.as_dict(), "seed": trainer.seed, "parameters": trainer.model.sizes.count()}
        history |= {"held-out unigram log p per word": unigram, "kept update": chosen["update"]}
        write_json(outputs.history, history | {"curve": trainer.history})
    figures: dict[str, object] = {"updates": trainer.update, "pairs seen": trainer.pairs_seen}
    for name in ("held-out log p per pair", "held-out log p per word"):
        if name in chosen:
            figures[name] = chosen[name]
    return figures | {"unigram per word": unigram, "clip rate": last.get("clip rate", 0.0)}


class Progress:
    """What the log says: rate and expected time."""

    def __init__(self, trainer: Trainer) -> None:
        self.trainer = trainer
        self.began = self.last = time.monotonic()
        self.first_update, self.first_pair = trainer.update, trainer.pairs_seen

    def is_due(self) -> bool:
        return time.monotonic() - self.last >= LOG_SECONDS

    def line(self) -> str:
        trainer = self.trainer
        self.last = time.monotonic()
        seconds = max(self.last - self.began, 1e-9)
        done = trainer.update - self.first_update
        left = (trainer.total - trainer.update) * seconds / max(done, 1)
        rate = (trainer.pairs_seen - self.first_pair) / seconds
        return (
            f"update {trainer.update:,} of {trainer.total:,} ({100 * trainer.update / trainer.total:.0f} %), "
            f"{rate:,.0f} pairs/s, about {left:.0f} s left"
        )

    def evaluation(self, row: dict[str, Any], unigram: float) -> str:
        text = f"{self.line()}; log p per word: trained {row['train log p per word']:.4f}"
        if "held-out log p per word" in row:
            text += f", held out {row['held-out log p per word']:.4f} (unigrams {unigram:.4f})"
        return f"{text}; clipped {100 * row['clip rate']:.0f} %"
