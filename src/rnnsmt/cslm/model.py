"""The feed-forward language model of the paper (section 4.1.2; Bengio et al. 2003, Schwenk 2007), in PyTorch.

The words before the predicted one are projected by the same matrix R and concatenated, oldest first::

    x = [R(w_{t-n+1}); ...; R(w_{t-1})]      (n - 1) * projection
    h = f(W_1 x + b_1)                       hidden_1
    g = f(W_2 h + b_2)                       hidden_2
    p(w | context) = softmax(W_o g + b_o)    all classes

f is the rectifier. Positions before the beginning of the sentence have id 0. B: n-grams of a batch, C: context words.

``rnnsmt.nnjm`` has the same network with more inputs: source words in addition to the preceding target words; f may be
tanh.

Further below: the file of a network, with its sizes, parameters, the words of its classes, and its training settings.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from rnnsmt.base.io import InputError
from rnnsmt.cslm.settings import CslmSizes, FeedForwardSizes
from rnnsmt.networks.model_file import ModelFormat, corrupt_as_input_error, read_model, write_model
from rnnsmt.networks.vocabulary import Vocabulary

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": torch.relu_, "tanh": torch.tanh_}
"""The activation functions of the hidden layers, applied in place."""


class FeedForwardLM(nn.Module):
    """The feed-forward network (7-grams at the paper's sizes); parameters are named as in the equations."""

    def __init__(self, sizes: FeedForwardSizes, seed: int | None, spread: float = 0.01) -> None:
        """Build a network; biases are initialised to 0.

        Args:
            sizes: the sizes of the network.
            seed: seed of the initial parameters; None: they are not initialised.
            spread: weights are drawn from U(-spread, spread); 0: from ranges by number of inputs (He et al. 2015).
        """
        super().__init__()
        self.sizes = sizes
        self.activation = ACTIVATIONS[sizes.activation]
        wide = sizes.context * sizes.projection
        self.R = nn.Parameter(torch.empty(sizes.inputs, sizes.projection))
        self.W_1 = nn.Parameter(torch.empty(sizes.hidden_1, wide))
        self.b_1 = nn.Parameter(torch.empty(sizes.hidden_1))
        self.W_2 = nn.Parameter(torch.empty(sizes.hidden_2, sizes.hidden_1))
        self.b_2 = nn.Parameter(torch.empty(sizes.hidden_2))
        self.W_o = nn.Parameter(torch.empty(sizes.vocabulary, sizes.hidden_2))
        self.b_o = nn.Parameter(torch.empty(sizes.vocabulary))
        if seed is not None:
            self._initialise(torch.Generator().manual_seed(seed), spread)

    @torch.no_grad()
    def _initialise(self, generator: torch.Generator, spread: float) -> None:
        """Draw the weights, see ``__init__``."""
        for bias in (self.b_1, self.b_2, self.b_o):
            bias.zero_()
        # for spread 0: U(-a, a) has variance a^2 / 3; 2 / inputs before a rectifier, 1 / inputs before the softmax
        # preserve the variance of the signal
        by_inputs = {
            self.R: 1.0,
            self.W_1: (6 / self.W_1.shape[1]) ** 0.5,
            self.W_2: (6 / self.W_2.shape[1]) ** 0.5,
            self.W_o: (3 / self.W_o.shape[1]) ** 0.5,
        }
        for weight, width in by_inputs.items():
            weight.uniform_(-(spread or width), spread or width, generator=generator)

    def hidden(self, contexts: Tensor) -> Tensor:
        """Compute the last hidden layer g [B, hidden_2] from context ids [B, C], oldest first."""
        x = self.R[contexts].flatten(1)
        h = self.activation(x @ self.W_1.t() + self.b_1)
        return self.activation(h @ self.W_2.t() + self.b_2)

    def logits(self, contexts: Tensor) -> Tensor:
        """Compute the output units before the softmax [B, vocabulary] from context ids [B, C]."""
        return self.hidden(contexts) @ self.W_o.t() + self.b_o

    def log_probability(self, contexts: Tensor, words: Tensor) -> Tensor:
        """Compute ln p(words | contexts) [B] with the exact softmax."""
        return torch.log_softmax(self.logits(contexts), 1).gather(1, words[:, None])[:, 0]


FORMAT = ModelFormat("rnnsmt-cslm-2", "a CSLM", "train it again with cslm train")


class TrainedCslm(NamedTuple):
    """The content of a model file.

    Attributes:
        model: the network.
        vocabulary: the words of its classes.
        self_normalised: whether the network was trained so that an output unit approximates the log probability.
        unknown_words: number of distinct words of the training text outside the vocabulary, i.e. in the class UNK.
        meta: settings, seed and results of the training.
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
    """Write a model, atomically; arguments as in ``TrainedCslm``. meta: plain values."""
    content = {
        "words": vocabulary.words[2:-1],
        "self-normalised": self_normalised,
        "unknown words": unknown_words,
        "meta": meta,
    }
    write_model(path, FORMAT, model, model.sizes, content)


def load_model(path: str | Path, device: torch.device | str = "cpu") -> TrainedCslm:
    """Read a model onto a device.

    Raises:
        InputError: the file is missing, damaged, or of another kind.
    """
    model, content = read_model(path, FORMAT, lambda sizes: FeedForwardLM(CslmSizes(**sizes), seed=None), device)
    with corrupt_as_input_error(path, FORMAT.remedy):
        vocabulary, normalised = Vocabulary(content["words"]), bool(content["self-normalised"])
        trained = TrainedCslm(model, vocabulary, normalised, int(content["unknown words"]), content["meta"])
    if len(vocabulary) != model.sizes.vocabulary:
        raise InputError(f"{path}: the numbers of words and of output classes differ; {FORMAT.remedy}")
    return trained
