"""The sizes of a network and the number of its parameters; imports nothing heavy."""

from dataclasses import asdict, dataclass
from typing import Any

VARIANTS = ("paper", "supplementary")
"""``paper``: the main text and the authors' code; ``supplementary``: the equations of the paper's supplementary."""


@dataclass(frozen=True)
class Sizes:
    """The sizes of an RNN Encoder-Decoder; the defaults are the paper's.

    source_vocabulary, target_vocabulary: classes of each side, with id 0 ("no word"), id 1 (UNK) and the last id (EOS).
    embedding: units of the word embeddings, which is the rank of the low-rank input and output matrices.
    hidden: units of h and s. maxout: units after pooling, from twice as many. variant: one of ``VARIANTS``.
    """

    source_vocabulary: int = 15_001
    target_vocabulary: int = 15_001
    embedding: int = 100
    hidden: int = 1000
    maxout: int = 500
    variant: str = "paper"

    def __post_init__(self) -> None:
        for name in ("source_vocabulary", "target_vocabulary"):
            if getattr(self, name) < 3:
                raise ValueError(f"{name} is {getattr(self, name)}: ids 0, UNK and EOS make at least 3")
        for name in ("embedding", "hidden", "maxout"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}, it must be at least 1")
        if self.variant not in VARIANTS:
            raise ValueError(f"variant is '{self.variant}', it must be one of {', '.join(VARIANTS)}")

    def parameters(self) -> dict[str, dict[str, int]]:
        """The number of parameters: part of the network -> symbol -> number; biases are ``b...``."""
        E, H, M = self.embedding, self.hidden, self.maxout
        extra = {"V": H * H} if self.variant == "supplementary" else {}
        return {
            "encoder": {
                "embedding": self.source_vocabulary * E,
                "b_embedding": E,
                "W, W_r, W_z": 3 * H * E,
                "b": H,
                "U, U_r, U_z": 3 * H * H,
                **extra,
            },
            "decoder": {
                "embedding": self.target_vocabulary * E,
                "b_embedding": E,
                "W', W'_r, W'_z": 3 * H * E,
                "b'": H,
                "U', U'_r, U'_z": 3 * H * H,
                "C, C_r, C_z": 3 * H * H,
                "V'": H * H,
                "b_V'": H,
            },
            "readout": {"O_h": 2 * M * H, "O_c": 2 * M * H, "O_y": 2 * M * E, "b_o": 2 * M},
            "softmax": {"G_r": E * M, "G_l": self.target_vocabulary * E, "b_G": self.target_vocabulary},
        }

    def count(self) -> int:
        """The number of all parameters."""
        return sum(sum(part.values()) for part in self.parameters().values())

    def as_dict(self) -> dict[str, Any]:
        """The fields by name, for a file."""
        return asdict(self)
