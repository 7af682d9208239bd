"""Training of an RNN Encoder-Decoder on phrase pairs; the loop is in ``rnnsmt.networks.training``."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rnnsmt.networks.batches import Index
from rnnsmt.networks.devices import DeviceSetup
from rnnsmt.networks.operations import DROPOUT_ROWS
from rnnsmt.networks.softmax import ClassSampler
from rnnsmt.networks.training import ThreadParts, Trainer
from rnnsmt.rnn.batches import PairBatches, group_by_length, pair_tensors
from rnnsmt.rnn.gradients import autograd_loss_and_gradient, loss_and_gradient
from rnnsmt.rnn.held_out import HeldOutPairs, split_pairs, unigram_likelihood
from rnnsmt.rnn.model import RNNEncoderDecoder, check_lengths, save_model, vocabularies_of
from rnnsmt.rnn.pairs import Pairs, word_frequencies
from rnnsmt.rnn.settings import RnnSettings


class RnnTrainer(Trainer):
    """The training of a network on phrase pairs."""

    chapter = "rnn"
    examples = "pairs"
    model: RNNEncoderDecoder
    settings: RnnSettings

    def __init__(
        self,
        pairs: Pairs,
        settings: RnnSettings,
        seed: int,
        setup: DeviceSetup,
        threads: int = 1,
        leave_out: tuple[int, int] | None = None,
    ) -> None:
        """ThreadParts the pairs into training and held-out pairs, and create the network.

        leave_out: (part, parts): the pairs that only occur in this part are not trained on, see ``Pairs.left_out``.
        """
        counts = pairs.counts() if settings.weighting == "counts" else None
        left_out = np.flatnonzero(pairs.left_out(*leave_out)) if leave_out else np.zeros(0, np.int64)
        pairs = pairs.in_direction(settings.direction)
        self.pairs, self.leave_out = pairs, leave_out
        self.split = split_pairs(pairs, settings, seed, left_out)
        self.validation = HeldOutPairs(pairs, self.split.evaluated, setup)
        overlapping = self.split.overlapping
        self.overlapping = None if overlapping is None else HeldOutPairs(pairs, overlapping, setup)
        once = np.ones(len(pairs), np.int32)
        once[self.split.untrained] = 0
        frequencies = word_frequencies(pairs, once)
        self.unigram = unigram_likelihood(pairs, self.split.evaluated, frequencies).per_word
        same_lengths = settings.batching == "lengths"
        batches = PairBatches(pairs, settings.batch, seed, self.split.untrained, counts, same_lengths)
        self.trained = batches.trained
        self.sum_of_losses = settings.loss == "sum"
        sampler = None
        if settings.sampled_classes:
            drawn = frequencies if counts is None else word_frequencies(pairs, once * counts)
            sampler = ClassSampler(drawn + 1, settings.sampled_classes, seed)
        sizes = settings.sizes(*(len(vocabulary) for vocabulary in pairs.vocabularies))
        check_lengths(sizes, pairs)
        super().__init__(
            RNNEncoderDecoder(sizes, seed, settings.deviation).to(setup.device),
            settings,
            seed,
            {"pairs": pairs.fingerprint, "seed": seed, "leave_out": leave_out},
            setup,
            batches,
            threads,
            ThreadParts(dimension=1, grain=DROPOUT_ROWS if settings.dropout else 1),
            total=settings.updates or batches.updates(settings.epochs),
            evaluations=settings.evaluations,
            sampler=sampler,
        )

    # an update

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
            Source words [N, B]; target words [T, B]; the numbers [1, B] of the pairs in the training, in CPU memory.
        """
        return *pair_tensors(self.pairs, index, self.setup.device), self.example_numbers(len(index), begin)[None]

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

    # the learning curve

    def measure(self, row: dict[str, Any]) -> bool:
        row["epoch"] = round(self.seen / self.trained, 4)
        loss = self.sums.measured[0].item()
        row["train log p per pair"] = -loss / self.sums.examples
        row["train log p per word"] = -loss / self.sums.words
        if not len(self.split.held_out):
            return False
        likelihood = self.validation.measure(self.model)
        row |= {"held-out log p per pair": likelihood.per_pair, "held-out log p per word": likelihood.per_word}
        if self.overlapping is not None:
            row["overlapping log p per word"] = self.overlapping.measure(self.model).per_word
        best = self.history[self.best[0]]["held-out log p per pair"] if self.best else float("-inf")
        return self.settings.keep == "best" and likelihood.per_pair > best

    def start_message(self) -> str:
        split = self.split
        text = f"{len(self.pairs):,} pairs, {self.trained:,} of them trained on, {len(split.held_out):,} held out"
        return f"{text}, {len(split.of_sentences):,} of held-out sentences" if self.overlapping else text

    def format_metrics(self, row: dict[str, Any]) -> str:
        text = f"log p per word: trained {row['train log p per word']:.4f}"
        if "held-out log p per word" in row:
            text += f", held out {row['held-out log p per word']:.4f} (unigrams {self.unigram:.4f})"
        if "overlapping log p per word" in row:
            text += f", drawn from the table {row['overlapping log p per word']:.4f}"
        return text

    # the output files

    def describe(self, kept: dict[str, Any]) -> dict[str, object]:
        return super().describe(kept) | ({"leave out": self.leave_out} if self.leave_out else {})

    def statistics(self, kept: dict[str, Any]) -> dict[str, object]:
        stats: dict[str, object] = {"updates": self.update, "pairs seen": self.seen}
        if len(self.split.held_out):
            stats |= {name: kept[name] for name in ("held-out log p per pair", "held-out log p per word")}
            stats |= {"unigram per word": self.unigram}
        return stats | {"clip rate": self.history[-1]["clip rate"]}

    def save_network(self, path: str | Path, description: dict[str, object], stats: dict[str, object]) -> None:
        data = {**vocabularies_of(self.pairs), "pairs": self.pairs.fingerprint}
        save_model(path, self.model, description | {"direction": self.settings.direction} | data)

    def history_header(self, stats: dict[str, object]) -> dict[str, object]:
        return {
            "held-out pairs": len(self.split.held_out),
            "of held-out sentences": len(self.split.of_sentences),
            "computed on": self.setup.describe(),
            "unigram log p per word": self.unigram,
        }
