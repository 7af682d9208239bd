"""Modified Kneser-Ney smoothing of phrase probabilities (Foster, Kuhn and Johnson 2006; Moses' ``--KneserNey``).

A pair with count c keeps c - D(c); what is taken from the pairs of one given phrase is shared out among them all by how
many different partners the other phrase has: for a target phrase e with the count n(e),

    p(f|e) = (c(f, e) - D(c(f, e))) / n(e) + sum_f' D(c(f', e)) / n(e) * partners(f) / pairs

with D(1), D(2) and D(3 and more) from the numbers of pairs that were seen once, twice, three and four times (Chen and
Goodman 1998). Pairs that not all alignments of a text allow have counts between whole ones; D lies on a line there:
what one of two alignments allows once loses half of D(1).
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple


class Smoothing(NamedTuple):
    """What smoothing needs to know of the whole table.

    alignments: how many alignments of the same text were counted: a pair that all of them allow once has count 1.
    discounts: D for counts 1, 2, 3 and more; for their estimate fractions of a count are rounded up.
    pairs: number of distinct phrase pairs.
    """

    alignments: int
    discounts: tuple[float, float, float]
    pairs: int

    def by_joint(self) -> list[float]:
        """What a pair loses that all alignments together gave 0, 1, ... times; the last entry is that of more, too."""
        known = [0.0, *self.discounts]
        lines = [
            below + (above - below) * part / self.alignments
            for below, above in pairwise(known)
            for part in range(self.alignments)
        ]
        return [*lines, known[-1]]


def discounts(seen: Sequence[int]) -> tuple[float, float, float]:
    """D(1), D(2), D(3+) of Chen and Goodman from the numbers of pairs seen 1, 2, 3 and 4 times.

    Where a table is too small for an estimate, the discount is between 0 and the count, at least.
    """
    one, two = seen[0], seen[1]
    share = one / (one + 2 * two) if one else 0.0
    found = []
    for count in (1, 2, 3):
        ratio = seen[count] / seen[count - 1] if seen[count - 1] else 0.0
        found.append(min(max(count - (count + 1) * share * ratio, 0.0), float(count)))
    return found[0], found[1], found[2]
