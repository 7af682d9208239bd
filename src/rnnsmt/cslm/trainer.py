"""A CSLM in training."""

import math
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rnnsmt.cslm.gradients import DROPOUT_ROWS, Dropout, loss_and_gradient
from rnnsmt.cslm.model import FeedForwardLM
from rnnsmt.cslm.ngrams import NGramStream, Places, contexts_at, hold_out
from rnnsmt.cslm.presets import Settings
from rnnsmt.cslm.text import Text
from rnnsmt.cslm.validation import Validation, class_counts, unigram_log_p
from rnnsmt.devices import Place
from rnnsmt.networks import trainer
from rnnsmt.networks.products import Products
from rnnsmt.networks.vocabulary import UNK
from rnnsmt.stages import STAGES


def perplexity(log_p: float) -> float:
    """Of a mean natural logarithm; infinity where it is too large for a number."""
    return math.exp(min(-log_p, 700.0))


class Trainer(trainer.Trainer):
    """A network and the text that it learns from."""

    examples = "n-grams"
    figures = 2  # and the sum of (ln Z)^2

    def __init__(self, text: Text, settings: Settings, seed: int, place: Place, threads: int = 1) -> None:
        self.text, self.settings, self.seed = text, settings, seed
        self.held_out = hold_out(len(text), settings.held_out, settings.held_out_least, seed)
        counts = class_counts(text, self.held_out)
        self.unigram = unigram_log_p(text, self.held_out, counts)
        self.rare = counts == 2  # one was added to each
        self.rare[text.vocabulary.eos] = False
        self.model = FeedForwardLM(settings.sizes(len(text.vocabulary)), seed, settings.spread)
        if settings.output_bias == "unigram":
            self.model.b_o.data.copy_(torch.from_numpy(counts / counts.sum()).log())
        self.model.to(place.device)
        self.validation = Validation(text, self.held_out, self.model.sizes.context, place, counts)
        self.ngrams = NGramStream(len(text), settings.batch, seed, self.held_out)
        self.total = settings.epochs * self.ngrams.updates
        dropout = Dropout(settings.dropout, seed)
        gradient = partial(loss_and_gradient, Products(place.factors), settings.self_normalised, dropout)
        super().__init__(self.model, settings, place, self.ngrams, gradient, 0, threads, DROPOUT_ROWS)

    def fingerprint(self) -> dict[str, object]:
        version = STAGES["cslm"]["train"].version
        text = self.text.fingerprint
        return {"version of cslm train": version, "text": text, "seed": self.seed, **self.settings.as_dict()}

    def minibatch(self, index: Places) -> tuple[Tensor, ...]:
        """Contexts [B, C], words [B] and numbers [B] of n-grams."""
        device = self.place.device
        contexts = contexts_at(self.text.words, index, self.model.sizes.context, self.text.vocabulary.eos)
        ids = np.concatenate([contexts, self.text.words[index][:, None]], 1)
        if self.settings.singletons:
            draws = np.random.default_rng([self.seed, 4, self.update, self.place.rank]).random(ids.shape, np.float32)
            ids[self.rare[ids] & (draws < self.settings.singletons)] = UNK
        tensor = torch.from_numpy(ids).to(device)
        rows = torch.arange(len(index), device=device) * self.place.processes + self.place.rank
        return tensor[:, :-1], tensor[:, -1], rows + self.update * self.settings.batch

    def words(self, index: Places) -> int:
        return len(index)

    @property
    def epochs_without_better(self) -> int:
        """Since the best validation perplexity."""
        return len(self.history) - 1 - self.best[0] if self.best else 0

    @property
    def finished(self) -> bool:
        """All epochs are over, or too many of them brought nothing."""
        return len(self.history) >= self.settings.epochs or self.epochs_without_better >= self.settings.patience

    @property
    def evaluation_due(self) -> bool:
        """An epoch is over."""
        return self.ngrams.position == 0 and self.update > 0

    def measure(self, row: dict[str, Any]) -> bool:
        loss, squares = (self.sums.measured[:2] / max(self.sums.examples, 1)).tolist()
        row["epoch"] = len(self.history) + 1
        row["train perplexity"] = perplexity(-loss)  # with dropout and penalty in force
        if self.settings.self_normalised:
            row["train (ln Z)^2"] = squares
        if not self.validation.number:
            return False
        found = self.validation.measure(self.model)
        row |= {"validation perplexity": perplexity(found.log_p), "validation |ln Z|": found.log_sum}
        return self.best is None or row["validation perplexity"] < self.kept["validation perplexity"]

    def begins(self) -> str:
        return f"{len(self.text):,} n-grams, {self.validation.number:,} of them for validation"

    def says(self, row: dict[str, Any]) -> str:
        text = f"epoch {row['epoch']}: perplexity trained {row['train perplexity']:.2f}"
        if "validation perplexity" in row:
            text += f", validation {row['validation perplexity']:.2f} (unigrams {perplexity(self.unigram):.0f})"
            if self.settings.self_normalised:
                text += f", |ln Z| {row['validation |ln Z|']:.3f}"
            if self.epochs_without_better:
                text += f", not better for {self.epochs_without_better} of {self.settings.patience} epochs"
        return text
