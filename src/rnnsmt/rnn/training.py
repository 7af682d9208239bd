"""An RNN Encoder-Decoder in training.

Training of an RNN Encoder-Decoder, to the end or to the next stop.
"""

from functools import partial
from typing import Any

from torch import Tensor

from rnnsmt.io import write_json
from rnnsmt.networks import training as networks
from rnnsmt.networks.devices import Place
from rnnsmt.networks.shuffling import Index
from rnnsmt.networks.softmax import Products
from rnnsmt.networks.training import Figures, Outputs
from rnnsmt.rnn.batches import BatchStream, hold_out, words_of
from rnnsmt.rnn.gradients import loss_and_any_gradient
from rnnsmt.rnn.model import RNNEncoderDecoder, save_model, vocabularies_of
from rnnsmt.rnn.pairs import Pairs
from rnnsmt.rnn.settings import Settings
from rnnsmt.rnn.validation import HeldOut, unigram_likelihood
from rnnsmt.stages import STAGES


class Trainer(networks.Trainer):
    """A network and the phrase pairs that it learns from."""

    examples = "pairs"

    def __init__(self, pairs: Pairs, settings: Settings, seed: int, place: Place, threads: int = 1) -> None:
        self.pairs, self.settings, self.seed = pairs, settings, seed
        sizes = settings.sizes(*(len(vocabulary) for vocabulary in pairs.vocabularies))
        self.model = RNNEncoderDecoder(sizes, seed, settings.deviation).to(place.device)
        self.held_out = hold_out(len(pairs), settings.held_out, seed)
        self.validation = HeldOut(pairs, self.held_out, place)
        self.unigram = unigram_likelihood(pairs, self.held_out).per_word
        self.sum_of_losses = settings.loss == "sum"
        stream = BatchStream(pairs, settings.batch, seed, self.held_out)
        self.total = settings.updates or stream.updates(settings.epochs)
        gradient = partial(loss_and_any_gradient, Products(place.factors))
        super().__init__(self.model, settings, place, stream, gradient, 1, threads)
        number = min(settings.evaluations, self.total)
        self.evaluations = {round(self.total * k / number) for k in range(1, number + 1)}

    def fingerprint(self) -> dict[str, object]:
        version = STAGES["rnn"]["train"].version
        pairs = self.pairs.fingerprint
        return {"version of rnn train": version, "pairs": pairs, "seed": self.seed, **self.settings.as_dict()}

    def minibatch(self, index: Index) -> tuple[Tensor, ...]:
        """Source and target words, [length, B] each: all pairs of a minibatch have the same lengths."""
        return words_of(self.pairs, index, self.place.device)

    def words(self, index: Index) -> int:
        return len(index) * int(self.pairs.sides[1].lengths(index[:1])[0])

    @property
    def finished(self) -> bool:
        return self.update >= self.total

    @property
    def evaluation_due(self) -> bool:
        return self.update in self.evaluations

    def measure(self, row: dict[str, Any]) -> bool:
        row["epoch"] = round(self.seen / (len(self.pairs) - len(self.held_out)), 4)
        loss = self.sums.measured[0].item()
        row["train log p per pair"] = -loss / self.sums.examples
        row["train log p per word"] = -loss / self.sums.words
        if not len(self.held_out):
            return False
        found = self.validation.likelihood(self.model)
        row |= {"held-out log p per pair": found.per_pair, "held-out log p per word": found.per_word}
        best = self.history[self.best[0]]["held-out log p per pair"] if self.best else float("-inf")
        return self.settings.keep == "best" and found.per_pair > best

    def begins(self) -> str:
        return f"{len(self.pairs):,} pairs, {len(self.held_out):,} of them held out"

    def says(self, row: dict[str, Any]) -> str:
        text = f"log p per word: trained {row['train log p per word']:.4f}"
        if "held-out log p per word" in row:
            text += f", held out {row['held-out log p per word']:.4f} (unigrams {self.unigram:.4f})"
        return text


def train(pairs: Pairs, settings: Settings, seed: int, place: Place, outputs: Outputs, threads: int = 1) -> Figures:
    """Train a network, or go on with one, and write it with its learning curve; the figures of the stage.

    Raises:
        InputError, SystemExit: as ``rnnsmt.networks.training.run``.
    """
    return networks.run(partial(Trainer, pairs, settings, seed, place, threads), outputs, write)


def write(trainer: Trainer, outputs: Outputs) -> Figures:
    """Write the network and its learning curve."""
    last, chosen = trainer.history[-1], trainer.choose()
    about = {"settings": trainer.settings.as_dict(), "seed": trainer.seed, "kept update": chosen["update"]}
    if trainer.place.first:
        belongs = {**vocabularies_of(trainer.pairs), "pairs": trainer.pairs.fingerprint}
        save_model(outputs.model, trainer.model, about | belongs)
        sizes: Figures = {"parameters": trainer.model.sizes.count(), "held-out pairs": len(trainer.held_out)}
        sizes |= {"computed on": trainer.place.describe()}
        history = about | sizes | {"unigram log p per word": trainer.unigram, "curve": trainer.history}
        write_json(outputs.history, history)
    figures: Figures = {"updates": trainer.update, "pairs seen": trainer.seen}
    if len(trainer.held_out):
        figures |= {name: chosen[name] for name in ("held-out log p per pair", "held-out log p per word")}
        figures |= {"unigram per word": trainer.unigram}
    return figures | {"clip rate": last["clip rate"]}
