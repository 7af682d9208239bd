"""chrF (Popović 2015) and chrF++ (Popović 2017), by sacreBLEU.

The statistics of chrF are three numbers of character n-grams for each order from 1 to 6: those in the output, in the
reference, and in both. chrF++ adds the three numbers of word n-grams for the orders 1 and 2.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from rnnsmt.evaluation.metrics import TINY, Array, Metric

BETA = 2
"""Weight of recall, the default of sacreBLEU."""


class Chrf(Metric):
    """chrF, the F-score of character n-grams."""

    label = "chrF"
    separates_words = False
    word_order = 0

    def statistics(self, hypothesis: str, references: Sequence[str], lowercase: bool = False) -> Sequence[float]:
        """Return the statistics of a segment, ``[3 * orders]``."""
        return tuple(_sacrebleu(self.word_order, lowercase).sentence_score(hypothesis, references))

    def score(self, sums: Array) -> Array:
        """Return chrF ``[...]`` of summed statistics ``[..., 3 * orders]``.

        Precision and recall are averaged over the orders that both texts have, then combined, as in sacreBLEU.
        """
        hypothesis, reference, matches = (np.asarray(sums, np.float64)[..., index::3] for index in range(3))
        counted = (hypothesis > 0) & (reference > 0)
        orders = np.maximum(counted.sum(-1), 1)
        precision = np.where(counted, matches / np.maximum(hypothesis, TINY), 0.0).sum(-1) / orders
        recall = np.where(counted, matches / np.maximum(reference, TINY), 0.0).sum(-1) / orders
        below = BETA**2 * precision + recall
        return np.where(below > 0, 100 * (1 + BETA**2) * precision * recall / np.maximum(below, TINY), 0.0)

    def signature(self, references: int, lowercase: bool = False) -> str:
        """Return sacreBLEU's signature."""
        metric = _sacrebleu(self.word_order, lowercase)
        metric.sentence_score("", [""] * references)  # sets nrefs
        return str(metric.get_signature())


class ChrfPlusPlus(Chrf):
    """chrF++, the F-score of character and word n-grams."""

    label = "chrF++"
    separates_words = True
    word_order = 2


@cache
def _sacrebleu(word_order: int, lowercase: bool) -> Any:
    """Return sacreBLEU's chrF, with the change that it returns the statistics of a segment instead of its score."""
    from sacrebleu.metrics import CHRF

    class ChrfStatistics(CHRF):
        def _compute_score_from_stats(self, stats: list[int]) -> Any:
            return stats

    return ChrfStatistics(word_order=word_order, lowercase=lowercase)
