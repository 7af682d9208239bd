"""Training of a CSLM on text; the loop is in ``rnnsmt.networks.training``.

``FeedForwardTrainer`` is the training of any feed-forward network that predicts a word from other ids, and
``CslmTrainer`` that on the n-grams of a text. A network that was trained self-normalised is centred at the end, which
moves its ln Z closer to 0.
"""

import math
from abc import abstractmethod
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rnnsmt.cslm.gradients import loss_and_gradient
from rnnsmt.cslm.held_out import ClassCounts, HeldOutNGrams, as_trained, class_counts, unigram_log_p
from rnnsmt.cslm.model import FeedForwardLM, save_model
from rnnsmt.cslm.settings import CslmSettings
from rnnsmt.cslm.text import Text
from rnnsmt.networks.batches import Index, ShuffledBatches, draw_held_out
from rnnsmt.networks.devices import DeviceSetup
from rnnsmt.networks.operations import DROPOUT_ROWS
from rnnsmt.networks.settings import EpochSettings
from rnnsmt.networks.softmax import ClassSampler
from rnnsmt.networks.training import EpochTrainer, ThreadParts, perplexity_of
from rnnsmt.networks.vocabulary import UNK


class FeedForwardTrainer(EpochTrainer):
    """The training of a feed-forward network on n-grams: rows of ids, the last of which is predicted from the others.

    Attributes:
        held_out: indices of the held-out n-grams, ascending.
        validation: the held-out n-grams.
        unigram: their mean ln p by a unigram model.
    """

    examples = "n-grams"
    n_sums = 2  # -ln p and (ln Z)^2
    model: FeedForwardLM

    def __init__(
        self,
        model: FeedForwardLM,
        settings: EpochSettings,
        seed: int,
        inputs: dict[str, object],
        setup: DeviceSetup,
        threads: int,
        number: int,
        held_out: Index,
        validation: HeldOutNGrams,
        unigram: float,
        sampler: ClassSampler | None = None,
    ) -> None:
        """Create the minibatches; arguments as in ``Trainer``, and number: that of all n-grams."""
        self.number, self.held_out, self.validation, self.unigram = number, held_out, validation, unigram
        batches = ShuffledBatches(number, settings.batch, seed, held_out)
        total = settings.epochs * batches.updates
        parts = ThreadParts(dimension=0, grain=DROPOUT_ROWS)
        super().__init__(model, settings, seed, inputs, setup, batches, threads, parts, total, sampler=sampler)

    @abstractmethod
    def ngrams(self, index: Index) -> NDArray[np.int64]:
        """Return some n-grams [B, C + 1], the words to predict last."""

    def training_ngrams(self, index: Index) -> NDArray[np.int64]:
        """Return some n-grams as they are trained on."""
        return self.ngrams(index)

    def minibatch(self, index: Index) -> tuple[Tensor, ...]:
        """Return contexts [B, C], words [B] and, in CPU memory, the numbers [B] of the n-grams in the training."""
        ids = torch.from_numpy(self.training_ngrams(index)).to(self.setup.device)
        return ids[:, :-1], ids[:, -1], self.example_numbers(len(index))

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

    def measure(self, row: dict[str, Any]) -> bool:
        loss, squares = (self.sums.measured[:2] / max(self.sums.examples, 1)).tolist()
        row["epoch"] = len(self.history) + 1
        row["train perplexity"] = perplexity_of(-loss)  # with dropout and penalty in force
        if self.settings.self_normalised:
            row["train (ln Z)^2"] = squares
        if not self.validation.number:
            return False
        likelihood = self.validation.measure(self.model)
        row |= {"validation perplexity": perplexity_of(likelihood.log_p), "validation |ln Z|": likelihood.log_sum}
        return self.best is None or row["validation perplexity"] < self.kept["validation perplexity"]

    def format_metrics(self, row: dict[str, Any]) -> str:
        text = f"epoch {row['epoch']}: perplexity trained {row['train perplexity']:.2f}"
        if "validation perplexity" in row:
            text += f", validation {row['validation perplexity']:.2f} (unigrams {perplexity_of(self.unigram):.0f})"
            if self.settings.self_normalised:
                text += f", |ln Z| {row['validation |ln Z|']:.3f}"
            if self.epochs_without_better:
                text += f", not better for {self.epochs_without_better} of {self.settings.patience} epochs"
        return text

    def choose(self) -> dict[str, Any]:
        """Set the parameters to those that are kept, and centre a network that was trained self-normalised."""
        kept = super().choose()
        if self.settings.self_normalised:
            centre(self.model, self.centring_contexts())
        return kept

    def centring_contexts(self) -> Tensor:
        """Return the contexts [N, C] of training n-grams drawn by the seed."""
        drawn = np.unique(np.random.default_rng([self.seed, 5]).integers(0, self.number, CENTRING_NGRAMS))
        places = np.setdiff1d(drawn, self.held_out, assume_unique=True)
        return torch.from_numpy(self.ngrams(places)[:, :-1])

    def statistics(self, kept: dict[str, Any]) -> dict[str, object]:
        stats: dict[str, object] = {"epochs": len(self.history), "kept epoch": kept["epoch"]}
        if self.validation.number:
            log_sum = self.validation.measure(self.model).log_sum
            stats |= {"validation perplexity": kept["validation perplexity"], "validation |ln Z|": log_sum}
            stats["unigram perplexity"] = perplexity_of(self.unigram)
        return stats

    def history_header(self, stats: dict[str, object]) -> dict[str, object]:
        return {"validation ngrams": self.validation.number, "computed on": self.setup.describe(), **stats}


