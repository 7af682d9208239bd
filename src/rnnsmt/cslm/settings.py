"""Sizes of a CSLM, settings of its training, and three presets with their reasons; does not import torch.

``paper``: sizes, initial weights, held-out part and stopping as in the paper. Optimiser, learning rate and minibatch
size are not published: Adam at a constant rate, minibatches large enough for a GPU.

``small``: a network for a CPU, where a softmax over all classes would take most of the time.

* Softmax over 1,000 sampled classes and the words of the minibatch, and a smaller last layer.
* Self-normalisation, so that the search does not require the sum over all classes either.
* Initial weights by the number of inputs of a unit, and output biases equal to the log frequencies of the words, so
  that the first updates do not only learn unigrams.
* Dropout, since there are few training n-grams; learning rate decaying to 0 over ``epochs``.
* Matrix products of rounded factors (``reduced``) if these are faster.

``demo``: the same for the demo corpus, limited to about a minute of CPU time; less dropout is better there, and all
of its 1,500 classes can be summed.
"""

from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field

from rnnsmt.networks.settings import (
    Batch,
    Clip,
    Epochs,
    EpochSettings,
    FeedForwardSizes,
    HeldOut,
    HeldOutLeast,
    Hidden1,
    Hidden2,
    LearningRate,
    Optimiser,
    Order,
    OutputBias,
    Patience,
    Precision,
    Projection,
    SampledClasses,
    Schedule,
    SelfNormalised,
    Singletons,
    Spread,
    Warmup,
    WeightDecay,
    settings,
)


@dataclass(frozen=True)
class CslmSizes(FeedForwardSizes):
    """Sizes of a CSLM; the defaults are the paper's.

    Attributes:
        vocabulary: number of softmax classes, including id 0 (padding before the sentence, never predicted), id 1 (UNK)
            and the last id (``</s>``).
        order: number of words of an n-gram, including the predicted one.
        projection: dimension of the projection of a context word.
        hidden_1, hidden_2: number of units of the two rectified layers.
    """

    vocabulary: int = 15_001
    order: int = 7
    projection: int = 512
    hidden_1: int = 1536
    hidden_2: int = 1024

    def __post_init__(self) -> None:
        for name, least in (("vocabulary", 3), ("order", 2), ("projection", 1), ("hidden_1", 1), ("hidden_2", 1)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} is {getattr(self, name)}, but must be at least {least}")

    @property
    def context(self) -> int:
        """Return the number of context words."""
        return self.order - 1

    @property
    def inputs(self) -> int:
        """Return the number of ids of context words, which are those of the classes."""
        return self.vocabulary

    @property
    def activation(self) -> str:
        """Return the name of the activation function of the hidden layers."""
        return "relu"


@settings
class CslmSettings(EpochSettings):
    """Settings of a training run on text; the defaults are those of the paper."""

    order: Order = 7
    projection: Projection = 512
    hidden_1: Hidden1 = 1536
    hidden_2: Hidden2 = 1024
    spread: Spread = 0.01
    output_bias: OutputBias = "zero"
    dropout: Annotated[
        float, Field(ge=0, lt=1, description="dropout rate of the projection and of both hidden layers")
    ] = 0.0
    singletons: Singletons = 0.0
    self_normalised: SelfNormalised = 0.0
    sampled_classes: SampledClasses = 0
    batch: Batch = 1024
    epochs: Epochs = 100
    patience: Patience = 10
    held_out: HeldOut = 0.001
    held_out_least: HeldOutLeast = 1000
    optimiser: Optimiser = "adam"
    learning_rate: LearningRate = 3e-4
    schedule: Schedule = "constant"
    warmup: Warmup = 0
    clip: Clip = 1.0
    weight_decay: WeightDecay = 0.0
    precision: Precision = "float32"

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

DEMO = replace(
    SMALL,
    projection=64,
    hidden_1=256,
    hidden_2=128,
    dropout=0.1,
    self_normalised=0.0,
    sampled_classes=0,
    batch=256,
    epochs=4,
)

PRESETS: dict[str, CslmSettings] = {"demo": DEMO, "small": SMALL, "paper": PAPER}
