"""Score every line by how much better the in-domain model likes it than the general one; lower is more in-domain.

Of a monolingual text (Moore and Lewis 2010): H_in(s) - H_gen(s), the cross-entropies in bits per word, the end of the
sentence counted as a word. Of a bitext (Axelrod, He and Gao 2011): the sum of that difference over both sides.
Lines that the general model was trained on, and copies of them, are scored with the second general model.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from rnnsmt.io import read_lines
from rnnsmt.lm.queries import LOG2_10, load_kenlm

IN_DOMAIN, GENERAL, GENERAL2 = "in-domain.arpa.gz", "general.arpa.gz", "general2.arpa.gz"

GENERAL_TEXT, HELD_OUT = "general.gz", "held-out.gz"
"""The files of a folder that ``rnnsmt selection models`` wrote."""


@dataclass(frozen=True)
class SideModels:
    """The models of one language: KenLM models, and the lines that ``general`` was trained on."""

    in_domain: Any
    general: Any
    general2: Any
    seen: frozenset[str]

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read what ``rnnsmt selection models`` wrote; ``InputError`` where something is missing or damaged."""
        in_domain, general, general2 = (load_kenlm(folder / name) for name in (IN_DOMAIN, GENERAL, GENERAL2))
        return cls(in_domain, general, general2, frozenset(read_lines(folder / GENERAL_TEXT)))

    def difference(self, line: str) -> float:
        """H_in - H_gen of a line, in bits per word and ``</s>``."""
        text = line.encode()
        general = self.general2 if line in self.seen else self.general
        return LOG2_10 * (general.score(text) - self.in_domain.score(text)) / (len(text.split()) + 1)


class CrossEntropyDifference:
    """Scores rows of one line per side."""

    def __init__(self, sides: Sequence[SideModels]) -> None:
        self._sides = sides

    def __call__(self, rows: Sequence[tuple[str, ...]]) -> list[float]:
        """The scores of rows: the sum of the sides' differences."""
        return [sum(side.difference(line) for side, line in zip(self._sides, row, strict=True)) for row in rows]
