"""Sizes of an RNN Encoder-Decoder, settings of its training, and three presets. This module does not import torch.

``paper``: sizes, initialisation, Adadelta and minibatches of 64 pairs drawn at random as in the paper. Details that the
paper omits are taken from its authors' public configuration of the phrase model (GroundHog, experiments/nmt): the pairs
of ten minibatches are sorted by length together, the loss is summed over the minibatch, gradients are clipped at norm
1, and training takes 3,000,000 updates.

``small``: a network for a CPU.

* A quarter of the hidden units: a recurrence step takes 1/16 of the time, so the softmax takes most of the total.
* Adam instead of Adadelta, whose steps begin near eps and grow over thousands of updates: the preset has few updates.
* Learning rate decaying to 0: with a constant rate the held-out likelihood stays far below what the network can reach.
* Initial weights of deviation 0.1 instead of 0.01: the signal passes four matrices of small weights from c to the
  softmax, and with 0.01 the network learns little more than unigrams in the first hundreds of updates.
* Minibatches of 256: matrix products of 64 rows do not use a CPU fully. Their pairs have equal lengths.
* Clipping at norm 20: at norm 1 every gradient would be clipped, which is slightly worse.
* One epoch and dropout, chosen on the pairs of held-out sentences: without dropout, a network overfits the pairs of the
  table in the first epoch; with dropout, in the second epoch (research/worth.md).
* Softmax over 1,000 sampled classes and the words of the minibatch: training on more than twice as many pairs per
  second.
* Matrix products of rounded factors (``reduced``) where these are faster: on Multi30k, the held-out log p per word
  after 300 updates differs by 0.003.

``demo``: for about a minute of CPU time on the demo corpus: fewer hidden units, smaller minibatches, and a softmax over
all classes. Dropout 0.2 was chosen on pairs of held-out sentences: log p per word -1.39, with 0.1 -1.41, without
dropout -1.55.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from rnnsmt.base.fields import Field
from rnnsmt.config.declaration import section
from rnnsmt.networks.settings import (
    Batch,
    Clip,
    Evaluations,
    Keep,
    LearningRate,
    NetworkSizes,
    Optimizer,
    Precision,
    SampledClasses,
    Schedule,
    Size,
    TrainingSettings,
    Warmup,
    WeightDecay,
    held_out_pairs,
    network_sizes,
)

Variant = Literal["paper", "supplementary"]
VARIANTS: tuple[str, ...] = get_args(Variant)
"""Network architectures: that of the paper's main text and its authors' code, or that of the supplementary material."""

Batching = Literal["lengths", "random"]
"""Composition of minibatches. ``lengths``: pairs with equal source lengths and equal target lengths. ``random``, as in
the authors' code: the pairs of ten minibatches are drawn at random, sorted by length and divided into minibatches."""


@network_sizes
class RnnSizes(NetworkSizes):
    """The sizes of an RNN Encoder-Decoder.

    Attributes:
        source_vocabulary, target_vocabulary: number of classes, including id 0 ("no word"), id 1 (UNK) and the last id
            (EOS).
        embedding: dimension of the word embeddings, and rank of the input and output matrices.
        hidden: number of units of h and s.
        maxout: number of maxout units, each the maximum of two linear units.
        variant: one of ``VARIANTS``.
    """

    source_vocabulary: Size
    target_vocabulary: Size
    embedding: Size
    hidden: Size
    maxout: Size
    variant: Variant = "paper"

    def parameters(self) -> dict[str, dict[str, int]]:
        """Return the numbers of parameters: part of the network -> symbol -> number; symbols of biases begin with b."""
        E, H, M = self.embedding, self.hidden, self.maxout
        reading = {"W, W_r, W_z": 3 * H * E, "b": H, "U, U_r, U_z": 3 * H * H}
        writing = {
            "embedding": self.target_vocabulary * E,
            "b_embedding": E,
            "W', W'_r, W'_z": 3 * H * E,
            "b'": H,
            "U', U'_r, U'_z": 3 * H * H,
            "C, C_r, C_z": 3 * H * H,
            "V'": H * H,
            "b_V'": H,
        }
        if self.variant == "supplementary":
            reading |= {"V": H * H}
        return {
            "encoder": {"embedding": self.source_vocabulary * E, "b_embedding": E, **reading},
            "decoder": writing,
            "readout": {"O_h": 2 * M * H, "O_c": 2 * M * H, "O_y": 2 * M * E, "b_o": 2 * M},
            "softmax": {"G_r": E * M, "G_l": self.target_vocabulary * E, "b_G": self.target_vocabulary},
        }


