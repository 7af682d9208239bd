"""Score columns: a score for each phrase pair, used as a feature of the log-linear model.

``rnnsmt.registries.FEATURES`` lists the features. `phrases column` computes a column, and `phrases augment` adds it to
a phrase table.
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
    """Inputs and options for the computation of a column.

    Attributes:
        pairs: the phrase pairs.
        begin, end: range of the pairs to score: ``begin`` to ``end - 1``.
        vocabularies: directory with the vocabularies of the networks, for columns that use them.
        model: file of a trained network, for columns of networks.
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
    """Abstract base class of score columns. A subclass should import torch and other slow modules only in ``scores``.

    Attributes:
        uses_vocabularies: whether the scores depend on the vocabularies of the networks.
    """

    uses_vocabularies: bool = False

    @abstractmethod
    def scores(self, inputs: ColumnInputs) -> "Iterator[NDArray[Any]]":
        """Yield the scores of the pairs in order, in blocks [n].

        A score is the natural logarithm of a probability (at most 0) or a count (an integer). The value of the feature
        for a translation is the sum of the scores of its phrase pairs.
        """


class WordColumn(ScoreColumn):
    """Abstract base class of columns whose scores are functions of the words of a phrase pair."""

    @abstractmethod
    def score(self, source: Sequence[str], target: Sequence[str]) -> float:
        """Return the score of a phrase pair, given the words of both phrases; see ``ScoreColumn.scores``."""

    def scores(self, inputs: ColumnInputs) -> "Iterator[NDArray[np.float32]]":
        """Yield the scores of the pairs in order, in blocks [n]."""
        import numpy as np

        block: list[float] = []
        for source, target in inputs.pairs.texts(inputs.begin, inputs.end):
            block.append(self.score(source, target))
            if len(block) == BLOCK:
                yield np.array(block, np.float32)
                block = []
        yield np.array(block, np.float32)
