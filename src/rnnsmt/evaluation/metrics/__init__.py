"""Metrics of detokenised text other than BLEU.

Like BLEU, they are functions of statistics that are summed over segments. Therefore, they can be computed for joint
test sets, and the randomisation tests of ``significance`` apply to them. ``rnnsmt.registries.METRICS`` lists them.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnnsmt.registries import METRICS

Array = NDArray[Any]

CACHED_SEGMENTS = 18_000
"""Number of segments whose statistics are cached, since the runs of a system translate most segments equally."""

TINY = 1e-16
"""Minimum of denominators, which avoids a division by 0."""


class Metric(ABC):
    """A metric of detokenised text.

    Attributes:
        label: name in tables.
        lower_is_better: whether a lower score is better.
        separates_words: whether words are separated at spaces, so that the metric is of little use for a language that
            is written without them.
    """

    label: str
    lower_is_better: bool = False
    separates_words: bool = True

    @abstractmethod
    def statistics(self, hypothesis: str, references: Sequence[str], lowercase: bool = False) -> Sequence[float]:
        """Return the statistics ``[K]`` of a segment; their sums over all segments of a text determine its score."""

    @abstractmethod
    def score(self, sums: Array) -> Array:
        """Return the scores ``[...]`` of texts from the sums of their statistics ``[..., K]``."""

    @abstractmethod
    def signature(self, references: int, lowercase: bool = False) -> str:
        """Return name, settings and version of the implementation; only scores with equal signatures are comparable."""


@dataclass(frozen=True)
class MetricScore:
    """One metric of one output.

    Attributes:
        score: score of the whole text.
        signature: signature of the metric.
        sentences: statistics of every segment ``[S, K]``.
    """

    score: float
    signature: str
    sentences: Array


def score_texts(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    lowercase: bool = False,
    metrics: Sequence[str] = tuple(METRICS),
) -> dict[str, MetricScore]:
    """Return the scores of detokenised text by metric.

    Args:
        hypotheses: segments of the output.
        references: one or more references, each a list of segments.
        lowercase: ignore case in metrics that support it.
        metrics: names of the metrics.
    """
    scores = {}
    for name in metrics:
        segments = zip(hypotheses, *references, strict=True)
        rows = np.array([_segment_statistics(name, lowercase, *texts) for texts in segments])
        scores[name] = _of_rows(name, METRICS[name].signature(len(references), lowercase), rows)
    return scores


@lru_cache(maxsize=CACHED_SEGMENTS)
def _segment_statistics(name: str, lowercase: bool, hypothesis: str, *references: str) -> tuple[float, ...]:
    return tuple(METRICS[name].statistics(hypothesis, references, lowercase))


def _of_rows(name: str, signature: str, rows: Array) -> MetricScore:
    """Return the score of the statistics of all segments ``[S, K]``."""
    return MetricScore(float(METRICS[name].score(rows.sum(0))), signature, rows)


def joint_metrics(parts: Sequence[Mapping[str, MetricScore]]) -> dict[str, MetricScore]:
    """Return the scores of several test sets as one corpus, for metrics that all have with the same signature."""
    joint = {}
    for name in parts[0]:
        scores = [metrics[name] for metrics in parts if name in metrics]
        if len(scores) == len(parts) and len({score.signature for score in scores}) == 1:
            rows = np.concatenate([score.sentences for score in scores])
            joint[name] = _of_rows(name, scores[0].signature, rows)
    return joint


def in_words(rows: Array) -> list[str]:
    """Return the statistics of every segment as text; integers have no decimals."""
    return [" ".join(f"{value:.12g}" for value in row) for row in rows.tolist()]
