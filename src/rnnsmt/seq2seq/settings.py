"""Sizes of an LSTM encoder-decoder, settings of its training, and three presets. This module does not import torch.

``paper``: as in Sutskever et al. (2014): four layers of 1,000 cells, embeddings of dimension 1,000, initial parameters
from U(-0.08, 0.08), minibatches of 128 sentences of similar length, gradient norm clipped at 5, reversed source, no
dropout. The optimizer is SGD for 7.5 epochs, with learning rate 0.7 for five epochs, then halved every half epoch.

``small``: a network for a CPU and tens of thousands of sentences: two layers of 256 cells, Adam, dropout (Zaremba et
al. 2014), learning rate decaying to 0, softmax over sampled classes; the best parameters on held-out sentences are
kept.

``demo``: a small network for the demo corpus, which is trained in a few minutes of CPU time.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from rnnsmt.base.fields import Field
from rnnsmt.config.declaration import section
from rnnsmt.networks.settings import (
    Batch,
    Clip,
    Epochs,
    Evaluations,
    Keep,
    LearningRate,
    NetworkSizes,
    Optimizer,
    SampledClasses,
    Schedule,
    Size,
    TrainingSettings,
    Warmup,
    WeightDecay,
    held_out_pairs,
    network_sizes,
)

Layers = Annotated[int, Field(gt=0, le=100)]


@network_sizes
class Seq2SeqSizes(NetworkSizes):
    """The sizes of a network.

    Attributes:
        source_vocabulary, target_vocabulary: number of classes, including id 0 (padding), id 1 (UNK) and the last id
            (EOS).
        embedding: dimension of the word embeddings.
        hidden: number of cells per layer.
        layers: number of layers of the encoder and of the decoder.
    """

    source_vocabulary: Size
    target_vocabulary: Size
    embedding: Size
    hidden: Size
    layers: Layers

    def parameters(self) -> dict[str, dict[str, int]]:
        """Return the numbers of parameters: part -> symbol -> number; ``torch.nn.LSTM`` has two biases per gate."""
        inputs = self.embedding + (self.layers - 1) * self.hidden
        lstm = {
            "W": 4 * self.hidden * inputs,
            "U": 4 * self.hidden * self.hidden * self.layers,
            "b": 8 * self.hidden * self.layers,
        }
        return {
            "encoder": {"embedding": self.source_vocabulary * self.embedding, **lstm},
            "decoder": {"embedding": self.target_vocabulary * self.embedding, **lstm},
            "softmax": {"W_o": self.target_vocabulary * self.hidden, "b_o": self.target_vocabulary},
        }


@section
class Seq2SeqSettings(TrainingSettings):
    """The settings of a training run on sentence pairs; the defaults are those of the paper.

    Attributes:
        dropout: not applied to the recurrent connections (Zaremba et al. 2014).
    """

    embedding: Annotated[int, Field(gt=0, description="dimension of the word embeddings")] = 1000
    hidden: Annotated[int, Field(gt=0, description="number of LSTM cells per layer")] = 1000
    layers: Annotated[Layers, Field(description="number of LSTM layers of the encoder and of the decoder")] = 4
    source_order: Annotated[
        Literal["reversed", "forward"], Field(description="order in which the words of a source sentence are read")
    ] = "reversed"
    spread: Annotated[float, Field(gt=0, description="initial parameters are drawn from U(-X, X)")] = 0.08
    batch: Batch = 128
    epochs: Epochs = 7.5
    optimizer: Optimizer = "sgd"
    learning_rate: LearningRate = 0.7
    schedule: Schedule = "halving"
    warmup: Warmup = 0
    clip: Clip = 5.0
    weight_decay: WeightDecay = 0.0
    dropout: Annotated[
        float,
        Field(ge=0, lt=1, description="dropout rate of the inputs of every layer and of the output of the last layer"),
    ] = 0.0
    sampled_classes: SampledClasses = 0
    held_out: Annotated[
        int, Field(ge=0, description="number of sentence pairs held out from training, at most 5 % of all")
    ] = 1000
    evaluations: Evaluations = 15
    keep: Keep = "last"
    precision: Annotated[
        Literal["float32", "reduced", "bfloat16"],
        Field(
            description="precision of matrix products in training; reduced: bfloat16 on CPUs with bfloat16 "
            "instructions, TF32 on GPUs; bfloat16: on any device"
        ),
    ] = "float32"

    @classmethod
    def conflicts(cls, values: Mapping[str, Any]) -> Iterator[str]:
        """Yield the messages of the base class, and one more if ``keep`` is ``best`` without held-out pairs."""
        yield from super().conflicts(values)
        if values["keep"] == "best" and not values["held_out"]:
            yield "--keep best: requires held-out pairs; increase --held-out, or use --keep last"

    @classmethod
    def presets(cls) -> "Mapping[str, Seq2SeqSettings]":
        return PRESETS

    def sizes(self, *vocabularies: int) -> Seq2SeqSizes:
        """Return the sizes of the network for these numbers of source and target classes."""
        source, target = vocabularies
        return Seq2SeqSizes(source, target, self.embedding, self.hidden, self.layers)

    def held_out_of(self, pairs: int) -> int:
        """Return the number of sentence pairs to hold out from training, given their total number ``pairs``."""
        return held_out_pairs(pairs, self.held_out, 20)


PAPER = Seq2SeqSettings()

SMALL = Seq2SeqSettings(
    embedding=256,
    hidden=256,
    layers=2,
    batch=64,
    epochs=12.0,
    optimizer="adam",
    learning_rate=2e-3,
    schedule="linear",
    warmup=100,
    dropout=0.3,
    sampled_classes=1000,
    evaluations=12,
    keep="best",
    precision="reduced",
)

DEMO = Seq2SeqSettings(
    embedding=96,
    hidden=128,
    layers=1,
    batch=32,
    epochs=8.0,
    optimizer="adam",
    learning_rate=0.002,
    schedule="linear",
    warmup=100,
    dropout=0.2,
    sampled_classes=0,
    evaluations=8,
    keep="best",
    precision="reduced",
)

PRESETS: dict[str, Seq2SeqSettings] = {"demo": DEMO, "small": SMALL, "paper": PAPER}
