"""Training an LSTM encoder-decoder on sentence pairs: the loop is in ``rnnsmt.networks.training``."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rnnsmt.io import write_json
from rnnsmt.networks.batches import Index, draw_held_out
from rnnsmt.networks.devices import Place, full_precision
from rnnsmt.networks.dropout import DROPOUT_ROWS, Dropout
from rnnsmt.networks.sequences import count_ids
from rnnsmt.networks.softmax import ClassSampler, Products, softmax_gradient
from rnnsmt.networks.training import Trainer, perplexity_of
from rnnsmt.networks.vocabulary import NULL
from rnnsmt.seq2seq.batches import SentenceBatches, by_length, pair_tensors
from rnnsmt.seq2seq.model import NO_DROPOUT, Seq2Seq, save_model
from rnnsmt.seq2seq.sentences import SentencePairs
from rnnsmt.seq2seq.settings import Seq2SeqSettings
from rnnsmt.stages import STAGES

ROWS = 64
"""Held-out pairs that are measured at a time."""


class Seq2SeqTrainer(Trainer):
    """A network and the sentence pairs that it learns from."""

    examples = "pairs"

    def __init__(
        self, pairs: SentencePairs, settings: Seq2SeqSettings, seed: int, place: Place, threads: int = 1
    ) -> None:
        self.pairs, self.settings, self.seed = pairs, settings, seed
        held_out = draw_held_out(len(pairs), settings.held_out_of(len(pairs)) if settings.held_out else 0, seed)
        self.validation = HeldOutSentences(pairs, held_out, settings.source_order, place)
        self.sentences = SentenceBatches(pairs, settings.batch, seed, held_out)
        self.total = max(round(settings.epochs * self.sentences.updates), 1)
        number = min(settings.evaluations, self.total)
        self.evaluations = {round(self.total * k / number) for k in range(1, number + 1)}
        self.products, self.dropout = Products(place.matmul_dtype), Dropout(settings.dropout, seed)
        target = pairs.sides[1]
        counts = count_ids(target.words, len(pairs.units[1]))
        counts -= np.bincount(target.joined(held_out), minlength=len(counts))
        self.sampler = ClassSampler(counts + 1, settings.sampled_classes, seed) if settings.sampled_classes else None
        logs = np.log((counts + 1) / (counts + 1).sum())
        self.unigram = perplexity_of(float(logs[target.joined(held_out)].mean())) if len(held_out) else math.nan
        sizes = settings.sizes(*(len(units) for units in pairs.units))
        self.model = Seq2Seq(sizes, seed, settings.spread).to(place.device)
        super().__init__(
            self.model, settings, place, self.sentences, threads, 1, DROPOUT_ROWS if settings.dropout else 1
        )

    def fingerprint(self) -> dict[str, object]:
        version = STAGES["seq2seq"]["train"].version
        about = {"version of seq2seq train": version, "sentences": self.pairs.fingerprint, "seed": self.seed}
        return about | self.settings.as_dict()

    def minibatch(self, index: Index) -> tuple[Tensor, ...]:
        """Source [N, B] and target words [T, B]; on the processor the numbers [1, B] of the pairs."""
        rows = torch.arange(len(index)) * self.place.processes + self.place.rank
        tensors = pair_tensors(self.pairs, index, self.settings.source_order, self.place.device)
        return *tensors, (rows + self.update * self.settings.batch)[None]

    def loss_and_gradient(self, model: Seq2Seq, *batch: Tensor) -> Tensor:
        source, target, rows = batch
        return loss_and_gradient(model, source, target, self.products, self.dropout, self.sampler, rows[0])

    def words(self, index: Index) -> int:
        """Units, which may be subwords."""
        return int(self.pairs.sides[1].lengths(index).sum())

    @property
    def finished(self) -> bool:
        return self.update >= self.total

    @property
    def evaluation_due(self) -> bool:
        return self.update in self.evaluations

    def measure(self, row: dict[str, Any]) -> bool:
        row["epoch"] = round(self.seen / self.sentences.size, 4)
        row["train perplexity"] = perplexity_of(-self.sums.measured[0].item() / self.sums.words)
        if not self.validation.pairs:
            return False
        log_p = self.validation.measure(self.model)
        row["held-out perplexity"] = perplexity_of(log_p)
        row["held-out perplexity per word"] = perplexity_of(log_p * self.validation.units / self.validation.words)
        best = self.history[self.best[0]]["held-out perplexity"] if self.best else math.inf
        return self.settings.keep == "best" and row["held-out perplexity"] < best

    def save(self, model_file: str | Path, history_file: str | Path) -> dict[str, object]:
        kept = self.choose()
        about = {"settings": self.settings.as_dict(), "seed": self.seed, "kept update": kept["update"]}
        if self.place.first:
            meta = {**about, "sentences": self.pairs.fingerprint}
            pairs = self.pairs
            save_model(model_file, self.model, pairs.subwords, pairs.units, self.settings.source_order, meta)
            network: dict[str, object] = {"parameters": self.model.sizes.count(), "subwords": pairs.subwords}
            network |= {"held-out words": self.validation.words, "held-out units": self.validation.units}
            network |= {"held-out pairs": self.validation.pairs, "computed on": self.place.describe()}
            write_json(history_file, about | network | {"unigram perplexity": self.unigram, "curve": self.history})
        self.finish()
        stats: dict[str, object] = {"updates": self.update, "pairs seen": self.seen}
        if self.validation.pairs:
            stats |= {"held-out perplexity": kept["held-out perplexity"], "unigram perplexity": self.unigram}
        return stats

    def begins(self) -> str:
        units = "words" if self.pairs.subwords == "none" else f"{self.pairs.subwords} subwords"
        return f"{len(self.pairs):,} pairs of {units}, {self.validation.pairs:,} of them held out"

    def says(self, row: dict[str, Any]) -> str:
        text = f"epoch {row['epoch']}: perplexity trained {row['train perplexity']:.2f}"
        if "held-out perplexity" in row:
            text += f", held out {row['held-out perplexity']:.2f} (unigrams {self.unigram:.0f})"
            if self.pairs.subwords != "none":
                text += f", {row['held-out perplexity per word']:.2f} per word"
        return text


def loss_and_gradient(
    model: Seq2Seq,
    source: Tensor,
    target: Tensor,
    mm: Products | None = None,
    dropout: Dropout = NO_DROPOUT,
    sampler: ClassSampler | None = None,
    rows: Tensor | None = None,
) -> Tensor:
    """Fill ``.grad`` of every parameter with the gradient of -sum ln p(y | x) over the batch; return that sum.

    The layers' gradient is autograd's, the softmax's is computed with its loss, a few rows at a time.

    source, target: [N, B], [T, B], ids with EOS and 0 behind it. mm: products of the layers, by torch's autocast, and
    of the softmax; parameters and their gradients stay float32. dropout: of the pairs with the numbers ``rows`` [B].
    sampler: draws the classes of the softmax; none: all.
    """
    for parameter in model.parameters():
        assert parameter.grad is not None
        parameter.grad.zero_()
    mm = mm or Products()
    numbers = torch.arange(target.shape[1]) if rows is None else rows
    generators = dropout.generators(numbers, target.device)
    with torch.autocast(target.device.type, mm.dtype, enabled=mm.dtype is not None):
        g, _ = model.decode(model.read_before(target), model.encode(source, dropout, generators), dropout, generators)
    there = target != NULL
    states, words = g[there].to(model.W_o.dtype), target[there]
    sample = None if sampler is None else sampler.draw(words, int(numbers[0]))
    sums, d_states = softmax_gradient(mm, model.W_o, model.b_o, states.detach(), words, sample=sample)
    states.backward(d_states.to(states.dtype))
    return sums.loss


class HeldOutSentences:
    """Sentence pairs that are not trained on; units, words: how many their target sides have, every EOS one of both."""

    def __init__(self, pairs: SentencePairs, index: Index, order: str, place: Place) -> None:
        self.place, self.pairs = place, len(index)
        pieces = by_length(pairs, index, ROWS)[place.rank :: place.processes]
        self.pieces = [pair_tensors(pairs, piece, order, place.device) for piece in pieces]
        ids = pairs.sides[1].joined(index)
        self.units, self.words = len(ids), int(pairs.units[1].begins[ids].sum())

    @torch.no_grad()
    def measure(self, model: Seq2Seq) -> float:
        """Mean ln p of a unit, every EOS counted as one, in plain float32 products whatever the training uses."""
        total = torch.zeros((), dtype=torch.float64, device=self.place.device)
        with full_precision():
            for source, target in self.pieces:
                total += model.log_probability(source, target).double().sum()
        return float(self.place.sum(total)) / max(self.units, 1)
