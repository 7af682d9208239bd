"""The continuous-space language model of the paper: the file of a network, and its training on the n-grams of a text.

The equations are in ``rnnsmt.networks.feed_forward``. A file contains the sizes, the parameters, the words of the
classes, and the settings of the training run.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from rnnsmt.cslm.settings import CslmSettings, CslmSizes
from rnnsmt.cslm.text import Text
from rnnsmt.networks.data import UNK, Index, Vocabulary, draw_held_out
from rnnsmt.networks.devices import DeviceSetup
from rnnsmt.networks.feed_forward import (
    FeedForwardLM,
    FeedForwardTrainer,
    HeldOutNGrams,
    as_trained,
    class_counts,
    class_sampler,
    set_output_bias,
    unigram_log_p,
)
from rnnsmt.networks.model_file import ModelFormat, read_model, write_model

FORMAT = ModelFormat("rnnsmt-cslm-2", "a CSLM", "train it again with `cslm train`")


class TrainedCslm(NamedTuple):
    """Content of a model file.

    Attributes:
        vocabulary: the words of its classes.
        self_normalised: whether the network was trained so that an output unit approximates the log probability.
        unknown_words: number of distinct words of the training text outside the vocabulary, i.e. in the class UNK.
        meta: settings, seed and results of the training run.
    """

    model: FeedForwardLM
    vocabulary: Vocabulary
    self_normalised: bool
    unknown_words: int
    meta: dict[str, Any]


def save_model(
    path: str | Path,
    model: FeedForwardLM,
    vocabulary: Vocabulary,
    self_normalised: bool,
    unknown_words: int,
    meta: dict[str, Any],
) -> None:
    """Write a model atomically; arguments as in ``TrainedCslm``. meta: values of built-in types."""
    content = {
        "words": vocabulary.words[2:-1],
        "self-normalised": self_normalised,
        "unknown words": unknown_words,
        "meta": meta,
    }
    write_model(path, FORMAT, model, model.sizes, content)


def load_model(path: str | Path, device: torch.device | str = "cpu") -> TrainedCslm:
    """Read a model onto a device."""
    model, content = read_model(path, FORMAT, lambda sizes: FeedForwardLM(CslmSizes(**sizes), seed=None), device)
    return TrainedCslm(
        model, Vocabulary(content["words"]), content["self-normalised"], content["unknown words"], content["meta"]
    )


class CslmTrainer(FeedForwardTrainer):
    """Trainer of a CSLM on a text."""

    package = "cslm"
    settings: CslmSettings

    def __init__(self, text: Text, settings: CslmSettings, seed: int, setup: DeviceSetup, threads: int = 1) -> None:
        """Split the n-grams into training and held-out n-grams, and create the network."""
        self.text, self.context = text, settings.order - 1
        held_out = draw_held_out(len(text), settings.held_out_of(len(text)), seed)
        counts = class_counts(text.words, len(text.vocabulary), held_out)
        self.rare = counts == 2
        """bool [classes]: whether a word occurs once; ``class_counts`` adds one."""
        self.rare[text.vocabulary.eos] = False
        self.unknown_of = np.full(len(counts), UNK)
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
        """Return the n-grams [B, order] whose last words are at the positions ``index`` of the text."""
        return np.concatenate([self.text.contexts(index, self.context), self.text.words[index][:, None]], 1)

    def start_message(self) -> str:
        return f"{len(self.text):,} n-grams, {self.validation.number:,} of them for validation"

    def save_network(self, path: str | Path, description: dict[str, object], stats: dict[str, object]) -> None:
        vocabulary, normalised = self.text.vocabulary, self.settings.self_normalised > 0
        meta = {**description, "text": self.text.fingerprint, "vocabulary": vocabulary.hash(), **stats}
        save_model(path, self.model, vocabulary, normalised, self.text.unknown_words, meta)
