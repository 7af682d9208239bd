"""chrF, chrF++ and TER of detokenised text, by sacreBLEU, from statistics of segments that can be added up.

A metric is a function of sums over segments, as BLEU is; so joint test sets have it, and the randomisation tests of
``significance`` apply to it. chrF (Popović 2015) has the numbers of character n-grams of the output, of the reference
and common to both, for the orders 1 to 6; chrF++ (Popović 2017) those of word n-grams of the orders 1 and 2, too; TER
(Snover et al. 2006) the number of edits and the length of the reference.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

BETA = 2
"""Weight of recall in chrF and chrF++, the default of sacreBLEU."""

TINY = 1e-16
"""Precision of an order without n-grams, as in sacreBLEU."""


@dataclass(frozen=True)
class MetricScore:
    """One metric of one output.

    Attributes:
        score: of the whole text, 0 to 100; TER can exceed 100.
        signature: sacreBLEU's signature.
        sentences: statistics of every segment.
    """

    score: float
    signature: str
    sentences: tuple[tuple[float, ...], ...]


def chrf_of_many(statistics: Array) -> Array:
    """Return chrF or chrF++ of summed statistics ``[..., 3 * orders]``: ``[...]``.

    Precision and recall are averaged over the orders that both texts have, then combined, as in sacreBLEU.
    """
    hypothesis, reference, matches = (np.asarray(statistics, np.float64)[..., part::3] for part in range(3))
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
    """A metric: its name in tables, the number of statistics of a segment, and the score of sums of them."""

    label: str
    size: int
    of_many: Callable[[Array], Array]


METRICS: dict[str, Metric] = {
    "chrf": Metric("chrF", 18, chrf_of_many),
    "chrfpp": Metric("chrF++", 24, chrf_of_many),
    "ter": Metric("TER", 2, ter_of_many),
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
    from sacrebleu.metrics import CHRF, TER

    found = {}
    for name, metric in (("chrf", CHRF(lowercase=lowercase)), ("chrfpp", CHRF(word_order=2, lowercase=lowercase)),
                         ("ter", TER())):  # fmt: skip
        sentences = metric._extract_corpus_statistics(list(hypotheses), [list(texts) for texts in references])
        score = metric._aggregate_and_compute(sentences)
        rows = tuple(tuple(map(number, sentence)) for sentence in sentences)
        found[name] = MetricScore(float(score.score), str(metric.get_signature()), rows)
    return found


def joint_metrics(parts: Sequence[Mapping[str, MetricScore]]) -> dict[str, MetricScore]:
    """Return the metrics of several test sets as one corpus; only those that all parts have with one signature."""
    joint = {}
    for name, metric in METRICS.items():
        scores = [part[name] for part in parts if name in part]
        if len(scores) == len(parts) and len({score.signature for score in scores}) == 1:
            rows = tuple(row for score in scores for row in score.sentences)
            whole = float(metric.of_many(np.array(rows).sum(0)))
            joint[name] = MetricScore(whole, scores[0].signature, rows)
    return joint


def number(value: str | float) -> float:
    """Return a statistic as int if it is a whole number: Python has one object for each of the small ones."""
    found = float(value)
    return int(found) if found.is_integer() else found


def in_words(rows: Sequence[Sequence[float]]) -> list[str]:
    """Return the statistics of every segment as text, without the decimals of whole numbers."""
    return [" ".join(f"{value:.12g}" for value in row) for row in rows]
