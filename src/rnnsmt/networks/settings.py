"""Base classes of the sizes of the networks and of their training settings; does not import torch."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import field, fields
from typing import Any, ClassVar, NamedTuple

from rnnsmt.base.io import InputError
from rnnsmt.base.options import option

OPTIMISERS = ("adadelta", "adam", "sgd")

SCHEDULES = ("constant", "linear", "halving")

PRECISIONS = ("float32", "reduced")
"""Precisions of matrix products, see ``rnnsmt.networks.devices.set_up_device``."""

KEEPS = ("last", "best")
"""Parameters that a training run may save."""


class NetworkSizes(ABC):
    """The sizes of a network; subclasses are frozen dataclasses."""

    @abstractmethod
    def parameters(self) -> dict[str, dict[str, int]]:
        """Return the numbers of parameters: part of the network -> symbol -> number."""

    def count(self) -> int:
        """Return the total number of parameters."""
        return sum(sum(group.values()) for group in self.parameters().values())

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name, as written to model files."""
        return dict(vars(self))


class FeedForwardSizes(NetworkSizes):
    """The sizes of a feed-forward network that predicts a class from a context of ids.

    Attributes:
        vocabulary: number of softmax classes.
        projection: dimension of the projection of an id of the context.
        hidden_1, hidden_2: number of units of the hidden layers.
    """

    vocabulary: int
    projection: int
    hidden_1: int
    hidden_2: int

    @property
    @abstractmethod
    def context(self) -> int:
        """Return the number of ids of a context."""

    @property
    @abstractmethod
    def inputs(self) -> int:
        """Return the number of different ids of a context."""

    @property
    def ranges(self) -> list[range]:
        """Return the ids that each position of the context may have."""
        return [range(self.inputs)] * self.context

    @property
    @abstractmethod
    def activation(self) -> str:
        """Return the activation function of the hidden layers, ``relu`` or ``tanh``."""

    def parameters(self) -> dict[str, dict[str, int]]:
        """Return the numbers of parameters: layer -> symbol -> number; biases are ``b_...``."""
        first, second = self.hidden_1, self.hidden_2
        return {
            "projection": {"R": self.inputs * self.projection},
            "hidden 1": {"W_1": first * self.context * self.projection, "b_1": first},
            "hidden 2": {"W_2": second * first, "b_2": second},
            "softmax": {"W_o": self.vocabulary * second, "b_o": self.vocabulary},
        }


class Setting(NamedTuple):
    """Properties of a setting, except for its default.

    Attributes:
        help: help text of its option.
        above: bound that a number must exceed, or None.
        least: smallest permitted number, or None.
        choices: permitted values of a string; empty: the setting is a number.
    """

    help: str
    above: float | None = None
    least: float | None = None
    choices: tuple[str, ...] = ()


def setting(
    default: Any,
    help: str,
    above: float | None = None,
    least: float | None = None,
    choices: tuple[str, ...] = (),
) -> Any:
    """Return a dataclass field with a default, documented as in ``Setting``."""
    return field(default=default, metadata={"setting": Setting(help, above, least, choices)})


