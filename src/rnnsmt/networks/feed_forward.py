"""The feed-forward language model (Bengio et al. 2003, Schwenk 2007), in PyTorch: equations, gradient, model files.

The words before the predicted one are projected by the same matrix R and concatenated, oldest first::

    x = [R(w_{t-n+1}); ...; R(w_{t-1})]      (n - 1) * projection
    h = f(W_1 x + b_1)                       hidden_1
    g = f(W_2 h + b_2)                       hidden_2
    p(w | context) = softmax(W_o g + b_o)    all classes

Positions before the beginning of the sentence have id 0. B: n-grams of a batch, C: context words.

In the CSLM of the paper (section 4.1.2), f is the rectifier. The joint model (``rnnsmt.nnjm``) is the same network with
source words as additional inputs, and f may also be tanh.

``loss_and_gradient`` has a hand-written gradient of the layers that scoring also uses: on a CPU, autograd would take up
to a tenth of the time of a small network. Training is in ``rnnsmt.networks.feed_forward_training``.
"""

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn

from rnnsmt.base.options import MAX_INT
from rnnsmt.base.paths import StrPath
from rnnsmt.networks.data import DistinctWords, Vocabulary
from rnnsmt.networks.draws import NOTHING_DRAWN, Draws
from rnnsmt.networks.gradients import product, put_gradient
from rnnsmt.networks.model_file import ModelContent, ModelFormat, Shortlist, read_model, write_model
from rnnsmt.networks.settings import FeedForwardSizes
from rnnsmt.networks.softmax import softmax_gradient

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": torch.relu_, "tanh": torch.tanh_}
"""The activation functions of the hidden layers, applied in place."""


class HiddenLayer(NamedTuple):
    """Values of a hidden layer that the computation of its gradient requires.

    Attributes:
        x: [B, inputs], the inputs, rounded for the matrix product.
        W: [units, inputs], the weights, rounded for the matrix product.
        units: [B, units], f(W x + b) after dropout.
        factors: [B, units], the dropout factors; None without dropout.
    """

    x: Tensor
    W: Tensor
    units: Tensor
    factors: Tensor | None

    def backpropagate(self, d: Tensor, activation: str) -> None:
        """Convert the gradient of the units, d [B, units], to the gradient of W x + b, in place.

        A dropped unit is 0 like an inactive rectifier, and its gradient is also 0.
        """
        if activation == "relu":
            d *= self.units > 0
            if self.factors is not None:
                d *= self.factors
        elif self.factors is None:
            d *= 1 - self.units.square()  # tanh' = 1 - tanh^2
        else:
            # a unit is c tanh or 0, its factor c or 0: c (1 - (unit / c)^2) = c - unit^2 / c, and 0 where it is dropped
            d *= self.factors - self.units.square() / self.factors.max().clamp_min(1)


