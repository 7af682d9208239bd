"""Training of an RNN Encoder-Decoder on phrase pairs; the loop is in ``rnnsmt.networks.training``."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rnnsmt.base.io import write_json
from rnnsmt.networks.batches import Index, draw_held_out
from rnnsmt.networks.devices import Place
from rnnsmt.networks.dropout import DROPOUT_ROWS, Dropout
from rnnsmt.networks.softmax import ClassSampler, Products
from rnnsmt.networks.training import Trainer
from rnnsmt.rnn.batches import PairBatches, group_by_length, pair_tensors
from rnnsmt.rnn.gradients import autograd_loss_and_gradient, loss_and_gradient
from rnnsmt.rnn.model import RNNEncoderDecoder, check_lengths, save_model, vocabularies_of
from rnnsmt.rnn.pairs import Pairs, word_frequencies
from rnnsmt.rnn.settings import RnnSettings
from rnnsmt.rnn.validation import HeldOutPairs, unigram_likelihood
from rnnsmt.stages import STAGES


class RnnTrainer(Trainer):
    """The training of a network on phrase pairs."""

    examples = "pairs"

    def __init__(
        self,
        pairs: Pairs,
        settings: RnnSettings,
        seed: int,
        place: Place,
        threads: int = 1,
        leave_out: tuple[int, int] | None = None,
    ) -> None:
        """Split the pairs into training and held-out pairs, and create the network.

        leave_out: (part, parts): the pairs that only occur in this part are not trained on, see ``Pairs.left_out``.
        """
        self.leave_out = leave_out
        counts = pairs.counts() if settings.weighting == "counts" else None
        left_out = np.flatnonzero(pairs.left_out(*leave_out)) if leave_out else np.zeros(0, np.int64)
        pairs = pairs.in_direction(settings.direction)
        self.pairs, self.settings, self.seed = pairs, settings, seed
        self.drawn = draw_held_out(len(pairs), settings.held_out_of(len(pairs)), seed)
        self.of_sentences = pairs.held_out if settings.held_out else pairs.held_out[:0]
        if 2 * len(np.union1d(self.drawn, self.of_sentences)) > len(pairs):
            # a tiny corpus: most of its pairs would be held out
            self.of_sentences = pairs.held_out[:0]
        self.held_out = np.union1d(self.drawn, self.of_sentences)
        measured = draw_held_out(len(self.of_sentences), settings.measured(len(self.of_sentences)), seed)
        of_sentences = self.of_sentences[measured]
        self.validation = HeldOutPairs(pairs, of_sentences if len(of_sentences) else self.drawn, place)
        overlapping = np.setdiff1d(self.drawn, left_out)
        self.overlapping = HeldOutPairs(pairs, overlapping, place) if len(of_sentences) else None
        untrained = np.union1d(self.held_out, left_out)
        once = np.ones(len(pairs), np.int32)
        once[untrained] = 0
        frequencies = word_frequencies(pairs, once)
        measured_pairs = of_sentences if len(of_sentences) else self.drawn
        self.unigram = unigram_likelihood(pairs, measured_pairs, frequencies).per_word
        self.sum_of_losses = settings.loss == "sum"
        same_lengths = settings.batching == "lengths"
        batches = PairBatches(pairs, settings.batch, seed, untrained, counts, same_lengths)
        self.trained = batches.trained
        self.total = settings.updates or batches.updates(settings.epochs)
        number = min(settings.evaluations, self.total)
        self.evaluations = {round(self.total * k / number) for k in range(1, number + 1)}
        self.products, self.dropout = Products(place.matmul_dtype), Dropout(settings.dropout, seed)
        self.sampler = None
        if settings.sampled_classes:
            drawn = frequencies if counts is None else word_frequencies(pairs, once * counts)
            self.sampler = ClassSampler(drawn + 1, settings.sampled_classes, seed)
        sizes = settings.sizes(*(len(vocabulary) for vocabulary in pairs.vocabularies))
        check_lengths(sizes, pairs)
        self.model = RNNEncoderDecoder(sizes, seed, settings.deviation).to(place.device)
        super().__init__(
            self.model, settings, place, batches, threads, dimension=1, grain=DROPOUT_ROWS if settings.dropout else 1
        )

    def fingerprint(self) -> dict[str, object]:
        version = STAGES["rnn"]["train"].version
        pairs = self.pairs.fingerprint
        about = {"version of rnn train": version, "pairs": pairs, "seed": self.seed, "leave_out": self.leave_out}
        return about | self.settings.as_dict()

    def accumulate(self, index: Index) -> Tensor:
        """Sum the gradient over the groups of pairs of equal lengths; equals the gradient over padded pairs."""
        if self.settings.batching == "lengths":
            return super().accumulate(index)
        assert self.flat.grad is not None
        gradient, sums = torch.zeros_like(self.flat.grad), torch.zeros((), dtype=torch.float64)
        begin = 0
        for group in group_by_length(self.pairs, index):
            sums = sums + self.gradient(self.minibatch(group, begin)).reshape(-1)
            gradient += self.flat.grad
            begin += len(group)
        self.flat.grad.copy_(gradient)
        return sums

    def minibatch(self, index: Index, begin: int = 0) -> tuple[Tensor, ...]:
        """Return the tensors of pairs of equal lengths.

        begin: the position of the first pair in the part of the minibatch that belongs to this process.

        Returns:
            Source words [N, B]; target words [T, B]; in CPU memory the running numbers [1, B] of the pairs in the
            training, from which dropout and the sampled classes are derived.
        """
        rows = torch.arange(begin, begin + len(index)) * self.place.processes + self.place.rank
        return *pair_tensors(self.pairs, index, self.place.device), (rows + self.update * self.settings.batch)[None]

    def loss_and_gradient(self, model: RNNEncoderDecoder, *batch: Tensor) -> Tensor:
        source, target, rows = batch
        if self.settings.variant != "supplementary":
            return loss_and_gradient(model, source, target, self.products, self.dropout, self.sampler, rows[0])
        return autograd_loss_and_gradient(model, source, target)

    @property
    def same_launches(self) -> bool:
        return self.settings.variant != "supplementary" and not self.dropout.limit and self.sampler is None

    def words(self, index: Index) -> int:
        return int(self.pairs.sides[1].lengths(index).sum())

    @property
    def finished(self) -> bool:
        return self.update >= self.total

    @property
    def evaluation_due(self) -> bool:
        return self.update in self.evaluations

    def measure(self, row: dict[str, Any]) -> bool:
        row["epoch"] = round(self.seen / self.trained, 4)
        loss = self.sums.measured[0].item()
        row["train log p per pair"] = -loss / self.sums.examples
        row["train log p per word"] = -loss / self.sums.words
        if not len(self.held_out):
            return False
        found = self.validation.measure(self.model)
        row |= {"held-out log p per pair": found.per_pair, "held-out log p per word": found.per_word}
        if self.overlapping is not None:
            row["overlapping log p per word"] = self.overlapping.measure(self.model).per_word
        best = self.history[self.best[0]]["held-out log p per pair"] if self.best else float("-inf")
        return self.settings.keep == "best" and found.per_pair > best

    def save(self, model_file: str | Path, history_file: str | Path) -> dict[str, object]:
        last, kept = self.history[-1], self.choose()
        about = {"settings": self.settings.as_dict(), "seed": self.seed, "kept update": kept["update"]}
        about |= {"leave out": self.leave_out} if self.leave_out else {}
        direction = {"direction": self.settings.direction}
        if self.place.first:
            data = {**vocabularies_of(self.pairs), "pairs": self.pairs.fingerprint}
            save_model(model_file, self.model, about | direction | data)
            network: dict[str, object] = {"parameters": self.model.sizes.count()}
            network |= {"held-out pairs": len(self.held_out), "of held-out sentences": len(self.of_sentences)}
            network |= {"computed on": self.place.describe()}
            curve = {"unigram log p per word": self.unigram, "curve": self.history}
            write_json(history_file, about | network | curve)
        self.finish()
        stats: dict[str, object] = {"updates": self.update, "pairs seen": self.seen}
        if len(self.held_out):
            stats |= {name: kept[name] for name in ("held-out log p per pair", "held-out log p per word")}
            stats |= {"unigram per word": self.unigram}
        return stats | {"clip rate": last["clip rate"]}

    def begins(self) -> str:
        text = f"{len(self.pairs):,} pairs, {self.trained:,} of them trained on, {len(self.held_out):,} held out"
        return f"{text}, {len(self.of_sentences):,} of held-out sentences" if self.overlapping else text

    def says(self, row: dict[str, Any]) -> str:
        text = f"log p per word: trained {row['train log p per word']:.4f}"
        if "held-out log p per word" in row:
            text += f", held out {row['held-out log p per word']:.4f} (unigrams {self.unigram:.4f})"
        if "overlapping log p per word" in row:
            text += f", drawn from the table {row['overlapping log p per word']:.4f}"
        return text
