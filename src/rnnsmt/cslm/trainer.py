"""A CSLM in training: updates, evaluations, and the state that a continuation needs."""

import math
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rnnsmt.cslm.gradients import Dropout, loss_and_gradient
from rnnsmt.cslm.model import FeedForwardLM
from rnnsmt.cslm.ngrams import NGramStream, Places, contexts_at, hold_out
from rnnsmt.cslm.presets import Settings
from rnnsmt.cslm.text import Text
from rnnsmt.cslm.validation import Validation, class_counts, unigram_log_p
from rnnsmt.devices import Place
from rnnsmt.io import InputError
from rnnsmt.optimising import flatten, learning_rate, make_optimiser
from rnnsmt.products import Products
from rnnsmt.rnn.vocabulary import UNK
from rnnsmt.stages import STAGES
from rnnsmt.workers import Workers

CHECK_EVERY = 100
"""After how many updates the loss must be a number; asking makes a GPU wait."""


def perplexity(log_p: float) -> float:
    """Of a mean natural logarithm; infinity where it is too large for a number."""
    return math.exp(min(-log_p, 700.0))


class Sums:
    """Figures since the last evaluation: updates, n-grams; on the device -ln p, (ln Z)^2, clipped updates, norms."""

    def __init__(self, device: torch.device) -> None:
        self.updates = self.ngrams = 0
        self.measured = torch.zeros(4, dtype=torch.float64, device=device)

    def add(self, ngrams: int, sums: Tensor, clipped: Tensor, norm: Tensor) -> None:
        """Count one update."""
        self.updates += 1
        self.ngrams += ngrams
        self.measured += torch.cat([sums, torch.stack([clipped.double(), norm.double()])])

    def means(self) -> dict[str, float]:
        """What the learning curve says about the updates so far; dropout and penalty are in force there."""
        loss, _, clipped, norm = self.measured.tolist()
        updates = max(self.updates, 1)
        return {
            "train perplexity": perplexity(-loss / max(self.ngrams, 1)),
            "clip rate": clipped / updates,
            "gradient norm": norm / updates,
        }


