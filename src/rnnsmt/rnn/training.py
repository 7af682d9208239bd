"""Training of an RNN Encoder-Decoder on phrase pairs: minibatches, held-out pairs, task.

The training loop is in ``rnnsmt.networks.training``. Each pair occurs once per epoch, in random order. The pairs of a
minibatch have equal source lengths and equal target lengths (``PairBatches``), or have similar lengths and are padded
(``SortedBatches``).

The likelihood of held-out pairs is computed under the network and under a unigram model.
"""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rnnsmt.base.errors import InputError
from rnnsmt.base.paths import StrPath
from rnnsmt.networks.batches import Index, SortedBatches, WindowBatches
from rnnsmt.networks.devices import DeviceSetup
from rnnsmt.networks.gradients import backpropagate
from rnnsmt.networks.pair_training import PairTask
from rnnsmt.networks.read_ahead import ReadAhead
from rnnsmt.networks.task import Row, Sums, evenly
from rnnsmt.rnn.model import RNNEncoderDecoder, hashes_of, loss_and_gradient, save_model
from rnnsmt.rnn.pairs import Pairs
from rnnsmt.rnn.settings import RnnSettings


def pair_tensors(pairs: Pairs, index: Index, device: torch.device | str = "cpu") -> tuple[Tensor, ...]:
    """Return pairs as int64 tensors on the device: source ids [N, B], target ids [T, B], and lengths [2, B].

    Each column of ids ends in EOS and is padded with EOS. The lengths are the numbers of source and target ids,
    including EOS but not padding.
    """
    lengths = np.stack([side.lengths(index) for side in pairs.sides])
    parts = [side.padded(index) for side in pairs.sides]
    # one copy to the device
    rows = torch.from_numpy(np.concatenate([*parts, lengths])).to(device, non_blocking=True)
    return rows.split([*map(len, parts), len(lengths)])


def longer_side(pairs: Pairs, index: Index) -> Index:
    """Return the length of the longer side of each pair, with EOS."""
    return np.maximum(*(side.lengths(index) for side in pairs.sides))


def group_by_length(pairs: Pairs, index: Index) -> list[Index]:
    """Group pairs by source and target length; the order within a group is kept."""
    source, target = (side.lengths(index) for side in pairs.sides)
    # (source length, target length) as one integer
    kind = source * (int(target.max(initial=0)) + 1) + target
    order = np.argsort(kind, kind="stable")
    borders = np.flatnonzero(np.diff(kind[order])) + 1
    return [group for group in np.split(index[order], borders) if len(group)]


class PairBatches(WindowBatches):
    """Minibatches of phrase pairs with equal source lengths and equal target lengths.

    The pairs of incomplete minibatches are carried over to the next window, except at the end of an epoch.

    Attributes:
        size: number of pairs, including held-out pairs.
        waiting: pairs carried over from the previous window.
        examples: the pairs of the current window.
    """

    def __init__(self, pairs: Pairs, batch: int, seed: int, held_out: Index) -> None:
        """Begin with the first epoch.

        Args:
            batch: number of pairs of a minibatch; at the end of an epoch there may be fewer.
            held_out: indices of the held-out pairs, ascending.
        """
        super().__init__(len(pairs), seed)
        self.batch, self.held_out, self.examples = batch, held_out, ReadAhead(pairs.at)
        self.waiting: Index = np.zeros(0, np.int64)
        self._left = self.waiting

    def next_window(self) -> None:
        """Advance to the next window and carry over the remaining pairs of the current one."""
        super().next_window()
        self.waiting = self._left

    def form(self, order: Index) -> list[Index]:
        """Form the minibatches of the current window, and keep the pairs of incomplete ones for the next window."""
        last = self.window + 1 == self.windows
        ready, left = [], [np.zeros(0, np.int64)]
        index = self._with_trained(self.waiting, order)
        for places in group_by_length(*self.examples.take(index)):
            group = self.examples.index[places]
            whole = len(group) if last else len(group) - len(group) % self.batch
            ready += [group[begin : begin + self.batch] for begin in range(0, whole, self.batch)]
            left.append(group[whole:])
        self._left = np.concatenate(left)
        self.examples.read_ahead(self._with_trained(self._left, self.order(1)))
        return ready

    def _with_trained(self, waiting: Index, order: Index) -> Index:
        """Return ``waiting``, followed by the pairs of ``order`` that are not held out."""
        return np.concatenate([waiting, order[~np.isin(order, self.held_out)]])

    def state(self) -> dict[str, Any]:
        """Return the position in the sequence, for a checkpoint."""
        return super().state() | {"waiting": torch.from_numpy(self.waiting.copy())}

    def restore(self, state: dict[str, Any]) -> None:
        """Resume at a position that ``state`` returned."""
        super().restore(state)
        self.waiting = state["waiting"].cpu().numpy()


ROWS = 256
"""Number of pairs that are evaluated at a time."""


