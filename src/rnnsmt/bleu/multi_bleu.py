"""Tokenised, case-sensitive corpus BLEU-4, equal to Moses' ``multi-bleu.perl`` (Papineni et al. 2002).

Text is split at ASCII white space without further tokenisation; there is no smoothing; any number of references is
possible. Matches of an n-gram are clipped to its maximum count in a single reference. The reference length of a segment
is the one closest to the length of the hypothesis (the shorter one if tied).

The sufficient statistics of a segment are nine integers in this order::

    matches of order 1, 2, 3, 4; n-grams of order 1, 2, 3, 4 in the hypothesis; closest reference length

Statistics are additive over segments. The length of the hypothesis is its number of unigrams.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ORDER = 4
"""Maximum n-gram order."""

SIZE = 2 * ORDER + 1
"""Number of sufficient statistics."""


@dataclass(frozen=True)
class BleuScore:
    """Corpus BLEU and its components, as printed by ``multi-bleu.perl``."""

    bleu: float
    """BLEU in percent, 0 to 100."""
    precisions: tuple[float, ...]
    """N-gram precisions of orders 1 to 4 in percent."""
    brevity_penalty: float
    length_ratio: float
    hypothesis_length: int
    reference_length: int

    def __str__(self) -> str:
        parts = "/".join(f"{precision:.1f}" for precision in self.precisions)
        return (
            f"BLEU = {self.bleu:.2f}, {parts} (BP={self.brevity_penalty:.3f}, ratio={self.length_ratio:.3f}, "
            f"hyp_len={self.hypothesis_length}, ref_len={self.reference_length})"
        )


def tokens(text: str) -> list[bytes]:
    """Split text at ASCII white space only, as Perl does with bytes; a no-break space is part of a word."""
    return text.encode("utf-8").split()


def log_precision_and_penalty(total: Sequence[int] | NDArray[np.number]) -> tuple[float, float]:
    """Return two logarithms for statistics [9]: of the geometric mean of the precisions, and of the brevity penalty.

    BLEU (0 to 1) is ``exp`` of their sum. This is the only implementation of the formula: Python calls it for a single
    score, and ``batch`` compiles it as a kernel for many. The first logarithm is minus infinity if an order has no
    match, the second if the hypothesis is empty and the reference is not.
    """
    log_penalty = 0.0
    if total[4] < total[8]:
        log_penalty = 1.0 - total[8] / total[4] if total[4] > 0 else -math.inf
    log_precision = 0.0
    for order in range(4):
        if total[order] <= 0:
            return -math.inf, log_penalty
        log_precision += math.log(total[order] / total[4 + order])
    return 0.25 * log_precision, log_penalty


def bleu_of(statistics: Sequence[int] | NDArray[np.integer]) -> BleuScore:
    """Return corpus BLEU of summed sufficient statistics."""
    values = [int(value) for value in statistics]
    matches, totals, reference_length = values[:ORDER], values[ORDER : 2 * ORDER], values[-1]
    length = totals[0]
    log_precision, log_penalty = log_precision_and_penalty(values)
    return BleuScore(
        bleu=100 * math.exp(log_precision + log_penalty),
        precisions=tuple(100 * match / total if total else 0.0 for match, total in zip(matches, totals, strict=True)),
        brevity_penalty=math.exp(log_penalty),
        length_ratio=length / reference_length if reference_length else 0.0,
        hypothesis_length=length,
        reference_length=reference_length,
    )
