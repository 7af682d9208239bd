"""Translations and n-best lists as values of ``rnnsmt.search.decode``."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from rnnsmt.base.operations import Values


class Hypothesis(NamedTuple):
    """An entry of an n-best list.

    Attributes:
        text: words joined by single spaces.
        score: ``features`` times weights.
        features: scores by name of the feature and number of the score: ``LM0:0``, ``TranslationModel0:3``.
    """

    text: str
    score: float
    features: dict[str, float]


class Translations(Values[str]):
    """Translations of all sentences, those of all texts one after the other; empty for an empty sentence.

    Attributes:
        nbest: n-best list of every sentence, best translation first; no lists if they are written to files.
    """

    def __init__(self, texts: Iterable[str], nbest: list[list[Hypothesis]], figures: Mapping[str, object]) -> None:
        super().__init__(texts, figures)
        self.nbest = nbest
