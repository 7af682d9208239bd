"""The sizes of an RNN Encoder-Decoder, the settings of its training, and three sets of them; imports nothing heavy.

``paper``: what the paper says: sizes, initialisation, Adadelta, minibatches of 64. Where it says nothing, what its
authors' public configuration of the phrase model says (GroundHog, experiments/nmt): the loss is summed over the
minibatch, gradients are clipped at norm 1, training takes 3,000,000 updates. The paper draws the pairs of a minibatch
at random: ``--batching random``.

``small``: a network for a processor. With a quarter of the hidden units a step of the recurrence costs a sixteenth, and
the softmax is most of the work. Adam instead of Adadelta: Adadelta's steps begin near eps and grow over thousands of
updates, and here there are few. The learning rate falls to zero: at a constant rate the held-out likelihood is still
far from what the same network reaches. Initial weights of 0.1 instead of 0.01: the signal passes four small matrices
from c to the softmax, and with the paper's the first hundreds of updates learn little but unigrams. Minibatches of 256:
products of 64 rows leave a processor waiting. Clipping only what is far out: at norm 1 every gradient would be clipped,
which costs a little. One epoch and dropout, by pairs of held-out sentences: without dropout a network remembers the
pairs of the table already in its first epoch, with it in the second (benchmarks/worth.md). The softmax goes over 1,000
sampled classes and the minibatch's own words: more than twice the pairs a second. Matrix products of rounded factors
(``reduced``), where they are faster: on Multi30k the held-out log p per word after 300 updates differs by 0.003.

``demo``: the same for the embedded corpus: as much as fits into a minute of a processor. A fifth of the units is left
out, because pairs of held-out sentences say so: log p -1.39 a word instead of -1.55 (with a tenth -1.41).
"""

import sys
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import ClassVar

from rnnsmt.io import InputError
from rnnsmt.networks.settings import NetworkSizes, TrainingSettings

VARIANTS = ("paper", "supplementary", "bag-of-words", "feed-forward")
"""``paper``: the main text and the authors' code; ``supplementary``: the equations of the paper's supplementary;
``bag-of-words``: the paper's decoder on an encoder that knows the words but not their order, as the models of Gao et
al. (2013) and Chandar et al. (2014) do, from which the paper sets itself apart; ``feed-forward``: no recurrence on
either side, for phrases of up to ``max_length`` words, whose target words do not depend on each other given the source
phrase, as in the simplest network of Schwenk (2012), from which the paper sets itself apart too."""

DIRECTIONS = ("direct", "inverse", "target")
"""What the network gives: p(target | source), the paper's; p(source | target); or p(target), the same network whose
source phrases are all empty: what it then knows is the target language alone."""

BATCHINGS = ("lengths", "random")
"""Of which pairs a minibatch is: pairs with the same numbers of source and target words, so that nothing is padded, or
any pairs, as in the paper; their gradients are then computed length by length and added up, which is much slower."""

WEIGHTINGS = ("distinct", "counts")
"""How often a pair is seen in an epoch: once, as in the paper, or as often as it was extracted."""


@dataclass(frozen=True)
class RnnSizes(NetworkSizes):
    """The sizes of an RNN Encoder-Decoder; the defaults are the paper's.

    source_vocabulary, target_vocabulary: classes of each side, with id 0 ("no word"), id 1 (UNK) and the last id (EOS).
    embedding: units of the word embeddings, which is the rank of the low-rank input and output matrices.
    hidden: units of h and s. maxout: units after pooling, from twice as many. variant: one of ``VARIANTS``.
    max_length: words of the longest phrase, of either side, that the variant ``feed-forward`` takes.
    """

    source_vocabulary: int = 15_001
    target_vocabulary: int = 15_001
    embedding: int = 100
    hidden: int = 1000
    maxout: int = 500
    variant: str = "paper"
    max_length: int = 7

    def __post_init__(self) -> None:
        for name in ("source_vocabulary", "target_vocabulary"):
            if getattr(self, name) < 3:
                raise ValueError(f"{name} is {getattr(self, name)}: ids 0, UNK and EOS make at least 3")
        for name in ("embedding", "hidden", "maxout", "max_length"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}, it must be at least 1")
        if self.variant not in VARIANTS:
            raise ValueError(f"variant is '{self.variant}', it must be one of {', '.join(VARIANTS)}")

    @property
    def longest(self) -> int:
        """Words of the longest phrase that the network takes."""
        return self.max_length if self.variant == "feed-forward" else sys.maxsize

    def parameters(self) -> dict[str, dict[str, int]]:
        """The number of parameters: part of the network -> symbol -> number; biases are ``b...``."""
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
        feedback = {"O_y": 2 * M * E}
        if self.variant == "supplementary":
            reading |= {"V": H * H}
        elif self.variant == "bag-of-words":
            reading = {"W": H * E, "b": H}
        elif self.variant == "feed-forward":
            places = self.max_length + 1
            reading = {f"W_1 .. W_{places}": places * H * E, "b": H}
            writing = {f"V'_1 .. V'_{places}": places * H * H, "b_V'": places * H}
            feedback = {}
        return {
            "encoder": {"embedding": self.source_vocabulary * E, "b_embedding": E, **reading},
            "decoder": writing,
            "readout": {"O_h": 2 * M * H, "O_c": 2 * M * H, **feedback, "b_o": 2 * M},
            "softmax": {"G_r": E * M, "G_l": self.target_vocabulary * E, "b_G": self.target_vocabulary},
        }


