"""Modified Kneser-Ney smoothing of phrase probabilities (Foster, Kuhn and Johnson 2006; Moses' ``--KneserNey``).

The count c of a pair is reduced by D(c). The discounted mass of all pairs of one conditioning phrase is distributed
over them in proportion to the number of distinct partners of the other phrase. For a target phrase e with count n(e):

    p(f|e) = (c(f, e) - D(c(f, e))) / n(e) + sum_f' D(c(f', e)) / n(e) * partners(f) / pairs

D(1), D(2) and D(3 or more) are estimated from the numbers of pairs with counts 1, 2, 3 and 4 (Chen and Goodman 1998).
If a text has several alignments, pairs that not all of them allow have fractional counts, for which D is interpolated
linearly: a pair that one of two alignments allows once loses half of D(1).
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple


class Smoothing(NamedTuple):
    """Smoothing parameters of a table.

    Attributes:
        alignments: number of alignments of the same text; a pair that all of them allow once has count 1.
        discounts: D for counts 1, 2, 3 or more; fractional counts are rounded up for their estimation.
        pairs: number of distinct phrase pairs.
    """

    alignments: int
    discounts: tuple[float, float, float]
    pairs: int

    def by_joint(self) -> list[float]:
        """Return the discounts of pairs that occur 0, 1, ... times in all alignments together.

        Larger counts have the last discount.
        """
        known = [0.0, *self.discounts]
        lines = [
            below + (above - below) * part / self.alignments
            for below, above in pairwise(known)
            for part in range(self.alignments)
        ]
        return [*lines, known[-1]]


def discounts(seen: Sequence[int]) -> tuple[float, float, float]:
    """Return D(1), D(2), D(3+) of Chen and Goodman, each limited to 0 .. count.

    Args:
        seen: numbers of pairs with counts 1, 2, 3 and 4.
    """
    one, two = seen[0], seen[1]
    share = one / (one + 2 * two) if one else 0.0
    found = []
    for count in (1, 2, 3):
        ratio = seen[count] / seen[count - 1] if seen[count - 1] else 0.0
        found.append(min(max(count - (count + 1) * share * ratio, 0.0), float(count)))
    return found[0], found[1], found[2]
