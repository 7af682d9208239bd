"""Training of an LSTM encoder-decoder on minibatches of sentence pairs of similar lengths; each pair once per epoch.

The training loop is in ``rnnsmt.networks.training``.
"""

import math
import warnings
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rnnsmt.base.errors import InputError
from rnnsmt.base.paths import StrPath
from rnnsmt.networks.batches import WINDOW, Index, WindowBatches, without
from rnnsmt.networks.data import NULL
from rnnsmt.networks.devices import DeviceSetup
from rnnsmt.networks.draws import NOTHING_DRAWN, Draws
from rnnsmt.networks.gradients import backpropagate
from rnnsmt.networks.pair_training import PairTask
from rnnsmt.networks.read_ahead import ReadAhead
from rnnsmt.networks.softmax import softmax_gradient
from rnnsmt.networks.task import Row, Sums, evenly, perplexity_of
from rnnsmt.seq2seq.model import Seq2Seq, save_model
from rnnsmt.seq2seq.sentences import SentencePairs, as_read, padded
from rnnsmt.seq2seq.settings import Seq2SeqSettings


def pair_tensors(pairs: SentencePairs, index: Index, order: str, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return pairs as int64 ids with EOS, padded with 0: source [N, B] in reading order, target [T, B]."""
    source, target = pairs.sides
    tensors = padded([as_read(source.phrase(i), order) for i in index]), padded([target.phrase(i) for i in index])
    return torch.from_numpy(tensors[0]).to(device), torch.from_numpy(tensors[1]).to(device)


def by_length(pairs: SentencePairs, index: Index, batch: int) -> list[Index]:
    """Sort pairs by source length, then target length, and split them into parts of ``batch``."""
    source, target = (side.lengths(index) for side in pairs.sides)
    index = index[np.lexsort((target, source))]
    return [index[begin : begin + batch] for begin in range(0, len(index), batch)]


class SentenceBatches(WindowBatches):
    """Minibatches of sentence pairs of similar lengths.

    Attributes:
        size: number of training pairs, which is the number of pairs of an epoch.
        examples: the pairs of the current window.
    """

    def __init__(self, pairs: SentencePairs, batch: int, seed: int, held_out: Index) -> None:
        """Begin with the first epoch.

        Args:
            batch: number of pairs of a minibatch; one minibatch of a window may have fewer.
            held_out: indices of the held-out pairs, ascending.
        """
        super().__init__(len(pairs) - len(held_out), seed)
        self.batch, self.examples = batch, ReadAhead(pairs.at)
        if self.size <= 0:
            raise InputError(f"{pairs.path}: no pairs remain for training; use more text, or --held-out 0")
        self._kept = without(held_out)

    @property
    def updates(self) -> int:
        """Return the number of minibatches of an epoch."""
        last = self.size - (self.windows - 1) * WINDOW
        return (self.windows - 1) * -(-WINDOW // self.batch) + -(-last // self.batch)

    def form(self, order: Index) -> list[Index]:
        """Form the minibatches of the current window by length."""
        parts = by_length(*self.examples.take(self._kept(order)), self.batch)
        self.examples.read_ahead(self._kept(self.order(1)))
        return [self.examples.index[places] for places in parts]


ROWS = 64
"""Number of held-out pairs that are evaluated at a time."""


class Seq2SeqTask(PairTask):
    """Training of a network on sentence pairs.

    Attributes:
        validation: batches of held-out pairs, each a tuple of arguments of ``log_probability``.
    """

    network = "seq2seq"
    model: Seq2Seq
    settings: Seq2SeqSettings
    pairs: SentencePairs
    batches: SentenceBatches

    def __init__(self, pairs: SentencePairs, settings: Seq2SeqSettings, seed: int, setup: DeviceSetup) -> None:
        """Draw the held-out pairs and create the network."""
        # cuDNN copies the weights into one buffer, because they are views of the flat tensor of all parameters
        warnings.filterwarnings("ignore", "RNN module weights are not part of single contiguous chunk")
        super().__init__(pairs, "sentences", settings, seed, setup)
        held_out = pairs.at(self.held_out)
        pieces = by_length(held_out, np.arange(len(held_out)), ROWS)
        self.validation = [pair_tensors(held_out, piece, settings.source_order, setup.device) for piece in pieces]
        self.batches = SentenceBatches(pairs, settings.batch, seed, self.held_out)
        self.loaded = self.batches.examples
        sizes = settings.sizes(*map(len, pairs.vocabularies))
        self.model = Seq2Seq(sizes, seed, settings.spread).to(setup.device)
        self.total = max(round(settings.epochs * self.batches.updates), 1)
        self.evaluations = evenly(self.total, settings.evaluations)

    def tensors(self, index: Index, update: int) -> tuple[Tensor, Tensor]:
        """Return source [N, B] in reading order and target [T, B]."""
        return pair_tensors(*self.loaded.of(index), self.settings.source_order, self.setup.device)

    def loss_and_gradient(self, model: Seq2Seq, *batch: Any) -> Tensor:
        source, target, draws = batch
        return loss_and_gradient(model, source, target, self.setup.matmul_dtype, draws)

    def evaluate(self, seen: int, sums: Sums) -> Row:
        row = {
            "epoch": round(seen / self.batches.size, 4),
            "train perplexity": perplexity_of(-sums.measured[0].item() / sums.words),
        }
        if len(self.held_out):
            row["held-out perplexity"] = perplexity_of(self.likelihood(self.validation).per_word)
        return row

    def quality(self, row: Row) -> float:
        return -row.get("held-out perplexity", math.inf) if self.settings.keep == "best" else -math.inf

    def start_message(self) -> str:
        return f"{len(self.pairs):,} sentence pairs, {len(self.held_out):,} of them held out"

    def format(self, row: Row) -> str:
        text = f"epoch {row['epoch']}: training perplexity {row['train perplexity']:.2f}"
        if "held-out perplexity" in row:
            text += f", held-out {row['held-out perplexity']:.2f} (unigram model {perplexity_of(self.unigram):.0f})"
        return text

    def results(self, history: list[Row], kept_row: Row) -> tuple[dict[str, object], dict[str, object]]:
        stats: dict[str, object] = {"updates": history[-1]["update"], "pairs seen": history[-1]["pairs"]}
        entries: dict[str, object] = {
            "held-out words": self.held_out_words,
            "held-out pairs": len(self.held_out),
            "computed on": self.setup.describe(),
        }
        if len(self.held_out):
            unigram = {"unigram perplexity": perplexity_of(self.unigram)}
            return stats | {"held-out perplexity": kept_row["held-out perplexity"]} | unigram, entries | unigram
        return stats, entries

    def save_model(self, path: StrPath, description: dict[str, object], stats: dict[str, object]) -> None:
        vocabularies, order = self.pairs.vocabularies, self.settings.source_order
        save_model(path, self.model, vocabularies, order, description | self.inputs)


def loss_and_gradient(
    model: Seq2Seq, source: Tensor, target: Tensor, dtype: torch.dtype | None = None, draws: Draws = NOTHING_DRAWN
) -> Tensor:
    """Fill ``.grad`` of every parameter with the gradient of -sum ln p(y | x) over the batch; return that sum.

    Every parameter must have a ``.grad``, which is overwritten.

    Args:
        source, target: ids [N, B] and [T, B] with EOS, padded with 0.
        dtype: type to which the factors of matrix products are rounded (in the LSTM layers by torch's autocast); None:
            they are not rounded. Parameters and their gradients remain float32.
        draws: the dropout masks of the inputs of all layers and of the output of the last layer, and the classes of the
            softmax.

    Returns:
        A float64 scalar tensor.
    """
    with torch.autocast(target.device.type, dtype, enabled=dtype is not None):
        g, _ = model.decode(model.read_before(target), model.encode(source, draws), draws)
    # padding is excluded from the softmax: states [P, H] and words [P] of the P target positions without padding
    mask = target != NULL
    states, words = g[mask].to(model.W_o.dtype), target[mask]
    sums, d_states = softmax_gradient(model.W_o, model.b_o, states.detach(), words, dtype, sample=draws.classes(words))
    layers = [parameter for parameter in model.parameters() if parameter not in {model.W_o, model.b_o}]
    backpropagate(states, d_states, layers, [])
    return sums.loss
