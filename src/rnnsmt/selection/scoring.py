"""Scoring of lines by cross-entropy difference of the in-domain and the general model; lower is more in-domain.

For monolingual text (Moore and Lewis 2010): H_in(s) - H_gen(s) in bits per word, counting the end of the sentence as a
word. For parallel text (Axelrod, He and Gao 2011): the sum of this difference over both sides. Lines of the training
text of the general model, and copies of them, are scored with the second general model.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from rnnsmt.base.io import read_lines
from rnnsmt.lm.queries import LOG2_10, load_kenlm

IN_DOMAIN, GENERAL, GENERAL2 = "in-domain.arpa.gz", "general.arpa.gz", "general2.arpa.gz"

GENERAL_TEXT, HELD_OUT = "general.gz", "held-out.gz"
"""Further files in the directory written by ``rnnsmt selection models``."""


@dataclass(frozen=True)
class SideModels:
    """Models of one language: KenLM models, and the training lines of ``general``."""

    in_domain: Any
    general: Any
    general2: Any
    seen: frozenset[str]

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read the models written by ``rnnsmt selection models``.

        Raises:
            InputError: a file is missing or damaged.
        """
        in_domain, general, general2 = (load_kenlm(folder / name) for name in (IN_DOMAIN, GENERAL, GENERAL2))
        return cls(in_domain, general, general2, frozenset(read_lines(folder / GENERAL_TEXT)))

    def difference(self, line: str) -> float:
        """Return H_in - H_gen of a line in bits per word, counting ``</s>``."""
        text = line.encode()
        general = self.general2 if line in self.seen else self.general
        # KenLM returns log10 probabilities, whose negatives are cross-entropies
        return LOG2_10 * (general.score(text) - self.in_domain.score(text)) / (len(text.split()) + 1)


class CrossEntropyDifference:
    """Scoring function for rows with one line per side."""

    def __init__(self, sides: Sequence[SideModels]) -> None:
        self._sides = sides

    def __call__(self, rows: Sequence[tuple[str, ...]]) -> list[float]:
        """Return the score of each row: the sum of the differences of its sides."""
        return [sum(side.difference(line) for side, line in zip(self._sides, row, strict=True)) for row in rows]
