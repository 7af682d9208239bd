"""Training of a feed-forward network on n-grams: data, held-out n-grams, minibatches, early stopping, centring.

The network and its gradient are in ``rnnsmt.networks.feed_forward``, the training loop is in
``rnnsmt.networks.training``. At the end, a network that was trained with self-normalisation is centred, which moves ln
Z closer to 0.

B: n-grams of a batch, C: context words.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rnnsmt.base.paths import StrPath
from rnnsmt.networks.batches import Index, ShuffledBatches
from rnnsmt.networks.data import NULL, UNK, ClassCounts, Vocabulary, read_apart, unigram_log_p
from rnnsmt.networks.devices import DeviceSetup, full_precision
from rnnsmt.networks.draws import DROPOUT_ROWS, ClassSampler
from rnnsmt.networks.feed_forward import FeedForwardLM, TrainedNetwork, loss_and_gradient, save_model
from rnnsmt.networks.model_file import ModelFormat
from rnnsmt.networks.read_ahead import ReadAhead
from rnnsmt.networks.settings import FeedForwardSettings
from rnnsmt.networks.task import Row, Sums, Task, perplexity_of

ROWS = 256
"""Number of n-grams that are evaluated at a time."""


class NGramLikelihood(NamedTuple):
    """Mean ln p by the exact softmax, and mean |ln Z|, where Z is the sum of exp over the output units."""

    log_p: float
    log_sum: float


class HeldOutNGrams:
    """Held-out n-grams on the device.

    Attributes:
        contexts: ids of the contexts, in chunks [ROWS, C].
        words: ids of the words to predict, in chunks [ROWS].
    """

    def __init__(self, ngrams: NDArray[np.int64], setup: DeviceSetup) -> None:
        """Copy n-grams [N, C + 1] to the device; the last id of each is the word to predict."""
        self.setup, self.number = setup, len(ngrams)
        ids = torch.from_numpy(ngrams).to(setup.device)
        self.contexts, self.words = ids[:, :-1].split(ROWS), ids[:, -1].split(ROWS)

    @torch.no_grad()
    def measure(self, model: FeedForwardLM) -> NGramLikelihood:
        """Compute the likelihood under a network, in float32 regardless of the precision of training."""
        totals = torch.zeros(2, dtype=torch.float64, device=self.setup.device)
        with full_precision():
            for contexts, words in zip(self.contexts, self.words, strict=True):
                units = model.logits(contexts)
                log_sums = torch.logsumexp(units, 1)
                log_p = units.gather(1, words[:, None])[:, 0] - log_sums
                totals += torch.stack([log_p.double().sum(), log_sums.double().abs().sum()])
        log_p, log_sum = (totals / max(self.number, 1)).tolist()
        return NGramLikelihood(log_p, log_sum)


@dataclass(frozen=True)
class NGrams:
    """The n-grams of a text for training: rows of ids, the last of which is predicted from the others.

    Attributes:
        number: number of n-grams, including the held-out ones.
        held_out: indices of the held-out n-grams, ascending.
        rows: function that takes indices of n-grams [B] and returns the n-grams [B, C + 1].
        release: function that unmaps the pages of the files that ``rows`` has read.
        vocabularies: the vocabulary of the classes, then the source vocabulary if the network reads source words. The
            input id of a source word is its id plus the number of classes.
        counts: ``class_counts`` of each vocabulary.
        unknown_words: number of distinct words of the text outside the vocabulary of the classes.
        inputs: fingerprint of the data, by name.
    """

    number: int
    held_out: Index
    rows: Callable[[Index], NDArray[np.int64]]
    release: Callable[[], None]
    vocabularies: Sequence[Vocabulary]
    counts: Sequence[ClassCounts]
    unknown_words: int
    inputs: dict[str, str]

    def at(self, index: Index) -> NDArray[np.int32]:
        """Return the n-grams [K, C + 1] with the ascending indices ``index`` [K]; few pages of the files are mapped."""
        return np.concatenate(read_apart(lambda some: self.rows(some).astype(np.int32), index, self.release))

    def words_counted(self, times: int) -> NDArray[np.bool_]:
        """Return, for each input id, whether it is a word that occurs exactly ``times`` times in training."""
        found = []
        for counts in self.counts:
            found.append(counts == times + 1)  # ``class_counts`` adds one
            found[-1][[NULL, UNK, -1]] = False
        return np.concatenate(found)

    def unknown_of(self) -> NDArray[np.int64]:
        """Return, for each input id, the input id of UNK on the same side, source or target."""
        first = np.cumsum([0, *map(len, self.counts[:-1])])
        return np.repeat(first + UNK, [len(counts) for counts in self.counts])


class FeedForwardTask(Task):
    """Training of a feed-forward network, with an evaluation after every epoch and early stopping.

    Attributes:
        ngrams: the data.
        loaded: the n-grams of the current window of ``batches``.
        validation: the held-out n-grams, in which words that do not occur in training are replaced by UNK.
        unigram: mean ln p of the held-out n-grams by a unigram model.
        rare: bool [inputs], whether the word of an input id occurs once in training.
        unknown_of: int64 [inputs], for each input id, the input id of UNK on the same side, source or target.
    """

    examples = "n-grams"
    kept_by = "epoch"
    number_of_sums = 2  # -ln p and (ln Z)^2
    grain = DROPOUT_ROWS
    same_launches = True
    model: FeedForwardLM
    settings: FeedForwardSettings
    batches: ShuffledBatches

    def __init__(
        self,
        network: str,
        kind: ModelFormat,
        name: str,
        ngrams: NGrams,
        settings: FeedForwardSettings,
        seed: int,
        setup: DeviceSetup,
    ) -> None:
        """Create the network and the minibatches.

        Args:
            kind: the format of the model file.
            name: name of the n-grams in the log.
        """
        super().__init__(settings, seed, setup)
        self.network, self.kind, self.name = network, kind, name
        self.ngrams, self.inputs = ngrams, ngrams.inputs
        model = FeedForwardLM(settings.sizes(*map(len, ngrams.vocabularies)), seed, settings.spread)
        counts = ngrams.counts[0]
        set_output_bias(model, settings.output_bias, counts)
        self.model = model.to(setup.device)
        self.rare, self.unknown_of = ngrams.words_counted(1), ngrams.unknown_of()
        self.sampler = class_sampler(counts, self.rare[: len(counts)], settings, seed)
        held_out = ngrams.at(ngrams.held_out).astype(np.int64)
        held_out = np.where(ngrams.words_counted(0)[held_out], self.unknown_of[held_out], held_out)
        self.validation = HeldOutNGrams(held_out, setup)
        self.unigram = unigram_log_p(held_out[:, -1], counts)
        self.loaded = ReadAhead(ngrams.at)
        self.batches = ShuffledBatches(ngrams.number, settings.batch, seed, ngrams.held_out, self.loaded)
        of_epoch = self.batches.updates
        self.total, self.patience = settings.epochs * of_epoch, settings.patience
        self.evaluations = range(of_epoch, self.total + 1, of_epoch)

    def tensors(self, index: Index, update: int) -> tuple[Tensor, Tensor]:
        """Return contexts [C, B] and words [B]; words that occur once in training are replaced by UNK at random."""
        ngrams, places = self.loaded.of(index)
        ids = ngrams[places].astype(np.int64)
        if self.settings.singletons:
            draws = np.random.default_rng([self.seed, 4, update]).random(ids.shape, np.float32)
            replaced = self.rare[ids] & (draws < self.settings.singletons)
            ids[replaced] = self.unknown_of[ids[replaced]]
        on_device = torch.from_numpy(ids).to(self.setup.device)
        return on_device[:, :-1].t(), on_device[:, -1]

    def loss_and_gradient(self, model: FeedForwardLM, *batch: Any) -> Tensor:
        contexts, words, draws = batch
        dtype, alpha = self.setup.matmul_dtype, self.settings.self_normalised
        return loss_and_gradient(model, contexts.t(), words, dtype, alpha, draws)

    def words(self, index: Index) -> int:
        return len(index)

    def evaluate(self, seen: int, sums: Sums) -> Row:
        loss, squares = (sums.measured[:2] / max(sums.examples, 1)).tolist()
        # during training: with dropout and penalty
        row: Row = {"epoch": self.batches.epoch, "train perplexity": perplexity_of(-loss)}
        if self.settings.self_normalised:
            row["train (ln Z)^2"] = squares
        if self.validation.number:
            likelihood = self.validation.measure(self.model)
            row |= {"validation perplexity": perplexity_of(likelihood.log_p), "validation |ln Z|": likelihood.log_sum}
        return row

    def quality(self, row: Row) -> float:
        return -row.get("validation perplexity", math.inf)

    def start_message(self) -> str:
        return f"{self.ngrams.number:,} {self.name}, {self.validation.number:,} of them for validation"

    def format(self, row: Row) -> str:
        text = f"epoch {row['epoch']}: training perplexity {row['train perplexity']:.2f}"
        if "validation perplexity" in row:
            text += f", validation {row['validation perplexity']:.2f} (unigram model {perplexity_of(self.unigram):.0f})"
            if self.settings.self_normalised:
                text += f", |ln Z| {row['validation |ln Z|']:.3f}"
        return text

    def results(self, history: list[Row], kept_row: Row) -> tuple[dict[str, object], dict[str, object]]:
        """Centre a network trained with self-normalisation, and measure it again."""
        if self.settings.self_normalised:
            centre(self.model, self.centring_contexts())
        stats: dict[str, object] = {"epochs": len(history), "kept epoch": kept_row["epoch"]}
        if self.validation.number:
            log_sum = self.validation.measure(self.model).log_sum
            stats |= {"validation perplexity": kept_row["validation perplexity"], "validation |ln Z|": log_sum}
            stats["unigram perplexity"] = perplexity_of(self.unigram)
        return stats, {"validation ngrams": self.validation.number, "computed on": self.setup.describe(), **stats}

    def centring_contexts(self) -> Tensor:
        """Draw training n-grams with the random seed, and return the contexts [N, C] of the distinct ones."""
        drawn = np.unique(np.random.default_rng([self.seed, 5]).integers(0, self.ngrams.number, CENTRING_NGRAMS))
        places = np.setdiff1d(drawn, self.ngrams.held_out, assume_unique=True)
        return torch.from_numpy(self.ngrams.at(places).astype(np.int64)[:, :-1])

    def save_model(self, path: StrPath, description: dict[str, object], stats: dict[str, object]) -> None:
        vocabulary, *source = self.ngrams.vocabularies
        meta = {**description, **self.inputs, "vocabulary": vocabulary.hash(), **stats}
        normalised = self.settings.self_normalised > 0
        trained = TrainedNetwork(self.model, vocabulary, normalised, self.ngrams.unknown_words, meta, *source)
        save_model(path, self.kind, trained)


def class_sampler(
    counts: ClassCounts, rare: NDArray[np.bool_], settings: FeedForwardSettings, seed: int
) -> ClassSampler | None:
    """Return a sampler of the softmax classes by expected frequency; return None if the sum is over all classes.

    rare: bool [classes], words that occur once, which are replaced by UNK with the probability ``singletons``.
    """
    if not settings.sampled_classes:
        return None
    predicted = np.where(rare, counts - settings.singletons, counts)  # expected frequencies; the rest becomes UNK
    predicted[UNK] += settings.singletons * np.count_nonzero(rare)
    return ClassSampler(predicted, settings.sampled_classes, seed)


def set_output_bias(model: FeedForwardLM, kind: str, counts: ClassCounts) -> None:
    """Set the output biases before the first update, as in ``FeedForwardSettings``; ``zero`` does not change them."""
    if kind == "unigram":
        model.b_o.data.copy_(torch.from_numpy(counts / counts.sum()).log())
    elif kind == "uniform":
        model.b_o.data.fill_(-math.log(len(counts)))


CENTRING_NGRAMS = 20_000
"""Number of draws of training n-grams for ``centre``."""

CENTRING_ROWS = 256
"""Number of n-grams whose ln Z are computed at a time."""

RIDGE = 1e-3
"""Ridge parameter of ``centre``, relative to the mean square of a hidden unit. It gives units that are always 0 the
weight 0."""


@torch.no_grad()
def centre(model: FeedForwardLM, contexts: Tensor) -> None:
    """Move ln Z closer to 0 without changing any probability, by changing W_o and b_o in place.

    The softmax does not change if the same number is added to all output units. This number may be a linear function
    a . g + c of the last hidden layer: subtracting a from every row of W_o and c from every element of b_o changes only
    ln Z. Here a and c are the least-squares fit of ln Z, with a small ridge, over ``contexts`` [N, C] of training
    n-grams. This is necessary after self-normalised training with dropout: the penalty was applied to networks with
    dropped units, in which ln Z differs from that of the full network.
    """
    x, y = np.empty((len(contexts), model.W_o.shape[1])), np.empty(len(contexts))
    # one buffer: small arrays that are kept between new ones would take pieces of freed ones, which then are too small
    space = model.W_o.new_empty(CENTRING_ROWS, len(model.W_o))
    contexts = contexts.to(model.R.device)
    for begin in range(0, len(contexts), CENTRING_ROWS):
        rows = slice(begin, begin + CENTRING_ROWS)
        g = model.hidden(contexts[rows])
        units = torch.mm(g, model.W_o.t(), out=space[: len(g)]).add_(model.b_o)
        x[rows] = g.double().cpu().numpy()
        y[rows] = torch.logsumexp(units, 1).double().cpu().numpy()
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
