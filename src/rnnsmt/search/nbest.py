"""Paths out of the search: the best one, and distinct n-best lists from the lattice of recombined hypotheses."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rnnsmt.search.arrays import Work

if TYPE_CHECKING:
    from rnnsmt.search.decoder import Decoder


@dataclass
class NBest:
    """Distinct translations of one sentence, best first.

    Attributes:
        texts: words joined by single spaces.
        features: ``float64`` [n, F].
        scores: ``float64`` [n], features times weights.
        phrases: per translation (first source word, last source word, number of target words).
    """

    texts: list[str]
    features: np.ndarray
    scores: np.ndarray
    phrases: list[list[tuple[int, int, int]]]


def best_path(work: Work, hypothesis: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Options, first and last source words (``int32`` each) of the best path to a hypothesis."""
    path = []
    while hypothesis > 0:
        path.append(hypothesis)
        hypothesis = int(work.hypotheses[hypothesis]["back"])
    path.reverse()
    found = work.hypotheses[path]
    return found["option"].copy(), found["start"].copy(), found["end"].copy()


def kbest(decoder: "Decoder", work: Work, words: int) -> NBest:
    raise NotImplementedError
