"""A network in training: updates, evaluations, and the state that a continuation needs."""

import math
from functools import partial
from typing import Any

import torch
from torch import Tensor

from rnnsmt.devices import Place
from rnnsmt.io import InputError
from rnnsmt.optimising import flatten, learning_rate, make_optimiser
from rnnsmt.products import Products
from rnnsmt.rnn.batches import BatchStream, hold_out, words_of
from rnnsmt.rnn.gradients import loss_and_any_gradient
from rnnsmt.rnn.heldout import HeldOut
from rnnsmt.rnn.model import RNNEncoderDecoder
from rnnsmt.rnn.pairs import Pairs
from rnnsmt.rnn.presets import Settings
from rnnsmt.stages import STAGES
from rnnsmt.workers import Workers

CHECK_EVERY = 100
"""After how many updates the loss must be a number; asking makes a GPU wait."""


class Sums:
    """Figures since the last evaluation: counts, and on the device the loss, clipped updates and gradient norms."""

    def __init__(self, device: torch.device) -> None:
        self.counts = {"updates": 0, "pairs": 0, "words": 0}
        self.measured = torch.zeros(3, dtype=torch.float64, device=device)

    def add(self, pairs: int, words: int, loss: Tensor, clipped: Tensor, norm: Tensor) -> None:
        """Count one update: its pairs and target words, -sum log p, whether it was clipped, the gradient's norm."""
        for name, number in (("updates", 1), ("pairs", pairs), ("words", words)):
            self.counts[name] += number
        self.measured += torch.stack([loss, clipped.double(), norm.double()])

    def means(self) -> dict[str, float]:
        """What the learning curve says about the updates so far."""
        loss, clipped, norm = self.measured.tolist()
        return {
            "train log p per pair": -loss / self.counts["pairs"],
            "train log p per word": -loss / self.counts["words"],
            "clip rate": clipped / self.counts["updates"],
            "gradient norm": norm / self.counts["updates"],
        }


class Trainer:
    """A network in training. Every process has one; all hold the same parameters and draw the same minibatches."""

    def __init__(self, pairs: Pairs, settings: Settings, seed: int, place: Place, threads: int = 1) -> None:
        self.pairs, self.settings, self.seed, self.place = pairs, settings, seed, place
        sizes = settings.sizes(*(len(vocabulary) for vocabulary in pairs.vocabularies))
        self.model = RNNEncoderDecoder(sizes, seed, settings.deviation).to(place.device)
        self.flat = flatten(self.model)
        self.optimiser = make_optimiser(self.flat, settings)
        gradient = partial(loss_and_any_gradient, Products(place.factors))
        self.gradient_of = Workers(self.model, self.flat, threads, gradient, 1)
        self.held_out = hold_out(len(pairs), settings.held_out, seed)
        self.stream = BatchStream(pairs, settings.batch, seed, self.held_out)
        self.total = settings.updates or self.stream.updates(settings.epochs)
        self.update = 0
        self.pairs_seen = 0
        self.sums = Sums(place.device)
        self.history: list[dict[str, Any]] = []
        self.best: tuple[float, Tensor] | None = None

    def fingerprint(self) -> dict[str, object]:
        """Everything that the result depends on, but for the rounding of another device or number of threads."""
        version = STAGES["rnn"]["train"].version
        pairs = self.pairs.fingerprint
        return {"version of rnn train": version, "pairs": pairs, "seed": self.seed, **self.settings.as_dict()}

    def step(self) -> None:
        """One update: loss and gradient of a minibatch, their sum over the processes, clipping, the optimiser."""
        settings, place, gradient = self.settings, self.place, self.flat.grad
        assert gradient is not None
        index = next(self.stream)
        own = index[place.rank :: place.processes]
        if len(own):
            loss = self.gradient_of(*words_of(self.pairs, own, place.device))
        else:
            loss = gradient.zero_().sum(dtype=torch.float64)
        place.sum(gradient)
        place.sum(loss)
        # a minibatch at the end of an epoch may be smaller: its pairs weigh as much as others
        scale = 1.0 / settings.batch if settings.loss == "mean" else 1.0
        norm = torch.linalg.vector_norm(gradient) * scale
        gradient *= scale * torch.clamp(settings.clip / norm, max=1.0)
        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate(settings, self.update, self.total)
        self.optimiser.step()
        self.update += 1
        self.pairs_seen += len(index)
        words = len(index) * int(self.pairs.sides[1].lengths(index[:1])[0])
        self.sums.add(len(index), words, loss, norm > settings.clip, norm)
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

    def evaluate(self, held_out: HeldOut) -> dict[str, Any]:
        """Add a row to the learning curve: the updates since the last one, and the held-out pairs."""
        self.check()
        row: dict[str, Any] = {
            "update": self.update,
            "pairs": self.pairs_seen,
            "epoch": round(self.pairs_seen / (len(self.pairs) - len(self.held_out)), 4),
            "learning rate": learning_rate(self.settings, self.update - 1, self.total),
            **self.sums.means(),
        }
        self.sums = Sums(self.place.device)
        if len(self.held_out):
            found = held_out.likelihood(self.model)
            row |= {"held-out log p per pair": found.per_pair, "held-out log p per word": found.per_word}
            if self.settings.keep == "best" and (self.best is None or found.per_pair > self.best[0]):
                self.best = (found.per_pair, self.flat.detach().clone())
        self.history.append(row)
        return row

    def evaluations(self) -> set[int]:
        """After which updates the held-out pairs are looked at, the last one among them."""
        number = min(self.settings.evaluations, self.total)
        return {round(self.total * k / number) for k in range(1, number + 1)}

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
            "pairs seen": self.pairs_seen,
            "counts": self.sums.counts,
            "measured": self.sums.measured,
            "history": self.history,
            "best": list(self.best) if self.best else None,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on where ``state`` was taken."""
        self.flat.data.copy_(state["parameters"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.stream.restore(state["stream"])
        self.update, self.pairs_seen = state["update"], state["pairs seen"]
        self.sums.counts = state["counts"]
        self.sums.measured = state["measured"]
        self.history = state["history"]
        self.best = (state["best"][0], state["best"][1]) if state["best"] else None

    def choose(self) -> dict[str, Any]:
        """Take the parameters that are to be kept; the row of the learning curve that they belong to."""
        if self.best is None:
            return self.history[-1]
        self.flat.data.copy_(self.best[1])
        return next(row for row in self.history if row["held-out log p per pair"] == self.best[0])