class PhrasePairTask(PairTask):
    """Training of a network on phrase pairs; the network has a method ``log_probability`` as ``RNNEncoderDecoder``.

    Attributes:
        trained: number of training pairs, i.e. of pairs that are not held out.
        validation: batches of held-out pairs with equal lengths, each a tuple of arguments of ``log_probability``.
    """

    pairs: Pairs
    batches: PairBatches | SortedBatches

    def __init__(self, pairs: Pairs, settings: Any, seed: int, setup: DeviceSetup) -> None:
        """Draw the held-out pairs."""
        super().__init__(pairs, "pairs", settings, seed, setup)
        self.trained = len(pairs) - len(self.held_out)
        if self.trained <= 0:
            raise InputError(f"{pairs.store.path}: no pairs remain for training; use more text, or omit --held-out")
        held_out = pairs.at(self.held_out)
        groups = group_by_length(held_out, np.arange(len(held_out)))
        pieces = [group[begin : begin + ROWS] for group in groups for begin in range(0, len(group), ROWS)]
        self.validation = [rows_and_lengths(*pair_tensors(held_out, piece, setup.device)) for piece in pieces]
        if settings.batching == "lengths":
            self.batches = PairBatches(pairs, settings.batch, seed, self.held_out)
            self.loaded = self.batches.examples
        else:
            self.loaded = ReadAhead(pairs.at)
            self.batches = SortedBatches(
                len(pairs), settings.batch, seed, self.held_out, self.longer_sides, self.loaded
            )
        self.sum_of_losses = settings.loss == "sum"
        self.total = settings.updates or max(round(settings.epochs * self.trained / settings.batch), 1)
        self.evaluations = evenly(self.total, settings.evaluations)

    def tensors(self, index: Index, update: int) -> tuple[Tensor, ...]:
        """Return the tensors of ``pair_tensors`` for the pairs ``index``."""
        return pair_tensors(*self.loaded.of(index), self.setup.device)

    def longer_sides(self, index: Index) -> Index:
        """Return the length of the longer side of each pair, with EOS."""
        return longer_side(*self.loaded.of(index))

    def loss_and_gradient(self, model: Any, *batch: Any) -> Tensor:
        """Differentiate ``log_probability`` by autograd."""
        source, target, lengths, _ = batch
        loss = -model.log_probability(*rows_and_lengths(source, target, lengths)).sum()
        backpropagate(loss, torch.ones_like(loss), list(model.parameters()), [])
        return loss.detach().double()

    def evaluate(self, seen: int, sums: Sums) -> Row:
        loss = sums.measured[0].item()
        row = {
            "epoch": round(seen / self.trained, 4),
            "train log p per pair": -loss / sums.examples,
            "train log p per word": -loss / sums.words,
        }
        if len(self.held_out):
            found = self.likelihood(self.validation)
            row |= {"held-out log p per pair": found.per_pair, "held-out log p per word": found.per_word}
        return row

    def quality(self, row: Row) -> float:
        return row.get("held-out log p per pair", -math.inf) if self.settings.keep == "best" else -math.inf

    def start_message(self) -> str:
        text = f"{len(self.pairs):,} pairs: {self.trained:,} for training, {len(self.held_out):,} held out"
        if self.settings.keep == "best" and not len(self.held_out):
            text += " (so the last parameters are kept, not the best ones)"
        return text

    def format(self, row: Row) -> str:
        text = f"log p per word: training {row['train log p per word']:.4f}"
        if "held-out log p per word" in row:
            text += f", held-out {row['held-out log p per word']:.4f} (unigram model {self.unigram:.4f})"
        return text

    def results(self, history: list[Row], kept_row: Row) -> tuple[dict[str, object], dict[str, object]]:
        last = history[-1]
        stats: dict[str, object] = {"updates": last["update"], "pairs seen": last["pairs"]}
        if len(self.held_out):
            stats |= {name: kept_row[name] for name in ("held-out log p per pair", "held-out log p per word")}
            stats["unigram log p per word"] = self.unigram
        stats["clip rate"] = last["clip rate"]
        return stats, {
            "held-out pairs": len(self.held_out),
            "computed on": self.setup.describe(),
            "unigram log p per word": self.unigram,
        }


class RnnTask(PhrasePairTask):
    """Training of an RNN Encoder-Decoder."""

    network = "rnn"
    model: RNNEncoderDecoder
    settings: RnnSettings

    def __init__(self, pairs: Pairs, settings: RnnSettings, seed: int, setup: DeviceSetup) -> None:
        """Draw the held-out pairs and create the network."""
        super().__init__(pairs, settings, seed, setup)
        sizes = settings.sizes(*map(len, pairs.vocabularies))
        self.model = RNNEncoderDecoder(sizes, seed, settings.deviation).to(setup.device)
        self.same_launches = settings.variant != "supplementary"

    def loss_and_gradient(self, model: RNNEncoderDecoder, *batch: Any) -> Tensor:
        """Use the hand-written gradient, or autograd for the variant ``supplementary``."""
        if self.settings.variant == "supplementary":
            return super().loss_and_gradient(model, *batch)
        source, target, lengths, draws = batch
        return loss_and_gradient(model, source, target, lengths, self.setup.matmul_dtype, draws)

    def save_model(self, path: StrPath, description: dict[str, object], stats: dict[str, object]) -> None:
        save_model(path, self.model, description | hashes_of(self.pairs.vocabularies) | self.inputs)


def rows_and_lengths(source: Tensor, target: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
    """Return the tensors of ``pair_tensors`` as arguments of ``log_probability``."""
    return source.t(), lengths[0], target.t(), lengths[1]
