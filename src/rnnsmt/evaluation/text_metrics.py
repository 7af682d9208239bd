"""Metrics of detokenised text other than BLEU: chrF, chrF++ and TER by sacreBLEU.

They are functions of statistics that are summed over segments, as BLEU is. Therefore, they can be computed
for joint test sets, and the randomisation tests of ``significance`` apply to them. The statistics of chrF (Popović
2015) are the numbers of character n-grams of the output, of the reference and common to both, for the orders 1 to 6;
chrF++ (Popović 2017) also has those of word n-grams of the orders 1 and 2; TER (Snover et al. 2006) has the number of
edits and the length of the reference.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

BETA = 2
"""Weight of recall in chrF and chrF++, the default of sacreBLEU."""

CACHED_SEGMENTS = 6_000
"""Number of segments whose statistics are cached: the runs of a system translate most segments in the same way."""

TINY = 1e-16
"""Minimum of denominators, which avoids a division by 0."""


@dataclass(frozen=True)
class MetricScore:
    """One metric of one output.

    Attributes:
        score: score of the whole text, 0 to 100; TER can exceed 100.
        signature: sacreBLEU's signature.
        sentences: statistics of every segment ``[S, K]``.
    """

    score: float
    signature: str
    sentences: Array


def chrf_of_many(statistics: Array) -> Array:
    """Return chrF or chrF++ of summed statistics ``[..., 3 * orders]``: ``[...]``.

    Precision and recall are averaged over the orders that both texts have, then combined, as in sacreBLEU.
    """
    hypothesis, reference, matches = (np.asarray(statistics, np.float64)[..., index::3] for index in range(3))
    counted = (hypothesis > 0) & (reference > 0)
    orders = np.maximum(counted.sum(-1), 1)
    precision = np.where(counted, matches / np.maximum(hypothesis, TINY), 0.0).sum(-1) / orders
    recall = np.where(counted, matches / np.maximum(reference, TINY), 0.0).sum(-1) / orders
    below = BETA**2 * precision + recall
    return np.where(below > 0, 100 * (1 + BETA**2) * precision * recall / np.maximum(below, TINY), 0.0)


def ter_of_many(statistics: Array) -> Array:
    """Return TER of summed statistics ``[..., 2]``, edits and length of the reference: ``[...]``."""
    edits, length = np.asarray(statistics, np.float64)[..., 0], np.asarray(statistics, np.float64)[..., 1]
    return np.where(length > 0, 100 * edits / np.maximum(length, TINY), np.where(edits > 0, 100.0, 0.0))


@dataclass(frozen=True)
class Metric:
    """A metric: its name in tables, and its score as a function of the sums of its statistics."""

    label: str
    of_many: Callable[[Array], Array]


METRICS: dict[str, Metric] = {
    "chrf": Metric("chrF", chrf_of_many),
    "chrfpp": Metric("chrF++", chrf_of_many),
    "ter": Metric("TER", ter_of_many),
}
"""The metrics by their names in files and columns."""


def score_texts(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], lowercase: bool = False
) -> dict[str, MetricScore]:
    """Score plain text with all metrics.

    Args:
        hypotheses: output, one segment each.
        references: one or more references.
        lowercase: ignore case in chrF and chrF++; TER always does.
    """
    scores = {}
    for name, metric in METRICS.items():
        segments = zip(hypotheses, *references, strict=True)
        rows = np.array([_segment_statistics(name, lowercase, *texts) for texts in segments])
        sacrebleu = _sacrebleu_metric(name, lowercase)
        sacrebleu.sentence_score("", [""] * len(references))  # sets nrefs of the signature
        whole = float(metric.of_many(rows.sum(0)))
        scores[name] = MetricScore(whole, str(sacrebleu.get_signature()), rows)
    return scores


@cache
def _sacrebleu_metric(name: str, lowercase: bool) -> Any:
    """Return TER, or chrF with the statistics instead of the score, which sacreBLEU's class does not return."""
    from sacrebleu.metrics import CHRF, TER

    class ChrfStatistics(CHRF):
        def _compute_score_from_stats(self, stats: list[int]) -> Any:
            return stats

    if name == "ter":
        return TER()
    return ChrfStatistics(word_order=2 if name == "chrfpp" else 0, lowercase=lowercase)


@lru_cache(maxsize=len(METRICS) * CACHED_SEGMENTS)
def _segment_statistics(name: str, lowercase: bool, hypothesis: str, *references: str) -> tuple[float, ...]:
    score = _sacrebleu_metric(name, lowercase).sentence_score(hypothesis, references)
    return (score.num_edits, score.ref_length) if name == "ter" else tuple(score)


def joint_metrics(parts: Sequence[Mapping[str, MetricScore]]) -> dict[str, MetricScore]:
    """Return the metrics of several test sets as one corpus, if all parts have the metric with the same signature."""
    joint = {}
    for name, metric in METRICS.items():
        scores = [metrics[name] for metrics in parts if name in metrics]
        if len(scores) == len(parts) and len({score.signature for score in scores}) == 1:
            rows = np.concatenate([score.sentences for score in scores])
            whole = float(metric.of_many(rows.sum(0)))
            joint[name] = MetricScore(whole, scores[0].signature, rows)
    return joint


def in_words(rows: Array) -> list[str]:
    """Return the statistics of every segment as text; integers have no decimals."""
    return [" ".join(f"{value:.12g}" for value in row) for row in rows.tolist()]
