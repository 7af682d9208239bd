"""A metric: the percentage of segments that equal a reference."""

from collections.abc import Sequence

import numpy as np

from rnnsmt.evaluation.metrics import Array, Metric


class ExactMatch(Metric):
    """Percentage of segments that equal one of the references."""

    label = "exact match"

    def statistics(self, hypothesis: str, references: Sequence[str], lowercase: bool = False) -> Sequence[float]:
        """Return whether a segment equals a reference (0 or 1), and 1, the number of segments."""
        texts = [text.lower() if lowercase else text for text in (hypothesis, *references)]
        return float(texts[0] in texts[1:]), 1.0

    def score(self, sums: Array) -> Array:
        """Return the percentage for the sums of the statistics of all segments ``[..., 2]``."""
        equal, segments = np.asarray(sums, np.float64)[..., 0], np.asarray(sums, np.float64)[..., 1]
        return 100 * equal / np.maximum(segments, 1)

    def signature(self, references: int, lowercase: bool = False) -> str:
        """Return the settings and the version; scores with different signatures are not compared."""
        return f"exact|nrefs:{references}|case:{'lc' if lowercase else 'mixed'}|version:1"