LOSSES = ("mean", "sum")

KEEPS = ("last", "best")


@dataclass(frozen=True)
class RnnSettings(TrainingSettings):
    """The settings of a training on phrase pairs; ``helps`` describes the fields.

    deviation: of all weights but the recurrent matrices U, whose initial values are orthogonal. held_out: all pairs of
    held-out sentences are excluded from training, whatever their number, unless more than half of the table would be;
    0: no pair is held out.
    """

    embedding: int = 100
    hidden: int = 1000
    maxout: int = 500
    variant: str = "paper"
    max_length: int = 7
    direction: str = "direct"
    weighting: str = "distinct"
    batching: str = "lengths"
    deviation: float = 0.01
    batch: int = 64
    epochs: float = 1.0
    updates: int = 0
    optimiser: str = "adadelta"
    learning_rate: float = 1.0
    schedule: str = "constant"
    warmup: int = 0
    clip: float = 1.0
    weight_decay: float = 0.0
    dropout: float = 0.0
    sampled_classes: int = 0
    loss: str = "mean"
    held_out: int = 5000
    evaluations: int = 20
    keep: str = "last"
    precision: str = "float32"

    helps: ClassVar = {
        **TrainingSettings.helps,
        "embedding": "dimension of the word embeddings and rank of the output matrix",
        "hidden": "number of hidden units of the encoder and of the decoder",
        "maxout": "number of maxout units, each the maximum of two linear units",
        "variant": "network architecture; paper: main text of the paper; supplementary: its supplementary material; "
        "bag-of-words: encoder without word order; feed-forward: no recurrence",
        "max_length": "maximum phrase length in words, for --variant feed-forward only",
        "direction": "probability to model; direct: p(target | source); inverse: p(source | target); target: p(target)",
        "weighting": "occurrences of a phrase pair per epoch; distinct: one; counts: its extraction count, which needs "
        "`rnn prepare --origins`",
        "batching": "phrase pairs of a minibatch; lengths: of equal source and equal target length, without padding; "
        "random: any, as in the paper, much slower",
        "deviation": "standard deviation of the normally distributed initial weights",
        "epochs": "number of epochs, may be fractional; ignored if --updates is not 0",
        "updates": "number of updates; 0: as many as --epochs takes",
        "dropout": "dropout rate of the word embeddings and the maxout units",
        "loss": "reduction of the loss over a minibatch",
        "held_out": "maximum number of pairs to evaluate on: of held-out sentences, and drawn from the phrase table "
        "(at most 1 % of it)",
        "evaluations": "number of evaluations on the held-out pairs",
        "keep": "parameters to save: the last ones, or the best ones on the held-out pairs",
    }
    choices: ClassVar = {
        **TrainingSettings.choices,
        "variant": VARIANTS,
        "direction": DIRECTIONS,
        "weighting": WEIGHTINGS,
        "batching": BATCHINGS,
        "loss": LOSSES,
        "keep": KEEPS,
    }
    above_zero = (
        "embedding", "hidden", "maxout", "max_length", "deviation", "batch", "epochs", "learning_rate", "clip",
        "evaluations",
    )  # fmt: skip
    not_negative = ("updates", "warmup", "held_out", "weight_decay", "dropout", "sampled_classes")

    def unfit(self) -> Collection[str]:
        """The supplementary's variant has no gradient by hand, which these are a part of."""
        return ("dropout", "sampled_classes") if self.variant == "supplementary" else ()

    def check(self) -> None:
        """Check the settings as for every training, and that ``max_length`` is set for ``feed-forward`` only."""
        super().check()
        if self.max_length != RnnSizes.max_length and self.variant != "feed-forward":
            raise InputError(f"--max-length {self.max_length}: is for --variant feed-forward, others take any length")

    def sizes(self, *vocabularies: int) -> RnnSizes:
        """The sizes of the network for these numbers of classes, of the source and of the target."""
        source, target = vocabularies
        return RnnSizes(source, target, self.embedding, self.hidden, self.maxout, self.variant, self.max_length)

    def held_out_of(self, pairs: int) -> int:
        """How many pairs are drawn from so many of the table that are not trained on."""
        return min(self.held_out, max(pairs // 100, int(pairs > 1)))

    def measured(self, pairs: int) -> int:
        """How many of so many pairs of held-out sentences are looked at."""
        return min(self.held_out, pairs)


PAPER = RnnSettings(updates=3_000_000, loss="sum", evaluations=100)

SMALL = RnnSettings(
    embedding=64,
    hidden=256,
    maxout=128,
    deviation=0.1,
    batch=256,
    epochs=1.0,
    optimiser="adam",
    learning_rate=1e-2,
    schedule="linear",
    warmup=50,
    clip=20.0,
    dropout=0.2,
    sampled_classes=1000,
    keep="best",
    precision="reduced",
)

DEMO = replace(
    SMALL,
    embedding=48,
    hidden=128,
    maxout=64,
    batch=64,
    epochs=1.25,
    learning_rate=1.6e-2,
    sampled_classes=0,
    held_out=1000,
    evaluations=8,
)

PRESETS: dict[str, RnnSettings] = {"demo": DEMO, "small": SMALL, "paper": PAPER}
