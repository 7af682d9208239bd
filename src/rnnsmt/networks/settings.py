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
    """All that a training depends on besides its data and the seed: a frozen dataclass with a default everywhere.

    batch: examples of a minibatch, over all processes. optimiser: one of ``OPTIMISERS``; learning_rate: its factor, and
    schedule: how it goes on (``linear``: up over ``warmup`` updates, then down to 0 at the last; ``halving``: constant
    over two thirds of the updates, then halved every fifteenth of them, after 5 epochs of 7.5 every half epoch, as
    Sutskever et al. 2014). clip: largest norm of the gradient of the loss. weight_decay: the share of every parameter
    that an update takes away, times the learning rate (Loshchilov and Hutter 2019). dropout: the share of the units
    that is left out in training. precision: of matrix products, one of ``PRECISIONS``.
    """

    batch: int
    optimiser: str
    learning_rate: float
    schedule: str
    warmup: int
    clip: float
    weight_decay: float
    dropout: float
    precision: str

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
