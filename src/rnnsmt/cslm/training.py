"""Training of a CSLM on text; the loop is in ``rnnsmt.networks.training``.

A network that was trained self-normalised is centred at the end, which moves its ln Z closer to 0.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rnnsmt.base.io import write_json
from rnnsmt.cslm.batches import NGramBatches
from rnnsmt.cslm.gradients import loss_and_gradient
from rnnsmt.cslm.model import FeedForwardLM, save_model
from rnnsmt.cslm.ngrams import contexts_at
from rnnsmt.cslm.settings import CslmSettings
from rnnsmt.cslm.text import Text
from rnnsmt.cslm.validation import HeldOutNGrams, class_counts, unigram_log_p
from rnnsmt.networks.batches import Index, draw_held_out
from rnnsmt.networks.devices import Place
from rnnsmt.networks.dropout import DROPOUT_ROWS, Dropout
from rnnsmt.networks.softmax import ClassSampler, Products
from rnnsmt.networks.training import Trainer, perplexity_of
from rnnsmt.networks.vocabulary import UNK
from rnnsmt.stages import STAGES


class CslmTrainer(Trainer):
    """The training of a network on a text."""

    examples = "n-grams"
    n_sums = 2  # -ln p and (ln Z)^2

    def __init__(self, text: Text, settings: CslmSettings, seed: int, place: Place, threads: int = 1) -> None:
        self.text, self.settings, self.seed = text, settings, seed
        self.held_out = draw_held_out(len(text), settings.held_out_of(len(text)), seed)
        counts = class_counts(text, self.held_out)
        self.rare = counts == 2  # words that occur once: class_counts adds one
        self.rare[text.vocabulary.eos] = False
        self.validation = HeldOutNGrams(text, self.held_out, settings.order - 1, place, counts)
        self.unigram = unigram_log_p(text, self.held_out, counts)
        self.ngrams = NGramBatches(len(text), settings.batch, seed, self.held_out)
        self.total = settings.epochs * self.ngrams.updates
        self.products, self.dropout = Products(place.matmul_dtype), Dropout(settings.dropout, seed)
        self.sampler = None
        if settings.sampled_classes:
            predicted = np.where(self.rare, counts - settings.singletons, counts)  # expected, the others become UNK
            predicted[UNK] += settings.singletons * np.count_nonzero(self.rare)
            self.sampler = ClassSampler(predicted, settings.sampled_classes, seed)
        self.model = FeedForwardLM(settings.sizes(len(text.vocabulary)), seed, settings.spread)
        if settings.output_bias == "unigram":
            self.model.b_o.data.copy_(torch.from_numpy(counts / counts.sum()).log())
        self.model.to(place.device)
        super().__init__(self.model, settings, place, self.ngrams, threads, dimension=0, grain=DROPOUT_ROWS)

    def fingerprint(self) -> dict[str, object]:
        version = STAGES["cslm"]["train"].version
        text = self.text.fingerprint
        return {"version of cslm train": version, "text": text, "seed": self.seed, **self.settings.as_dict()}

    def minibatch(self, index: Index) -> tuple[Tensor, ...]:
        """Return contexts [B, C], words [B] and, in CPU memory, the running numbers [B] of the n-grams."""
        contexts = contexts_at(self.text.words, index, self.model.sizes.context, self.text.vocabulary.eos)
        ids = np.concatenate([contexts, self.text.words[index][:, None]], 1)
        if self.settings.singletons:
            draws = np.random.default_rng([self.seed, 4, self.update, self.place.rank]).random(ids.shape, np.float32)
            ids[self.rare[ids] & (draws < self.settings.singletons)] = UNK
        tensor = torch.from_numpy(ids).to(self.place.device)
        rows = torch.arange(len(index)) * self.place.processes + self.place.rank
        return tensor[:, :-1], tensor[:, -1], rows + self.update * self.settings.batch

    def loss_and_gradient(self, model: FeedForwardLM, *batch: Tensor) -> Tensor:
        contexts, words, rows = batch
        return loss_and_gradient(
            model, contexts, words, rows, self.products, self.settings.self_normalised, self.dropout, self.sampler
        )

    @property
    def same_launches(self) -> bool:
        return not self.dropout.limit and self.sampler is None

    def words(self, index: Index) -> int:
        return len(index)

    @property
    def epochs_without_better(self) -> int:
        """Return the number of epochs since the best validation perplexity."""
        return len(self.history) - 1 - self.best[0] if self.best else 0

    @property
    def finished(self) -> bool:
        """Return whether all epochs are over, or ``patience`` epochs without an improvement have passed."""
        return len(self.history) >= self.settings.epochs or self.epochs_without_better >= self.settings.patience

    @property
    def evaluation_due(self) -> bool:
        """Return whether an epoch is over."""
        return self.ngrams.position == 0 and self.update > 0

    def measure(self, row: dict[str, Any]) -> bool:
        loss, squares = (self.sums.measured[:2] / max(self.sums.examples, 1)).tolist()
        row["epoch"] = len(self.history) + 1
        row["train perplexity"] = perplexity_of(-loss)  # with dropout and penalty in force
        if self.settings.self_normalised:
            row["train (ln Z)^2"] = squares
        if not self.validation.number:
            return False
        found = self.validation.measure(self.model)
        row |= {"validation perplexity": perplexity_of(found.log_p), "validation |ln Z|": found.log_sum}
        return self.best is None or row["validation perplexity"] < self.kept["validation perplexity"]

    def save(self, model_file: str | Path, history_file: str | Path) -> dict[str, object]:
        settings, kept = self.settings, self.choose()
        about = {"settings": settings.as_dict(), "seed": self.seed, "kept epoch": kept["epoch"]}
        if settings.self_normalised:
            centre(self.model, self.text, self.held_out, self.seed)
        stats: dict[str, object] = {"epochs": len(self.history), "kept epoch": kept["epoch"]}
        if self.validation.number:
            log_sum = self.validation.measure(self.model).log_sum
            stats |= {"validation perplexity": kept["validation perplexity"], "validation |ln Z|": log_sum}
            stats["unigram perplexity"] = perplexity_of(self.unigram)
        if self.place.first:
            vocabulary, normalised = self.text.vocabulary, settings.self_normalised > 0
            meta = {**about, "text": self.text.fingerprint, "vocabulary": vocabulary.hash(), **stats}
            save_model(model_file, self.model, vocabulary, normalised, self.text.unknown_words, meta)
            network: dict[str, object] = {
                "parameters": self.model.sizes.count(),
                "validation ngrams": self.validation.number,
            }
            network |= {"computed on": self.place.describe()}
            write_json(history_file, about | network | stats | {"curve": self.history})
        self.finish()
        return stats

    def begins(self) -> str:
        return f"{len(self.text):,} n-grams, {self.validation.number:,} of them for validation"

    def says(self, row: dict[str, Any]) -> str:
        text = f"epoch {row['epoch']}: perplexity trained {row['train perplexity']:.2f}"
        if "validation perplexity" in row:
            text += f", validation {row['validation perplexity']:.2f} (unigrams {perplexity_of(self.unigram):.0f})"
            if self.settings.self_normalised:
                text += f", |ln Z| {row['validation |ln Z|']:.3f}"
            if self.epochs_without_better:
                text += f", not better for {self.epochs_without_better} of {self.settings.patience} epochs"
        return text


CENTRING_NGRAMS = 20_000
"""Number of n-grams that ``centre`` draws."""

CENTRING_ROWS = 256
"""Number of n-grams whose ln Z are computed at a time."""

RIDGE = 1e-3
"""Ridge parameter of ``centre``, relative to the mean square of a hidden unit; units that are always 0 get weight 0."""


@torch.no_grad()
def centre(model: FeedForwardLM, text: Text, held_out: Index, seed: int) -> None:
    """Move ln Z closer to 0 without changing any probability, by changing W_o and b_o in place.

    The softmax is invariant to adding the same number to all output units, also a linear function a . g + c of the last
    hidden layer: subtracting a from every row of W_o and c from every element of b_o changes ln Z and nothing else.
    Here a and c are the least-squares fit of ln Z, with a small ridge, over n-grams of the text drawn by the seed, none
    of them held out. A network that was trained self-normalised needs this because of dropout: the penalty applied to
    networks with dropped units, and the full network has other sums.
    """
    places = np.unique(np.random.default_rng([seed, 5]).integers(0, len(text), CENTRING_NGRAMS))
    places = np.setdiff1d(places, held_out, assume_unique=True)
    contexts = torch.from_numpy(contexts_at(text.words, places, model.sizes.context, text.vocabulary.eos))
    hidden, log_sums = [], []
    for part in contexts.to(model.R.device).split(CENTRING_ROWS):
        g = model.hidden(part)
        hidden.append(g.double().cpu().numpy())
        log_sums.append(torch.logsumexp(g @ model.W_o.t() + model.b_o, 1).double().cpu().numpy())
    x, y = np.concatenate(hidden), np.concatenate(log_sums)
    x_mean, y_mean = x.mean(0), y.mean()
    x, y = x - x_mean, y - y_mean  # centred: the intercept c = y_mean - x_mean . a is not penalised
    square = float((x**2).mean())
    if square > np.finfo(np.float32).tiny:
        ridge = RIDGE * len(x) * square * np.eye(x.shape[1])
        a = np.linalg.solve(x.T @ x + ridge, x.T @ y)
    else:  # the hidden layer is constant: there is only an intercept
        a = np.zeros(x.shape[1])
    model.W_o.sub_(torch.from_numpy(a).to(model.W_o))
    model.b_o.sub_(float(y_mean - x_mean @ a))
