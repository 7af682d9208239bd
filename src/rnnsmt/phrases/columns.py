"""Score columns: numbers of phrase pairs that are features of systems.

``rnnsmt.registries.FEATURES`` lists them. `phrases column` computes a column, and `phrases augment` adds it to the
phrase table.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rnnsmt.config.features import SystemFeature

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rnnsmt.phrases.pairs import PhrasePairs

BLOCK = 1 << 16
"""Number of scores of a block."""


class ColumnInputs(NamedTuple):
    """The inputs and options of the computation of a column.

    Attributes:
        pairs: the phrase pairs.
        begin, end: the pairs ``begin`` to ``end - 1`` are scored.
        vocabularies: directory of the vocabularies of the networks, if the column uses them.
        model: file of the trained network, if the column has one.
        device, threads: as in ``rnnsmt.networks.devices.set_up_device``.
    """

    pairs: "PhrasePairs"
    begin: int
    end: int
    vocabularies: Path | None = None
    model: Path | None = None
    device: str = "cpu"
    threads: int = 1


class ScoreColumn(SystemFeature, ABC):
    """A score of phrase pairs. The module of a column imports torch, and what else takes long, only in ``scores``.

    Attributes:
        uses_vocabularies: whether the scores depend on the vocabularies of the networks.
    """

    uses_vocabularies: bool = False

    @abstractmethod
    def scores(self, inputs: ColumnInputs) -> "Iterator[NDArray[Any]]":
        """Yield the scores of the pairs in order, in blocks [n].

        A score is a natural logarithm of a probability, at most 0, or a count, which is a whole number: the features
        of a translation are the sums of the scores of its phrase pairs.
        """


class WordColumn(ScoreColumn):
    """A score that is a function of the words of a pair."""

    @abstractmethod
    def score(self, source: Sequence[str], target: Sequence[str]) -> float:
        """Return the score of a pair, given its words; see ``ScoreColumn.scores``."""

    def scores(self, inputs: ColumnInputs) -> "Iterator[NDArray[np.float32]]":
        """Yield the scores of the pairs."""
        import numpy as np

        block: list[float] = []
        for source, target in inputs.pairs.texts(inputs.begin, inputs.end):
            block.append(self.score(source, target))
            if len(block) == BLOCK:
                yield np.array(block, np.float32)
                block = []
        yield np.array(block, np.float32)
