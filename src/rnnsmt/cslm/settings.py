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

from rnnsmt.base.io import InputError
from rnnsmt.networks.settings import EpochSettings, FeedForwardSizes, setting


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


OUTPUT_BIASES = ("zero", "unigram", "uniform")


@dataclass(frozen=True)
class CslmSettings(EpochSettings):
    """Settings of a training run on text; the defaults are those of the paper.

    Attributes:
        spread: 0 selects the initial weights of He et al. (2015).
        singletons: if the shortlist contains every word of the text, UNK is learnt from replaced words only.
    """

    order: int = setting(7, "n-gram order: number of context words plus the predicted word")
    projection: int = setting(512, "dimension of the projection (embedding) of every context word", above=0)
    hidden_1: int = setting(1536, "number of units of the first hidden layer", above=0)
    hidden_2: int = setting(1024, "number of units of the second hidden layer", above=0)
    spread: float = setting(
        0.01,
        "initial weights are drawn from U(-X, X); 0: range derived from the number of inputs of a unit",
        least=0,
    )
    output_bias: str = setting(
        "zero",
        "initial output biases; unigram: log relative frequencies of the words; uniform: -ln(number of classes)",
        choices=OUTPUT_BIASES,
    )
    dropout: float = setting(0.0, "dropout rate of the projection and of both hidden layers", least=0)
    singletons: float = setting(
        0.0, "probability of replacing a word that occurs once in the text by UNK in training", least=0
    )
    self_normalised: float = 0.0
    sampled_classes: int = 0
    batch: int = 1024
    epochs: int = 100
    patience: int = 10
    held_out: float = 0.001
    held_out_least: int = 1000
    optimiser: str = "adam"
    learning_rate: float = 3e-4
    schedule: str = "constant"
    warmup: int = 0
    clip: float = 1.0
    weight_decay: float = 0.0
    precision: str = "float32"

    def check(self) -> None:
        """Check the settings as in the base class, and the bounds of order and singletons."""
        super().check()
        if self.order < 2:
            raise InputError(f"--order {self.order}: must be at least 2")
        if self.singletons > 1:
            raise InputError(f"--singletons {self.singletons}: must be at most 1")

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