class FeedForwardLM(nn.Module):
    """The feed-forward network (7-grams at the paper's sizes); parameters are named as in the equations."""

    def __init__(self, sizes: FeedForwardSizes, seed: int | None, spread: float = 0.01) -> None:
        """Build a network; biases are initialised to 0.

        Args:
            seed: seed of the initial parameters; None: they are not initialised.
            spread: weights are drawn from U(-spread, spread); 0: from a range that depends on the number of inputs of a
                unit (He et al. 2015).
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

    def layers(self, x: Tensor, dtype: torch.dtype | None = None, draws: Draws = NOTHING_DRAWN) -> list[HiddenLayer]:
        """Compute both hidden layers from projections x [B, C projection].

        Args:
            dtype: type to which the factors of matrix products are rounded; None: they are not rounded.
            draws: the dropout masks of both layers.
        """
        layers = []
        for weights, b in ((self.W_1, self.b_1), (self.W_2, self.b_2)):
            x, W = x.to(dtype or x.dtype), weights.to(dtype or x.dtype)  # rounded once, for the gradient as well
            units = self.activation(product(x, W.t(), dtype).add_(b))
            factors = draws.factors(units)
            if factors is not None:
                units *= factors
            layers.append(HiddenLayer(x, W, units, factors))
            x = units
        return layers

    def hidden(self, contexts: Tensor) -> Tensor:
        """Compute the last hidden layer g [B, hidden_2] from context ids [B, C], oldest first."""
        return self.layers(self.R[contexts].flatten(1))[-1].units

    def logits(self, contexts: Tensor) -> Tensor:
        """Compute the output units before the softmax [B, vocabulary] from context ids [B, C]."""
        return self.hidden(contexts) @ self.W_o.t() + self.b_o

    def log_probability(self, contexts: Tensor, words: Tensor) -> Tensor:
        """Compute ln p(words | contexts) [B] with the exact softmax."""
        return torch.log_softmax(self.logits(contexts), 1).gather(1, words[:, None])[:, 0]


@torch.no_grad()
def loss_and_gradient(
    model: FeedForwardLM,
    contexts: Tensor,
    words: Tensor,
    dtype: torch.dtype | None = None,
    alpha: float = 0.0,
    draws: Draws = NOTHING_DRAWN,
) -> Tensor:
    """Fill ``.grad`` of every parameter with the gradient of sum(-ln p(word | context) + alpha (ln Z)^2).

    Every parameter must have a ``.grad``, which is overwritten.

    Args:
        contexts: [B, C], the words before the predicted ones, oldest first.
        words: [B], the words to predict.
        dtype: type to which the factors of matrix products are rounded; None: they are not rounded.
        alpha: weight of the self-normalisation penalty.
        draws: the dropout masks, and the classes from which Z is estimated.

    Returns:
        float64 [2]: the sum of -ln p and the sum of (ln Z)^2; the latter is 0 if alpha is 0.
    """
    x = model.R.index_select(0, contexts.flatten()).view(len(contexts), -1)
    factors = draws.factors(x)
    if factors is not None:
        x *= factors
    layers = model.layers(x, dtype, draws)
    g = layers[-1].units
    sums, d = softmax_gradient(model.W_o, model.b_o, g, words, dtype, alpha, draws.classes(words))
    # d: gradient of the units of a layer, then of its pre-activations, then of the units of the layer before
    for layer, W, b in ((layers[1], model.W_2, model.b_2), (layers[0], model.W_1, model.b_1)):
        layer.backpropagate(d, model.sizes.activation)
        put_gradient(b, d.sum(0))
        d = d.to(layer.x.dtype)
        put_gradient(W, product(d.t(), layer.x, dtype))
        d = product(d, layer.W, dtype)
    if factors is not None:
        d *= factors
    assert model.R.grad is not None
    model.R.grad.zero_().index_add_(0, contexts.flatten(), d.view(-1, model.R.shape[1]))
    return torch.stack(sums)


class FeedForwardContent(ModelContent):
    """Metadata of the model file of a feed-forward network; a subclass defines the type of ``sizes``.

    Attributes:
        words: the words of the classes, without the special ids.
        self_normalised, unknown_words: as in ``TrainedNetwork``.
    """

    sizes: FeedForwardSizes
    words: DistinctWords
    self_normalised: Annotated[bool, Field(alias="self-normalised")]
    unknown_words: Annotated[int, Field(alias="unknown words", ge=0, le=MAX_INT)]

    def shortlists(self) -> list[Shortlist]:
        """Return the words of the classes."""
        return [Shortlist("words", self.words, self.sizes.vocabulary)]


class TrainedNetwork(NamedTuple):
    """Content of the model file of a feed-forward network.

    Attributes:
        vocabulary: the vocabulary of the classes.
        self_normalised: whether the network was trained so that an output unit approximates the log probability.
        unknown_words: number of distinct words of the training text that are outside the vocabulary, i.e. are UNK.
        meta: settings, seed and results of the training run, values of built-in types.
        source_vocabulary: the source vocabulary, if the network reads source words.
    """

    model: FeedForwardLM
    vocabulary: Vocabulary
    self_normalised: bool
    unknown_words: int
    meta: dict[str, Any]
    source_vocabulary: Vocabulary | None = None


def save_model(path: StrPath, kind: ModelFormat, trained: TrainedNetwork) -> None:
    """Write a model, atomically."""
    content = {
        "words": trained.vocabulary.words[2:-1],
        "self-normalised": trained.self_normalised,
        "unknown words": trained.unknown_words,
        "meta": trained.meta,
    }
    if trained.source_vocabulary is not None:
        content["source words"] = trained.source_vocabulary.words[2:-1]
    write_model(path, kind, trained.model, trained.model.sizes, content)


def load_model(
    path: StrPath, kind: ModelFormat, content_type: type[FeedForwardContent], device: torch.device | str = "cpu"
) -> TrainedNetwork:
    """Read a model file with metadata of the type ``content_type``, and load the network on a device."""
    model, content = read_model(path, kind, content_type, lambda sizes: FeedForwardLM(sizes, seed=None), device)
    vocabulary, *source = (Vocabulary(words) for _, words, _ in content.shortlists())
    return TrainedNetwork(model, vocabulary, content.self_normalised, content.unknown_words, content.meta, *source)
