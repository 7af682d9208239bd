"""The sizes of a joint model, its training settings, and three presets; does not import torch.

``paper``: sizes, initial weights, activation function, self-normalisation and minibatches as in Devlin et al. (2014),
who train by gradient descent with a learning rate of 0.001 that is halved when the validation likelihood decreases.
Here, the optimizer is Adam with a constant learning rate, as in the preset of the CSLM.

``small`` and ``demo``: networks for a CPU, chosen for the same reasons as the presets of the CSLM
(``rnnsmt.cslm.settings``).
"""

from collections.abc import Mapping
from typing import Annotated, Literal

from rnnsmt.base.fields import Field
from rnnsmt.config.declaration import section
from rnnsmt.networks.settings import FeedForwardSettings, FeedForwardSizes, Order, Size, network_sizes

Activation = Literal["relu", "tanh"]


@network_sizes
class JointSizes(FeedForwardSizes):
    """The sizes of a joint model.

    Attributes:
        vocabulary: number of target classes, including id 0 (padding before the sentence, never predicted), id 1 (UNK)
            and the last id (``</s>``). The preceding target words have the same ids.
        source_vocabulary: number of source ids, including these three special ids.
        order: number of target words of an n-gram, including the predicted one.
        window: number of source words on each side of the affiliated word.
        projection: dimension of the projection of an input.
        hidden_1, hidden_2: number of units of the hidden layers.
    """

    vocabulary: Size
    source_vocabulary: Size
    order: Order
    window: Annotated[int, Field(ge=0)]
    projection: Size
    hidden_1: Size
    hidden_2: Size
    activation: Activation = "tanh"

    @property
    def context(self) -> int:
        """Return the number of inputs, which are the window of source words and the preceding target words."""
        return 2 * self.window + self.order

    @property
    def inputs(self) -> int:
        """Return the number of input ids, which are the target ids, then the source ids."""
        return self.vocabulary + self.source_vocabulary

    @property
    def ranges(self) -> list[range]:
        """Return the ids that each position of the context may have: source ids in the window, then target ids."""
        source, target = range(self.vocabulary, self.inputs), range(self.vocabulary)
        return [source] * (2 * self.window + 1) + [target] * (self.order - 1)

    @property
    def first_layer_bytes(self) -> int:
        """Return the size in bytes of the first layer precomputed for every id of each position, as in a search."""
        return sum(map(len, self.ranges)) * self.hidden_1 * 4


@section
class JointSettings(FeedForwardSettings):
    """Settings of training on a word-aligned bitext."""

    window: Annotated[
        int, Field(ge=0, description="number of source words on each side of the affiliated source word")
    ] = 5
    activation: Annotated[Activation, Field(description="activation function of the hidden layers")] = "tanh"

    @classmethod
    def presets(cls) -> "Mapping[str, JointSettings]":
        return PRESETS

    def sizes(self, *vocabularies: int) -> JointSizes:
        """Return the sizes of the network for these numbers of target classes and source ids."""
        target, source = vocabularies
        return JointSizes(
            target, source, self.order, self.window, self.projection, self.hidden_1, self.hidden_2, self.activation
        )


PAPER = JointSettings(
    order=4,
    projection=192,
    hidden_1=512,
    hidden_2=512,
    spread=0.05,
    output_bias="uniform",
    self_normalised=0.1,
    batch=128,
)

SMALL = JointSettings(
    order=4,
    projection=64,
    hidden_1=256,
    hidden_2=128,
    activation="relu",
    spread=0.0,
    output_bias="unigram",
    dropout=0.2,
    singletons=0.3,
    self_normalised=0.1,
    sampled_classes=1000,
    batch=512,
    epochs=6,
    learning_rate=2e-3,
    schedule="linear",
    warmup=50,
    clip=5.0,
    precision="reduced",
)

DEMO = JointSettings(
    order=4,
    projection=32,
    hidden_1=128,
    hidden_2=64,
    activation="relu",
    spread=0.0,
    output_bias="unigram",
    dropout=0.1,
    singletons=0.3,
    self_normalised=0.1,
    sampled_classes=0,
    batch=256,
    epochs=4,
    learning_rate=0.002,
    schedule="linear",
    warmup=50,
    clip=5.0,
    precision="reduced",
)

PRESETS: dict[str, JointSettings] = {"demo": DEMO, "small": SMALL, "paper": PAPER}
