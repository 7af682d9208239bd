"""TER (Snover et al. 2006), by sacreBLEU. Its statistics are the number of edits and the length of the reference."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from rnnsmt.evaluation.metrics import TINY, Array, Metric


class Ter(Metric):
    """Translation edit rate; it always ignores case."""

    label = "TER"
    lower_is_better = True

    def statistics(self, hypothesis: str, references: Sequence[str], lowercase: bool = False) -> Sequence[float]:
        """Return the number of edits and the length of the reference."""
        score = _sacrebleu().sentence_score(hypothesis, references)
        return score.num_edits, score.ref_length

    def score(self, sums: Array) -> Array:
        """Return TER ``[...]`` of summed statistics ``[..., 2]``; it can exceed 100."""
        edits, length = np.asarray(sums, np.float64)[..., 0], np.asarray(sums, np.float64)[..., 1]
        return np.where(length > 0, 100 * edits / np.maximum(length, TINY), np.where(edits > 0, 100.0, 0.0))

    def signature(self, references: int, lowercase: bool = False) -> str:
        """Return sacreBLEU's signature."""
        _sacrebleu().sentence_score("", [""] * references)  # sets nrefs
        return str(_sacrebleu().get_signature())


@cache
def _sacrebleu() -> Any:
    from sacrebleu.metrics import TER

    return TER()
