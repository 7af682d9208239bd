"""Sizes of an RNN Encoder-Decoder, settings of its training, and three presets. This module does not import torch.

``paper``: sizes, initialisation, Adadelta and minibatches of 64 as in the paper. Details that the paper omits are those
of its authors' public configuration of the phrase model (GroundHog, experiments/nmt): the loss is summed over the
minibatch, gradients are clipped at norm 1, training takes 3,000,000 updates. The paper draws the pairs of a minibatch
at random, which is ``--batching random``.

``small``: a network for a CPU.

* A quarter of the hidden units: a recurrence step takes 1/16 of the time, so the softmax takes most of the total.
* Adam instead of Adadelta, whose steps begin near eps and grow over thousands of updates: the preset has few updates.
* Learning rate decaying to 0: with a constant rate the held-out likelihood stays far below what the network can reach.
* Initial weights of deviation 0.1 instead of 0.01: the signal passes four matrices of small weights from c to the
  softmax, and with 0.01 the network learns little more than unigrams in the first hundreds of updates.
* Minibatches of 256: matrix products of 64 rows do not use a CPU fully.
* Clipping at norm 20: at norm 1 every gradient would be clipped, which is slightly worse.
* One epoch and dropout, chosen on pairs of held-out sentences: a network overfits the pairs of the table in the first
  epoch without dropout, and in the second epoch with dropout (benchmarks/worth.md).
* Softmax over 1,000 sampled classes and the words of the minibatch: more than twice the pairs per second.
* Matrix products of rounded factors (``reduced``) where these are faster: on Multi30k the held-out log p per word after
  300 updates differs by 0.003.

``demo``: the same for the demo corpus, limited to about a minute of CPU time. Dropout 0.2 was chosen on pairs of
held-out sentences: log p per word -1.39, with 0.1 -1.41, without dropout -1.55.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace

from rnnsmt.base.io import InputError
from rnnsmt.networks.settings import NetworkSizes, TrainingSettings, setting

VARIANTS = ("paper", "supplementary", "tanh", "bag-of-words", "feed-forward")
"""Network architectures.

* ``paper``: the main text and the authors' code.
* ``supplementary``: the equations of the supplementary material.
* ``tanh``: the paper's network with plain tanh units on both sides. The paper (section 2.3) reports that it did not get
  meaningful results with them, which is why it introduces the gates.
* ``bag-of-words``: the paper's decoder with an encoder that ignores word order, like the models of Gao et al. (2013)
  and Chandar et al. (2014), from which the paper distinguishes its model.
* ``feed-forward``: no recurrence on either side, for phrases of up to ``max_length`` words, with target words that are
  independent given the source phrase, as in the simplest network of Schwenk (2012), which the paper also distinguishes
  from its model.
