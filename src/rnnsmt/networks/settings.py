"""What the sizes of the networks, and the settings of their trainings, have in common; imports nothing heavy."""

from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import Any, ClassVar

from rnnsmt.io import InputError
from rnnsmt.options import option

OPTIMISERS = ("adadelta", "adam", "sgd")

SCHEDULES = ("constant", "linear", "halving")

PRECISIONS = ("float32", "reduced")
"""Of matrix products, see ``rnnsmt.networks.devices.choose_place``."""


class NetworkSizes(ABC):
    """The sizes of a network: a frozen dataclass."""

    @abstractmethod
    def parameters(self) -> dict[str, dict[str, int]]:
        """The number of parameters: part of the network -> symbol -> number."""

    def count(self) -> int:
        """The number of all parameters."""
        return sum(sum(part.values()) for part in self.parameters().values())

    def as_dict(self) -> dict[str, Any]:
        """The fields by name, for a file."""
        return dict(vars(self))


class TrainingSettings(ABC):
    """All settings of a training besides its data and the seed: a frozen dataclass with a default for every field.

    ``helps`` describes the fields. schedule: ``halving`` is the schedule of Sutskever et al. (2014), 7.5 epochs of
    which the first 5 have a constant rate, which is then halved every half epoch. weight_decay: Loshchilov and Hutter
    (2019), multiplied by the learning rate. sampled_classes: see ``rnnsmt.networks.softmax.ClassSampler``.
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

    helps: ClassVar[dict[str, str]] = {
        "batch": "minibatch size, the total of all processes",
        "optimiser": "optimiser; adadelta: rho 0.95, eps 1e-6; adam: AdamW; sgd: without momentum",
        "learning_rate": "base learning rate, to which --warmup and --schedule apply",
        "schedule": "learning rate schedule; linear: decay to 0 at the last update; halving: constant for two thirds "
        "of the updates, then halved every fifteenth of them",
        "warmup": "number of updates of linear learning rate warm-up",
        "clip": "maximum norm of the gradient; larger gradients are scaled down",
        "weight_decay": "decoupled weight decay, for --optimiser adam only",
        "dropout": "dropout rate",
        "sampled_classes": "number of classes sampled for the softmax of a minibatch in training, in addition to its "
        "own words; 0: softmax over all classes",
        "precision": "precision of matrix products in training; reduced: bfloat16 on CPUs with bfloat16 instructions, "
        "TF32 on GPUs",
    }
    """The help text of every field; subclasses add those of their own fields."""

    choices: ClassVar[dict[str, tuple[str, ...]]] = {
        "optimiser": OPTIMISERS,
        "schedule": SCHEDULES,
        "precision": PRECISIONS,
    }
    """The values of the fields that are words."""

    above_zero: ClassVar[tuple[str, ...]]
    not_negative: ClassVar[tuple[str, ...]]

    def unfit(self) -> Collection[str]:
        """The names of settings that have to be 0 with what the others say."""
        return ()

    def check(self) -> None:
        """Refuse numbers that make no sense.

        Raises:
            InputError: names the option: not above zero, negative, or not finite.
        """
        for name in self.above_zero:
            if not 0 < getattr(self, name) < float("inf"):
                raise InputError(f"{option(name)} {getattr(self, name)}: must be above 0")
        for name in self.not_negative:
            if not 0 <= getattr(self, name) < float("inf"):
                raise InputError(f"{option(name)} {getattr(self, name)}: must be at least 0")
        if self.weight_decay and self.optimiser != "adam":
            raise InputError(f"--weight-decay {self.weight_decay}: is for --optimiser adam only")
        for name in self.unfit():
            if getattr(self, name):
                raise InputError(f"{option(name)} {getattr(self, name)}: does not go with the other settings, give 0")
        if self.dropout >= 1:
            raise InputError(f"--dropout {self.dropout}: must be below 1")

    @abstractmethod
    def sizes(self, *vocabularies: int) -> NetworkSizes:
        """The sizes of the network for these numbers of classes.

        Raises:
            ValueError: a size is too small.
        """

    def as_dict(self) -> dict[str, Any]:
        """The fields by name."""
        return dict(vars(self))