class TrainingSettings(ABC):
    """All settings of a training run except its data and seed; subclasses are frozen dataclasses with defaults.

    All training commands have the settings below, which ``shared`` describes; a subclass defines their defaults. It
    declares further settings with ``setting``. In addition to the help texts:

    Attributes:
        schedule: ``halving`` is the schedule of Sutskever et al. (2014): 7.5 epochs, the first 5 at a constant rate,
            which is then halved every half epoch.
        weight_decay: decoupled (Loshchilov and Hutter 2019), multiplied by the learning rate.
        sampled_classes: see ``rnnsmt.networks.softmax.ClassSampler``.
    """

    batch: int
    optimiser: str
    learning_rate: float
    schedule: str
    warmup: int
    clip: float
    weight_decay: float
    dropout: float
    sampled_classes: int
    precision: str

    shared: ClassVar[Mapping[str, Setting]] = {
        "batch": Setting("minibatch size", above=0),
        "optimiser": Setting(
            "optimiser; adadelta: rho 0.95, eps 1e-6; adam: AdamW; sgd: without momentum", choices=OPTIMISERS
        ),
        "learning_rate": Setting("base learning rate, to which --warmup and --schedule apply", above=0),
        "schedule": Setting(
            "learning rate schedule; linear: decay to 0 at the last update; halving: constant for the first 2/3 "
            "of the updates, then halved every 1/15 of the updates",
            choices=SCHEDULES,
        ),
        "warmup": Setting("number of updates of linear learning rate warm-up", least=0),
        "clip": Setting("maximum norm of the gradient; larger gradients are scaled down", above=0),
        "weight_decay": Setting("decoupled weight decay, for --optimiser adam only", least=0),
        "dropout": Setting("dropout rate", least=0),
        "sampled_classes": Setting(
            "number of classes sampled for the softmax of a minibatch in training, in addition to the words in it; 0: "
            "softmax over all classes",
            least=0,
        ),
        "precision": Setting(
            "precision of matrix products in training; reduced: bfloat16 on CPUs with bfloat16 instructions, TF32 on "
            "GPUs",
            choices=PRECISIONS,
        ),
        "evaluations": Setting("number of evaluations on the held-out pairs", above=0),
        "keep": Setting("parameters to save: the last ones, or the best ones on the held-out pairs", choices=KEEPS),
    }
    """Settings that several networks have; a subclass that uses ``setting`` for one of them overrides it."""

    @classmethod
    def described(cls) -> dict[str, Setting]:
        """Return the description of every setting, in the order of the fields."""
        return {f.name: f.metadata.get("setting") or cls.shared[f.name] for f in fields(cls)}  # type: ignore[arg-type]

    def incompatible(self) -> Mapping[str, str]:
        """Return the settings that must be 0 given the values of the others: name -> option that requires it."""
        return {}

    def check(self) -> None:
        """Check that the numbers are valid.

        Raises:
            InputError: a number is too small or not finite, or cannot be combined with the other settings; the message
                names the option.
        """
        for name, (_, above, least, _) in self.described().items():
            value = getattr(self, name)
            if (above is not None or least is not None) and not -math.inf < value < math.inf:
                raise InputError(f"{option(name)} {value}: must be a finite number")
            if above is not None and value <= above:
                raise InputError(f"{option(name)} {value}: must be greater than {above}")
            if least is not None and value < least:
                raise InputError(f"{option(name)} {value}: must be at least {least}")
        if self.weight_decay and self.optimiser != "adam":
            raise InputError(f"--weight-decay {self.weight_decay}: requires --optimiser adam")
        for name, other in self.incompatible().items():
            if getattr(self, name):
                raise InputError(f"{option(name)} {getattr(self, name)}: cannot be combined with {other}; set it to 0")
        if self.dropout >= 1:
            raise InputError(f"--dropout {self.dropout}: must be less than 1")

    @abstractmethod
    def sizes(self, *vocabularies: int) -> NetworkSizes:
        """Return the sizes of the network for these numbers of classes.

        Raises:
            ValueError: a size is too small.
        """

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name."""
        return dict(vars(self))


class EpochSettings(TrainingSettings):
    """Settings of training on the n-grams of a text, with an evaluation after every epoch and early stopping.

    Attributes:
        epochs: the schedule ``linear`` reaches 0 after this maximum, even if training stops earlier.
    """

    epochs: int
    patience: int
    held_out: float
    held_out_least: int
    self_normalised: float
    singletons: float

    shared: ClassVar[Mapping[str, Setting]] = {
        **TrainingSettings.shared,
        "self_normalised": Setting(
            "weight alpha of the self-normalisation penalty alpha (ln Z)^2 (Devlin et al. 2014); 0: no penalty, and "
            "scoring uses the exact softmax",
            least=0,
        ),
        "epochs": Setting("maximum number of epochs", above=0),
        "patience": Setting(
            "number of epochs without an improvement of the validation perplexity after which training stops", above=0
        ),
        "held_out": Setting("fraction of the n-grams used for validation, at most 0.1", least=0),
        "held_out_least": Setting("minimum number of validation n-grams, limited to 10 % of all n-grams", above=0),
    }

    def check(self) -> None:
        """Check the settings as in the base class, and that ``held_out`` is at most 0.1."""
        super().check()
        if self.held_out > 0.1:
            raise InputError(f"--held-out {self.held_out}: must be at most 0.1")

    def held_out_of(self, ngrams: int) -> int:
        """Return how many of ``ngrams`` n-grams are used for validation."""
        return min(max(round(ngrams * self.held_out), self.held_out_least), ngrams // 10)
