"""Translations and n-best lists as values of ``rnnsmt.search.decode``."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from rnnsmt.base.operations import Values


class Hypothesis(NamedTuple):
    """An entry of an n-best list.

    Attributes:
        text: words joined by single spaces.
        score: ``features`` times weights.
        features: values of the features by name, ``NAME:INDEX``, for example ``LM0:0``.
    """

    text: str
    score: float
    features: dict[str, float]


class Translations(Values[str]):
    """Translations of all sentences of all texts, one text after the other; empty for an empty sentence.

    Attributes:
        nbest: n-best list of every sentence, best translation first; empty if the lists were written to files.
    """

    def __init__(self, texts: Iterable[str], nbest: list[list[Hypothesis]], figures: Mapping[str, object]) -> None:
        super().__init__(texts, figures)
        self.nbest = nbest
