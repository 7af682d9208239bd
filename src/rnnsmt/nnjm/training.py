"""Training of a joint model on a bitext with links; the loop is in ``rnnsmt.networks.training``.

Whole sentence pairs are held out for validation: examples of one sentence share most of their inputs.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rnnsmt.networks.data import NULL, UNK, Index, Sequences
from rnnsmt.networks.devices import DeviceSetup
from rnnsmt.networks.feed_forward import (
    FeedForwardLM,
    FeedForwardTrainer,
    HeldOutNGrams,
    class_counts,
    class_sampler,
    set_output_bias,
    unigram_log_p,
)
from rnnsmt.nnjm.examples import Examples
from rnnsmt.nnjm.model import TrainedNnjm, save_model
from rnnsmt.nnjm.settings import JointSettings


class NnjmTrainer(FeedForwardTrainer):
    """Training of a joint model on the examples of a bitext."""

    package = "nnjm"
    settings: JointSettings

    def __init__(
        self, examples: Examples, settings: JointSettings, seed: int, setup: DeviceSetup, threads: int = 1
    ) -> None:
        """Split the examples into training and held-out ones, and create the network."""
        self.data, self.order, self.window = examples, settings.order, settings.window
        pairs = draw_pairs(examples.target, settings.held_out_of(len(examples)), seed)
        held_out = places_of(examples.target, pairs)
        counts = class_counts(examples.target.words, len(examples.target_vocabulary), held_out)
        source = class_counts(examples.source.words, len(examples.source_vocabulary), places_of(examples.source, pairs))
        every = np.concatenate([counts, source])
        first_source = len(counts)
        self.unknown_of = np.full(len(every), UNK)
        self.unknown_of[first_source:] += first_source
        special = [NULL, UNK, first_source - 1, first_source + NULL, first_source + UNK, len(every) - 1]
        self.rare, self.unseen = every == 2, every == 1  # ``class_counts`` adds one
        self.rare[special] = self.unseen[special] = False
        model = FeedForwardLM(
            settings.sizes(len(examples.target_vocabulary), len(examples.source_vocabulary)), seed, settings.spread
        )
        set_output_bias(model, settings.output_bias, counts)
        validation = self.ngrams(held_out)
        validation = np.where(self.unseen[validation], self.unknown_of[validation], validation)
        super().__init__(
            model.to(setup.device),
            settings,
            seed,
            {"examples": examples.fingerprint, "seed": seed},
            setup,
            threads,
            len(examples),
            held_out,
            HeldOutNGrams(validation, setup),
            unigram_log_p(examples.target.words[held_out].astype(np.int64), counts),
            class_sampler(counts, self.rare[:first_source], settings, seed),
        )

    def ngrams(self, index: Index) -> NDArray[np.int64]:
        """Return examples [B, C + 1]: their inputs, and the word to predict."""
        words = self.data.target.words[index].astype(np.int64)
        return np.concatenate([self.data.inputs(index, self.order, self.window), words[:, None]], 1)

    def start_message(self) -> str:
        return f"{len(self.data):,} target words, {self.validation.number:,} of them for validation"

    def save_network(self, path: str | Path, description: dict[str, object], stats: dict[str, object]) -> None:
        data = self.data
        meta = {**description, "examples": data.fingerprint, "vocabulary": data.target_vocabulary.hash(), **stats}
        normalised = self.settings.self_normalised > 0
        save_model(
            path,
            TrainedNnjm(
                self.model,
                data.target_vocabulary,
                data.source_vocabulary,
                normalised,
                data.unknown_words,
                meta,
            ),
        )


def draw_pairs(target: Sequences, words: int, seed: int) -> Index:
    """Draw sentence pairs with at least ``words`` target words in total; return their numbers, ascending."""
    order = np.random.default_rng([seed, 1]).permutation(len(target.offsets) - 1)
    total = np.cumsum(target.lengths(order))
    number = int(np.searchsorted(total, words)) + 1 if words else 0
    return np.sort(order[:number]).astype(np.int64)


def places_of(side: Sequences, pairs: Index) -> Index:
    """Return the positions of all ids of some sentences, ascending; ``pairs`` are ascending."""
    lengths = side.lengths(pairs)
    first = side.offsets[pairs] - (np.cumsum(lengths) - lengths)
    return np.repeat(first, lengths) + np.arange(int(lengths.sum()))