class CslmTrainer(FeedForwardTrainer):
    """The training of a CSLM on a text."""

    chapter = "cslm"
    settings: CslmSettings

    def __init__(self, text: Text, settings: CslmSettings, seed: int, setup: DeviceSetup, threads: int = 1) -> None:
        """Split the n-grams into training and held-out n-grams, and create the network."""
        self.text, self.context = text, settings.order - 1
        held_out = draw_held_out(len(text), settings.held_out_of(len(text)), seed)
        counts = class_counts(text.words, len(text.vocabulary), held_out)
        self.rare = counts == 2
        """bool [classes]: whether a word occurs once; ``class_counts`` adds one."""
        self.rare[text.vocabulary.eos] = False
        model = FeedForwardLM(settings.sizes(len(text.vocabulary)), seed, settings.spread)
        set_output_bias(model, settings.output_bias, counts)
        super().__init__(
            model.to(setup.device),
            settings,
            seed,
            {"text": text.fingerprint, "seed": seed},
            setup,
            threads,
            len(text),
            held_out,
            HeldOutNGrams(as_trained(self.ngrams(held_out), counts), setup),
            unigram_log_p(text.words[held_out].astype(np.int64), counts),
            class_sampler(counts, self.rare, settings, seed),
        )

    def ngrams(self, index: Index) -> NDArray[np.int64]:
        """Return the n-grams [B, order] whose last words are at some positions of the text."""
        return np.concatenate([self.text.contexts(index, self.context), self.text.words[index][:, None]], 1)

    def training_ngrams(self, index: Index) -> NDArray[np.int64]:
        """Return some n-grams, in which words that occur once in the text are UNK at random."""
        ids = self.ngrams(index)
        if self.settings.singletons:
            draws = np.random.default_rng([self.seed, 4, self.update, self.setup.rank]).random(ids.shape, np.float32)
            ids[self.rare[ids] & (draws < self.settings.singletons)] = UNK
        return ids

    def start_message(self) -> str:
        return f"{len(self.text):,} n-grams, {self.validation.number:,} of them for validation"

    def save_network(self, path: str | Path, description: dict[str, object], stats: dict[str, object]) -> None:
        vocabulary, normalised = self.text.vocabulary, self.settings.self_normalised > 0
        meta = {**description, "text": self.text.fingerprint, "vocabulary": vocabulary.hash(), **stats}
        save_model(path, self.model, vocabulary, normalised, self.text.unknown_words, meta)


def class_sampler(
    counts: ClassCounts, rare: NDArray[np.bool_], settings: CslmSettings, seed: int
) -> ClassSampler | None:
    """Return the sampler of the softmax by how often every class is predicted; None: all classes are summed.

    rare: [classes], words that occur once and become UNK with the probability ``singletons``.
    """
    if not settings.sampled_classes:
        return None
    predicted = np.where(rare, counts - settings.singletons, counts)  # expected, the others become UNK
    predicted[UNK] += settings.singletons * np.count_nonzero(rare)
    return ClassSampler(predicted, settings.sampled_classes, seed)


def set_output_bias(model: FeedForwardLM, kind: str, counts: ClassCounts) -> None:
    """Set the output biases before the first update, see ``OUTPUT_BIASES``; zero leaves them."""
    if kind == "unigram":
        model.b_o.data.copy_(torch.from_numpy(counts / counts.sum()).log())
    elif kind == "uniform":
        model.b_o.data.fill_(-math.log(len(counts)))


CENTRING_NGRAMS = 20_000
"""Number of n-grams that ``centre`` draws."""

CENTRING_ROWS = 256
"""Number of n-grams whose ln Z are computed at a time."""

RIDGE = 1e-3
"""Ridge parameter of ``centre``, relative to the mean square of a hidden unit; units that are always 0 get weight 0."""


@torch.no_grad()
def centre(model: FeedForwardLM, contexts: Tensor) -> None:
    """Move ln Z closer to 0 without changing any probability, by changing W_o and b_o in place.

    The softmax is invariant to adding the same number to all output units, also a linear function a . g + c of the last
    hidden layer: subtracting a from every row of W_o and c from every element of b_o changes ln Z and nothing else.
    Here a and c are the least-squares fit of ln Z, with a small ridge, over ``contexts`` [N, C] of training n-grams. A
    network that was trained self-normalised needs this because of dropout: the penalty applied to networks with dropped
    units, and the full network has other sums.
    """
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
