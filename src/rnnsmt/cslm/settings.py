"""Sizes of a CSLM, settings of its training, and three presets with their reasons; does not import torch.

``paper``: sizes, initial weights, fraction of held-out n-grams and early stopping as in the paper. Optimizer, learning
rate and minibatch size are not published; the preset has Adam at a constant rate and minibatches large enough for a
GPU.

``small``: a network for a CPU, where a softmax over all classes would take most of the time.

* Softmax over 1,000 sampled classes and the words of the minibatch, and a smaller last layer.
* Self-normalisation, so that the search does not require the sum over all classes either.
* Initial weights from ranges that depend on the number of inputs of a unit, and output biases equal to the log
  frequencies of the words: otherwise, the first updates learn little more than unigrams.
* Dropout, since there are few training n-grams; learning rate decaying to 0 over ``epochs``.
* Matrix products of rounded factors (``reduced``) if these are faster.

``demo``: the same for the demo corpus, limited to about a minute of CPU time, with less dropout, which is better there,
and with the softmax over all of its 1,500 classes.
"""

from collections.abc import Mapping

from rnnsmt.config.declaration import section
from rnnsmt.networks.settings import FeedForwardSettings, FeedForwardSizes, Order, Size, network_sizes


@network_sizes
class CslmSizes(FeedForwardSizes):
    """The sizes of a CSLM.

    Attributes:
        vocabulary: number of softmax classes, including id 0 (padding before the sentence, never predicted), id 1 (UNK)
            and the last id (``</s>``).
        order: number of words of an n-gram, including the predicted one.
        projection: dimension of the projection of a context word.
        hidden_1, hidden_2: number of units of the two rectified layers.
    """

    vocabulary: Size
    order: Order
    projection: Size
    hidden_1: Size
    hidden_2: Size

    @property
    def context(self) -> int:
        """Return the number of context words."""
        return self.order - 1

    @property
    def inputs(self) -> int:
        """Return the number of ids of context words, which is the number of classes."""
        return self.vocabulary

    @property
    def activation(self) -> str:
        """Return the name of the activation function of the hidden layers."""
        return "relu"


@section
class CslmSettings(FeedForwardSettings):
    """Settings of a training run on text; the defaults are those of the paper."""

    @classmethod
    def presets(cls) -> "Mapping[str, CslmSettings]":
        return PRESETS

    def sizes(self, *vocabularies: int) -> CslmSizes:
        """Return the sizes of the network for this number of classes."""
        (vocabulary,) = vocabularies
        return CslmSizes(vocabulary, self.order, self.projection, self.hidden_1, self.hidden_2)


PAPER = CslmSettings()

SMALL = CslmSettings(
    projection=128,
    hidden_1=512,
    hidden_2=256,
    spread=0.0,
    output_bias="unigram",
    dropout=0.3,
    singletons=0.3,
    self_normalised=0.1,
    sampled_classes=1000,
    batch=512,
    epochs=8,
    learning_rate=2e-3,
    schedule="linear",
    warmup=50,
    clip=5.0,
    precision="reduced",
)

DEMO = CslmSettings(
    projection=64,
    hidden_1=256,
    hidden_2=128,
    spread=0.0,
    output_bias="unigram",
    dropout=0.1,
    singletons=0.3,
    self_normalised=0.0,
    sampled_classes=0,
    batch=256,
    epochs=4,
    learning_rate=0.002,
    schedule="linear",
    warmup=50,
    clip=5.0,
    precision="reduced",
)

PRESETS: dict[str, CslmSettings] = {"demo": DEMO, "small": SMALL, "paper": PAPER}