@section
class RnnSettings(TrainingSettings):
    """The settings of a training run on phrase pairs; the defaults are those of the paper.

    Attributes:
        deviation: applies to all weights except the recurrent matrices U, whose initial values are orthogonal.
        held_out: 0: no pair is held out.
    """

    embedding: Annotated[
        int, Field(gt=0, description="dimension of the word embeddings and rank of the output matrix")
    ] = 100
    hidden: Annotated[int, Field(gt=0, description="number of hidden units of the encoder and of the decoder")] = 1000
    maxout: Annotated[int, Field(gt=0, description="number of maxout units, each the maximum of two linear units")] = (
        500
    )
    variant: Annotated[
        Variant,
        Field(
            description="network architecture; paper: main text of the paper; supplementary: its supplementary material"
        ),
    ] = "paper"
    batching: Annotated[
        Batching,
        Field(
            description="phrase pairs in a minibatch; lengths: pairs with the same source length and the same target "
            "length; random: pairs drawn at random and sorted by length ten minibatches at a time, as in the code of "
            "the paper's authors"
        ),
    ] = "random"
    deviation: Annotated[
        float, Field(gt=0, description="standard deviation of the normally distributed initial weights")
    ] = 0.01
    batch: Batch = 64
    epochs: Annotated[
        float, Field(gt=0, description="number of epochs, may be fractional; ignored if ``updates`` is not 0")
    ] = 1.0
    updates: Annotated[int, Field(ge=0, description="number of updates; 0: determined by ``epochs``")] = 0
    optimizer: Optimizer = "adadelta"
    learning_rate: LearningRate = 1.0
    schedule: Schedule = "constant"
    warmup: Warmup = 0
    clip: Clip = 1.0
    weight_decay: WeightDecay = 0.0
    dropout: Annotated[
        float, Field(ge=0, lt=1, description="dropout rate of the word embeddings and the maxout units")
    ] = 0.0
    sampled_classes: SampledClasses = 0
    loss: Annotated[Literal["mean", "sum"], Field(description="reduction of the loss over a minibatch")] = "mean"
    held_out: Annotated[
        int,
        Field(
            ge=0,
            description="maximum number of held-out pairs, drawn at random from the phrase table (at most 1 % of it)",
        ),
    ] = 5000
    evaluations: Evaluations = 20
    keep: Keep = "last"
    precision: Precision = "float32"

    @classmethod
    def incompatible(cls, values: Mapping[str, Any]) -> Mapping[str, str]:
        """Return the settings that must be 0 for the variant ``supplementary``, which has no hand-written gradient."""
        if values["variant"] != "supplementary":
            return {}
        return dict.fromkeys(("dropout", "sampled_classes"), "--variant supplementary")

    @classmethod
    def presets(cls) -> "Mapping[str, RnnSettings]":
        return PRESETS

    def sizes(self, *vocabularies: int) -> RnnSizes:
        """Return the sizes of the network for these numbers of source and target classes."""
        source, target = vocabularies
        return RnnSizes(source, target, self.embedding, self.hidden, self.maxout, self.variant)

    def held_out_of(self, pairs: int) -> int:
        """Return the number of held-out pairs to draw from a table of ``pairs`` pairs."""
        return held_out_pairs(pairs, self.held_out, 100)


PAPER = RnnSettings(updates=3_000_000, loss="sum", evaluations=100)

SMALL = RnnSettings(
    embedding=64,
    hidden=256,
    maxout=128,
    batching="lengths",
    deviation=0.1,
    batch=256,
    epochs=1.0,
    optimizer="adam",
    learning_rate=1e-2,
    schedule="linear",
    warmup=50,
    clip=20.0,
    dropout=0.2,
    sampled_classes=1000,
    keep="best",
    precision="reduced",
)

DEMO = RnnSettings(
    embedding=48,
    hidden=128,
    maxout=64,
    batching="lengths",
    deviation=0.1,
    batch=64,
    epochs=1.25,
    optimizer="adam",
    learning_rate=0.016,
    schedule="linear",
    warmup=50,
    clip=20.0,
    dropout=0.2,
    sampled_classes=0,
    keep="best",
    precision="reduced",
    held_out=1000,
    evaluations=8,
)

PRESETS: dict[str, RnnSettings] = {"demo": DEMO, "small": SMALL, "paper": PAPER}