class Trainer:
    """A network in training. Every process has one; all hold the same parameters and draw the same minibatches."""

    def __init__(self, text: Text, settings: Settings, seed: int, place: Place, threads: int = 1) -> None:
        self.text, self.settings, self.seed, self.place = text, settings, seed, place
        self.held_out = hold_out(len(text), settings.held_out, settings.held_out_least, seed)
        counts = class_counts(text, self.held_out)
        self.unigram = unigram_log_p(text, self.held_out, counts)
        self.rare = counts == 2  # one was added to each
        self.model = FeedForwardLM(settings.sizes(len(text.vocabulary)), seed, settings.spread)
        if settings.output_bias == "unigram":
            self.model.b_o.data.copy_(torch.from_numpy(counts / counts.sum()).log())
        self.model.to(place.device)
        self.flat = flatten(self.model)
        self.optimiser = make_optimiser(self.flat, settings)
        dropout = Dropout(settings.dropout, seed)
        gradient = partial(loss_and_gradient, Products(place.factors), settings.self_normalised, dropout)
        self.gradient_of = Workers(self.model, self.flat, threads, gradient, 0)
        self.stream = NGramStream(len(text), settings.batch, seed, self.held_out)
        self.validation = Validation(text, self.held_out, self.model.sizes.context, place, counts)
        self.total = settings.epochs * self.stream.updates
        self.update = self.ngrams_seen = 0
        self.sums = Sums(place.device)
        self.history: list[dict[str, Any]] = []
        self.best: tuple[int, Tensor] | None = None
        """The row of the learning curve with the best validation perplexity, and the parameters then."""

    def fingerprint(self) -> dict[str, object]:
        """Everything that the result depends on, but for the rounding of another device or number of threads."""
        version = STAGES["cslm"]["train"].version
        text = self.text.fingerprint
        return {"version of cslm train": version, "text": text, "seed": self.seed, **self.settings.as_dict()}

    @property
    def epochs_without_better(self) -> int:
        """Since the best validation perplexity."""
        return len(self.history) - 1 - self.best[0] if self.best else 0

    @property
    def finished(self) -> bool:
        """All epochs are over, or too many of them brought nothing."""
        return len(self.history) >= self.settings.epochs or self.epochs_without_better >= self.settings.patience

    def step(self) -> None:
        """One update: loss and gradient of a minibatch, their sum over the processes, clipping, the optimiser."""
        settings, place, gradient = self.settings, self.place, self.flat.grad
        assert gradient is not None
        places = next(self.stream)
        own = places[place.rank :: place.processes]
        sums = self.gradient_of(*self._batch(own)) if len(own) else gradient.zero_()[:2].double()
        place.sum(gradient)
        place.sum(sums)
        # a minibatch at the end of an epoch may be smaller: its n-grams weigh as much as others
        norm = torch.linalg.vector_norm(gradient) / settings.batch
        gradient *= torch.clamp(settings.clip / norm, max=1.0) / settings.batch
        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate(settings, self.update, self.total)
        self.optimiser.step()
        self.update += 1
        self.ngrams_seen += len(places)
        self.sums.add(len(places), sums, norm > settings.clip, norm)
        if self.update % CHECK_EVERY == 0:
            self.check()

    def _batch(self, places: Places) -> tuple[Tensor, Tensor, Tensor]:
        """Contexts [B, C], words [B] and numbers [B] of the n-grams of this process."""
        device = self.place.device
        contexts = contexts_at(self.text.words, places, self.model.sizes.context, self.text.vocabulary.eos)
        ids = np.concatenate([contexts, self.text.words[places][:, None]], 1)
        if self.settings.singletons:
            draws = np.random.default_rng([self.seed, 4, self.update, self.place.rank]).random(ids.shape, np.float32)
            ids[self.rare[ids] & (draws < self.settings.singletons)] = UNK
        tensor = torch.from_numpy(ids).to(device)
        rows = torch.arange(len(places), device=device) * self.place.processes + self.place.rank
        return tensor[:, :-1], tensor[:, -1], rows + self.update * self.settings.batch

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

    @property
    def at_end_of_epoch(self) -> bool:
        """Whether a row of the learning curve is due."""
        return self.stream.position == 0 and self.update > 0

    def evaluate(self) -> dict[str, Any]:
        """Add a row to the learning curve: the epoch that has ended, and the validation n-grams."""
        self.check()
        row: dict[str, Any] = {
            "epoch": len(self.history) + 1,
            "update": self.update,
            "ngrams": self.ngrams_seen,
            "learning rate": learning_rate(self.settings, self.update - 1, self.total),
            **self.sums.means(),
        }
        if self.settings.self_normalised and self.sums.ngrams:
            row["train (ln Z)^2"] = self.sums.measured[1].item() / self.sums.ngrams
        self.sums = Sums(self.place.device)
        self.history.append(row)
        if self.validation.number:
            found = self.validation.measure(self.model)
            row |= {"validation perplexity": perplexity(found.log_p), "validation |ln Z|": found.log_sum}
            if self.best is None or row["validation perplexity"] < self.kept()["validation perplexity"]:
                self.best = len(self.history) - 1, self.flat.detach().clone()
        return row

    def kept(self) -> dict[str, Any]:
        """The row of the learning curve whose parameters are kept: the best, or the last without validation."""
        return self.history[self.best[0] if self.best else -1]

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
            "ngrams seen": self.ngrams_seen,
            "counts": [self.sums.updates, self.sums.ngrams],
            "measured": self.sums.measured,
            "history": self.history,
            "best": list(self.best) if self.best else None,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on where ``state`` was taken."""
        self.flat.data.copy_(state["parameters"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.stream.restore(state["stream"])
        self.update, self.ngrams_seen = state["update"], state["ngrams seen"]
        self.sums.updates, self.sums.ngrams = state["counts"]
        self.sums.measured = state["measured"]
        self.history = state["history"]
        self.best = (state["best"][0], state["best"][1]) if state["best"] else None