"""

DIRECTIONS = ("direct", "inverse", "target")
"""Probabilities that a network models: p(target | source), as in the paper; p(source | target); or p(target), with the
same network and empty source phrases, a language model of target phrases."""

BATCHINGS = ("lengths", "random")
"""Composition of a minibatch: pairs with equal source lengths and equal target lengths, so that nothing is padded; or
any pairs, as in the paper. In this case, gradients are computed per length and summed, which is much slower."""

WEIGHTINGS = ("distinct", "counts")
"""Number of times that a pair occurs in an epoch: once, as in the paper, or as often as it was extracted."""


@dataclass(frozen=True)
class RnnSizes(NetworkSizes):
    """The sizes of an RNN Encoder-Decoder; the defaults are the paper's.

    Attributes:
        source_vocabulary, target_vocabulary: number of classes, including id 0 ("no word"), id 1 (UNK) and the last id
            (EOS).
        embedding: dimension of the word embeddings, and rank of the input and output matrices.
        hidden: number of units of h and s.
        maxout: number of units after pooling; there are twice as many before.
        variant: one of ``VARIANTS``.
        max_length: maximum number of words of a phrase, of either side, in the variant ``feed-forward``.
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
                raise ValueError(f"{name} is {getattr(self, name)}, but must be at least 3 (id 0, UNK and EOS)")
        for name in ("embedding", "hidden", "maxout", "max_length"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}, but must be at least 1")
        if self.variant not in VARIANTS:
            raise ValueError(f"variant is '{self.variant}', but must be one of {', '.join(VARIANTS)}")

    @property
    def longest(self) -> int:
        """Return the maximum number of words of a phrase."""
        return self.max_length if self.variant == "feed-forward" else sys.maxsize

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
        feedback = {"O_y": 2 * M * E}
        if self.variant == "supplementary":
            reading |= {"V": H * H}
        elif self.variant == "tanh":
            reading = {"W": H * E, "b": H, "U": H * H}
            gated = ("W', W'_r, W'_z", "U', U'_r, U'_z", "C, C_r, C_z")
            writing = {name.split(",")[0]: n // 3 if name in gated else n for name, n in writing.items()}
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


@dataclass(frozen=True)
class RnnSettings(TrainingSettings):
    """The settings of a training run on phrase pairs; the defaults are those of the paper.

    Attributes:
        deviation: applies to all weights except the recurrent matrices U, whose initial values are orthogonal.
        held_out: all pairs of held-out sentences are excluded from training, regardless of their number, unless more
            than half of the table would be held out; 0: no pair is held out.
    """

    embedding: int = setting(100, "dimension of the word embeddings and rank of the output matrix", above=0)
    hidden: int = setting(1000, "number of hidden units of the encoder and of the decoder", above=0)
    maxout: int = setting(500, "number of maxout units, each the maximum of two linear units", above=0)
    variant: str = setting(
        "paper",
        "network architecture; paper: main text of the paper; supplementary: its supplementary material; "
        "tanh: units without gates; bag-of-words: encoder that ignores word order; feed-forward: no recurrence",
        choices=VARIANTS,
    )
    max_length: int = setting(7, "maximum phrase length in words, for --variant feed-forward only", above=0)
    direction: str = setting(
        "direct",
        "probability to model; direct: p(target | source); inverse: p(source | target); target: p(target)",
        choices=DIRECTIONS,
    )
    weighting: str = setting(
        "distinct",
        "number of times that a phrase pair is used per epoch; distinct: once; counts: its extraction count "
        "(requires `rnn prepare --origins`)",
        choices=WEIGHTINGS,
    )
    batching: str = setting(
        "lengths",
        "phrase pairs in a minibatch; lengths: pairs with the same source length and the same target length, "
        "without padding; random: pairs drawn at random, as in the paper, much slower",
        choices=BATCHINGS,
    )
    deviation: float = setting(0.01, "standard deviation of the normally distributed initial weights", above=0)
    batch: int = 64
    epochs: float = setting(1.0, "number of epochs, may be fractional; ignored if --updates is not 0", above=0)
    updates: int = setting(0, "number of updates; 0: determined by --epochs", least=0)
    optimiser: str = "adadelta"
    learning_rate: float = 1.0
    schedule: str = "constant"
    warmup: int = 0
    clip: float = 1.0
    weight_decay: float = 0.0
    dropout: float = setting(0.0, "dropout rate of the word embeddings and the maxout units", least=0)
    sampled_classes: int = 0
    loss: str = setting("mean", "reduction of the loss over a minibatch", choices=LOSSES)
    held_out: int = setting(
        5000,
        "maximum size of each of the two evaluation sets: pairs of held-out sentences, and pairs drawn at random "
        "from the phrase table (at most 1 % of it)",
        least=0,
    )
    evaluations: int = 20
    keep: str = "last"
    precision: str = "float32"

    def incompatible(self) -> Mapping[str, str]:
        """Return the settings that require a hand-written gradient, which the variant ``supplementary`` lacks."""
        if self.variant != "supplementary":
            return {}
        return dict.fromkeys(("dropout", "sampled_classes"), "--variant supplementary")

    def check(self) -> None:
        """Check the settings as in the base class, and that ``max_length`` is set only for ``feed-forward``."""
        super().check()
        if self.max_length != RnnSizes.max_length and self.variant != "feed-forward":
            raise InputError(
                f"--max-length {self.max_length}: requires --variant feed-forward; other variants have no limit"
            )

    def sizes(self, *vocabularies: int) -> RnnSizes:
        """Return the sizes of the network for these numbers of source and target classes."""
        source, target = vocabularies
        return RnnSizes(source, target, self.embedding, self.hidden, self.maxout, self.variant, self.max_length)

    def held_out_of(self, pairs: int) -> int:
        """Return the number of held-out pairs to draw from a table of ``pairs`` pairs."""
        return min(self.held_out, max(pairs // 100, int(pairs > 1)))

    def measured(self, pairs: int) -> int:
        """Return the number of pairs to evaluate, given ``pairs`` pairs of held-out sentences."""
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
