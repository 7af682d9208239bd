"""Drawing ln Z nearer to 0 without changing a probability.

The softmax does not change when the same number is added to all output units. A linear function of the last hidden
layer, a . g + c, is such a number: taking a from every row of W_o and c from every b_o changes ln Z and nothing else.
Here a and c are those that fit ln Z of the training n-grams best. Dropout is why a network that was trained
self-normalised needs it: the penalty saw networks with units left out, and the whole one has other sums.

A CSLM in training.

Training of a CSLM, to the end or to the next stop.
"""

import math
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rnnsmt.cslm.gradients import DROPOUT_ROWS, Dropout, loss_and_gradient
from rnnsmt.cslm.model import FeedForwardLM, save_model
from rnnsmt.cslm.ngrams import NGramStream, Places, contexts_at, hold_out
from rnnsmt.cslm.settings import Settings
from rnnsmt.cslm.text import Text
from rnnsmt.cslm.validation import Validation, class_counts, unigram_log_p
from rnnsmt.io import write_json
from rnnsmt.networks import training as networks
from rnnsmt.networks.devices import Place
from rnnsmt.networks.softmax import Products
from rnnsmt.networks.training import Figures, Outputs
from rnnsmt.networks.vocabulary import UNK
from rnnsmt.stages import STAGES

NGRAMS = 20_000

ROWS = 256

RIDGE = 1e-3
"""Times the mean square of a hidden unit: keeps units that are always 0 out."""


@torch.no_grad()
def centre(model: FeedForwardLM, text: Text, held_out: Places, seed: int) -> None:
    """Change W_o and b_o in place, by n-grams of the text that the seed chooses, none of them held out."""
    places = np.unique(np.random.default_rng([seed, 5]).integers(0, len(text), NGRAMS))
    places = np.setdiff1d(places, held_out, assume_unique=True)
    contexts = torch.from_numpy(contexts_at(text.words, places, model.sizes.context, text.vocabulary.eos))
    hidden, log_sums = [], []
    for part in contexts.to(model.R.device).split(ROWS):
        g = model.hidden(part)
        hidden.append(g.double().cpu().numpy())
        log_sums.append(torch.logsumexp(g @ model.W_o.t() + model.b_o, 1).double().cpu().numpy())
    x, y = np.concatenate(hidden), np.concatenate(log_sums)
    x_mean, y_mean = x.mean(0), y.mean()
    x, y = x - x_mean, y - y_mean
    square = float((x**2).mean())
    if square > np.finfo(np.float32).tiny:
        ridge = RIDGE * len(x) * square * np.eye(x.shape[1])
        a = np.linalg.solve(x.T @ x + ridge, x.T @ y)
    else:  # the hidden layer is the same everywhere
        a = np.zeros(x.shape[1])
    model.W_o.sub_(torch.from_numpy(a).to(model.W_o))
    model.b_o.sub_(float(y_mean - x_mean @ a))


def perplexity(log_p: float) -> float:
    """Of a mean natural logarithm; infinity where it is too large for a number."""
    return math.exp(min(-log_p, 700.0))


class Trainer(networks.Trainer):
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


def train(text: Text, settings: Settings, seed: int, place: Place, outputs: Outputs, threads: int = 1) -> Figures:
    """Train a network, or go on with one, and write it with its learning curve; the figures of the stage.

    Raises:
        InputError, SystemExit: as ``rnnsmt.networks.training.run``.
    """
    return networks.run(partial(Trainer, text, settings, seed, place, threads), outputs, write)


def write(trainer: Trainer, outputs: Outputs) -> Figures:
    """Write the network and its learning curve."""
    settings, kept = trainer.settings, trainer.choose()
    about = {"settings": settings.as_dict(), "seed": trainer.seed, "kept epoch": kept["epoch"]}
    if settings.self_normalised:
        centre(trainer.model, trainer.text, trainer.held_out, trainer.seed)
    figures: Figures = {"epochs": len(trainer.history), "kept epoch": kept["epoch"]}
    if trainer.validation.number:
        log_sum = trainer.validation.measure(trainer.model).log_sum
        figures |= {"validation perplexity": kept["validation perplexity"], "validation |ln Z|": log_sum}
        figures["unigram perplexity"] = perplexity(trainer.unigram)
    if trainer.place.first:
        vocabulary, normalised = trainer.text.vocabulary, settings.self_normalised > 0
        meta = {**about, "text": trainer.text.fingerprint, "vocabulary": vocabulary.hash(), **figures}
        save_model(outputs.model, trainer.model, vocabulary, normalised, meta)
        sizes: Figures = {"parameters": trainer.model.sizes.count(), "validation ngrams": trainer.validation.number}
        sizes |= {"computed on": trainer.place.describe()}
        write_json(outputs.history, about | sizes | figures | {"curve": trainer.history})
    return figures
