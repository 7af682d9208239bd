"""The sizes of a feed-forward language model and the number of its parameters; imports nothing heavy."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Sizes:
    """The sizes of a CSLM; the defaults are the paper's.

    vocabulary: softmax classes, with id 0 (padding before the sentence, never predicted), id 1 (UNK) and the last id
    (``</s>``). order: words of an n-gram, the predicted one among them. projection: units of a context word.
    hidden_1, hidden_2: units of the two rectified layers.
    """

    vocabulary: int = 15_001
    order: int = 7
    projection: int = 512
    hidden_1: int = 1536
    hidden_2: int = 1024

    def __post_init__(self) -> None:
        for name, least in (("vocabulary", 3), ("order", 2), ("projection", 1), ("hidden_1", 1), ("hidden_2", 1)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} is {getattr(self, name)}, it must be at least {least}")

    @property
    def context(self) -> int:
        """Words that the network sees."""
        return self.order - 1

    def parameters(self) -> dict[str, dict[str, int]]:
        """The number of parameters: layer -> symbol -> number; biases are ``b_...``."""
        first, second = self.hidden_1, self.hidden_2
        return {
            "projection": {"R": self.vocabulary * self.projection},
            "hidden 1": {"W_1": first * self.context * self.projection, "b_1": first},
            "hidden 2": {"W_2": second * first, "b_2": second},
            "softmax": {"W_o": self.vocabulary * second, "b_o": self.vocabulary},
        }

    def count(self) -> int:
        """The number of all parameters."""
        return sum(sum(part.values()) for part in self.parameters().values())

    def as_dict(self) -> dict[str, Any]:
        """The fields by name, for a file."""
        return asdict(self)
