"""Base classes of the sizes of the networks and of their training settings; imports nothing heavy."""

from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import Any, ClassVar

from rnnsmt.base.io import InputError
from rnnsmt.base.options import option

OPTIMISERS = ("adadelta", "adam", "sgd")

SCHEDULES = ("constant", "linear", "halving")

PRECISIONS = ("float32", "reduced")
"""Precisions of matrix products, see ``rnnsmt.networks.devices.choose_place``."""


class NetworkSizes(ABC):
    """The sizes of a network; subclasses are frozen dataclasses."""

    @abstractmethod
    def parameters(self) -> dict[str, dict[str, int]]:
        """Return the numbers of parameters: part of the network -> symbol -> number."""

    def count(self) -> int:
        """Return the total number of parameters."""
        return sum(sum(part.values()) for part in self.parameters().values())

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name, as written to model files."""
        return dict(vars(self))


class TrainingSettings(ABC):
    """All settings of a training except its data and seed; subclasses are frozen dataclasses with defaults.

    ``helps`` describes the fields; in addition:

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
    """Help text of every field; subclasses add those of their own fields."""

    choices: ClassVar[dict[str, tuple[str, ...]]] = {
        "optimiser": OPTIMISERS,
        "schedule": SCHEDULES,
        "precision": PRECISIONS,
    }
    """Permitted values of the string fields."""

    above_zero: ClassVar[tuple[str, ...]]
    not_negative: ClassVar[tuple[str, ...]]

    def unfit(self) -> Collection[str]:
        """Return the names of the settings that must be 0 given the values of the others."""
        return ()

    def check(self) -> None:
        """Check that the numbers are valid.

        Raises:
            InputError: a number is not above zero, negative or not finite, or does not go with the other settings; the
                message names the option.
        """
        for name in self.above_zero:
            if not 0 < getattr(self, name) < float("inf"):
                raise InputError(f"{option(name)} {getattr(self, name)}: must be above 0")
        for name in self.not_negative:
            if not 0 <= getattr(self, name) < float("inf"):
                raise InputError(f"{option(name)} {getattr(self, name)}: must be at least 0")
        if self.weight_decay and self.optimiser != "adam":
            raise InputError(f"--weight-decay {self.weight_decay}: requires --optimiser adam")
        for name in self.unfit():
            if getattr(self, name):
                raise InputError(
                    f"{option(name)} {getattr(self, name)}: cannot be combined with the other settings; set it to 0"
                )
        if self.dropout >= 1:
            raise InputError(f"--dropout {self.dropout}: must be below 1")

    @abstractmethod
    def sizes(self, *vocabularies: int) -> NetworkSizes:
        """Return the sizes of the network for these numbers of classes.

        Raises:
            ValueError: a size is too small.
        """

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name."""
        return dict(vars(self))
