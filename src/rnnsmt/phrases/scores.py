"""Computation of the scores of phrase pairs, p(f|e), lex(f|e), p(e|f) and lex(e|f), from counts.

f is a source phrase and e a target phrase. *Relative frequencies* are p(f|e) = c(f, e) / n(e), with the count c of the
pair and the count n of the conditioning phrase.

*Modified Kneser-Ney smoothing* follows Foster, Kuhn and Johnson (2006; ``--KneserNey`` in Moses). The count c of a pair
is reduced by the discount D(c). The sum of the discounts of all pairs with the same conditioning phrase is distributed
over these pairs in proportion to the number of distinct phrases that are paired with the other phrase:

    p(f|e) = (c(f, e) - D(c(f, e))) / n(e) + sum_f' D(c(f', e)) / n(e) * partners(f) / pairs

where partners(f) is the number of distinct target phrases paired with f, and pairs the number of distinct phrase pairs;
p(e|f) is computed in the same way.

D(1), D(2) and D(3 or more) are estimated from the numbers of pairs with counts 1, 2, 3 and 4 (Chen and Goodman 1998).
If a text has several alignments, a pair that is not consistent with all of them has a fractional count, for which D is
interpolated linearly: if a pair occurs once with one of two alignments, its count is 1/2 and its discount D(1) / 2.

*Lexical weights* (Koehn, Och and Marcu 2003, section 4.4) are computed with the most frequent links of a pair.

``count_targets`` computes the statistics of target phrases when phrases are extracted. The pairs of a source phrase are
consecutive in the extract file, so that ``score_pairs`` can compute the statistics of source phrases, and the scores.

The links of a phrase pair are stored as an int64 bit mask: bit 8·t + s is set if target word t is linked to source word
s.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.kernels.decorator import INNER, kernel
from rnnsmt.base.kernels.probing import find_slot
from rnnsmt.phrases.packing import SortedPairs, unpack

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class Smoothing(NamedTuple):
    """Smoothing parameters of a table.

    Attributes:
        alignments: number of alignments of each text; a pair that is extracted once with each alignment has count 1.
        discounts: D for counts 1, 2, and 3 or more; to estimate D, fractional counts are rounded up.
        pairs: number of distinct phrase pairs.
    """

    alignments: int
    discounts: tuple[float, float, float]
    pairs: int

    def by_joint(self) -> list[float]:
        """Return the discount of a pair by its total number of occurrences with all alignments: 0, 1, 2, ...

        The last discount applies to all larger numbers.
        """
        known = [0.0, *self.discounts]
        lines = [
            below + (above - below) * step / self.alignments
            for below, above in pairwise(known)
            for step in range(self.alignments)
        ]
        return [*lines, known[-1]]


def _discounts(seen: Sequence[int]) -> tuple[float, float, float]:
    """Return D(1), D(2) and D(3 or more) (Chen and Goodman 1998); D(c) is limited to the range 0 .. c.

    Args:
        seen: number of pairs with count 1, 2, 3 and 4.
    """
    n1, n2 = seen[0], seen[1]
    share = n1 / (n1 + 2 * n2) if n1 else 0.0
    limited = []
    for count in (1, 2, 3):
        ratio = seen[count] / seen[count - 1] if seen[count - 1] else 0.0
        limited.append(min(max(count - (count + 1) * share * ratio, 0.0), float(count)))
    return limited[0], limited[1], limited[2]


def count_targets(connection: "DuckDBPyConnection", keys: str, target_keys: str, alignments: int) -> Smoothing:
    """Create the table ``targets`` from the table ``counted``; return the smoothing parameters.

    A row of ``targets`` describes a target phrase: ``target_total`` is its count, ``target_pairs`` the number of
    distinct source phrases paired with it, and ``target_discount`` the sum of the discounts of these pairs.

    Args:
        connection: database with the table ``counted``, see ``write_extract``.
        keys: names of the key columns of phrase pairs, in SQL.
        target_keys: names of the key columns of target phrases, in SQL.
        alignments: number of alignments of each text.
    """
    connection.execute(
        f"CREATE TABLE pairs AS SELECT {target_keys}, sum(joint)::BIGINT AS joint FROM counted GROUP BY {keys}"
    )
    # fractional counts are rounded up
    found = connection.execute(
        f"SELECT (joint + {alignments - 1}) // {alignments} AS times, count(*) FROM pairs GROUP BY times"
    ).fetchall()
    number = dict(found)
    smoothing = Smoothing(alignments, _discounts([number.get(n, 0) for n in range(1, 5)]), sum(number.values()))
    # The sum of discounts is computed from the number of pairs with each count. Unlike for a sum over pairs, the result
    # does not depend on the order in which threads add. A literal with an exponent is a DOUBLE.
    *counts, last = [f"count(*) FILTER (WHERE joint = {n}) * {d:.17e}" for n, d in enumerate(smoothing.by_joint())]
    lost = " + ".join([*counts[1:], last.replace("=", ">=")])
    connection.execute(
        f"CREATE TABLE targets AS SELECT {target_keys}, sum(joint)::BIGINT AS target_total, "
        f"count(*)::INTEGER AS target_pairs, {lost} AS target_discount FROM pairs GROUP BY {target_keys}"
    )
    connection.execute("DROP TABLE pairs")
    return smoothing


SCORED_COLUMNS = ["links", "joint", "target_total", "target_pairs", "target_discount"]
"""Columns of an extract file that ``score_pairs`` uses: links and count of the row, and statistics of the target
phrase (see ``count_targets``)."""


class PairScores(NamedTuple):
    """Links, counts and scores of P phrase pairs."""

    links: Any  # int64 [P], the most frequent links, as a bit mask
    counts: Any  # int64 [P, 3], counts of e, of f, and of the pair
    scores: Any  # float64 [P, 4], p(f|e), lex(f|e), p(e|f), lex(e|f)


def score_pairs(
    rows: SortedPairs, columns: dict[str, NDArray[Any]], smoothing: Smoothing | None, lexical: tuple[Any, Any, Any]
) -> tuple[PairScores, int]:
    """Score the P distinct pairs in N rows of an extract file.

    Args:
        rows: the phrase pairs of the rows.
        columns: ``SCORED_COLUMNS``, each [N]; a row is a pair with one of its alignments.
        smoothing: smoothing parameters; None for relative frequencies.
        lexical: arguments ``sides``, ``nulls`` and ``lexicons`` of ``lexical_weights``.

    Returns:
        The scores, and the number of look-ups without an entry in the lexical tables.
    """
    first = rows.pairs[:-1]
    joint = columns["joint"].astype(np.int64)
    pairs_of_source = np.diff(np.searchsorted(rows.pairs, rows.sources))
    source_of = np.repeat(np.arange(len(pairs_of_source)), pairs_of_source)
    both = np.add.reduceat(joint, first)
    source_total = np.add.reduceat(joint, rows.sources[:-1])[source_of]
    target_total = columns["target_total"][first]
    scores = np.empty((len(first), 4))
    if smoothing is None:
        # single precision, as in Moses, so that the sixth digit is the same
        scores[:, 0] = both.astype(np.float32) / target_total.astype(np.float32)
        scores[:, 2] = both.astype(np.float32) / source_total.astype(np.float32)
    else:
        alignments, by_joint = smoothing.alignments, np.array(smoothing.by_joint())
        lost = by_joint[np.minimum(both, len(by_joint) - 1)]
        left = both / alignments - lost
        # sum of the discounts of the conditioning phrase; the pair gets the fraction partners / pairs
        target_mass, source_mass = columns["target_discount"][first], np.bincount(source_of, lost)[source_of]
        source_partners, target_partners = pairs_of_source[source_of], columns["target_pairs"][first]
        scores[:, 0] = (left + target_mass * source_partners / smoothing.pairs) * alignments / target_total
        scores[:, 2] = (left + source_mass * target_partners / smoothing.pairs) * alignments / source_total
    links = np.empty(len(first), np.int64)
    missing = lexical_weights(rows, columns["links"], joint, *lexical, links, scores)
    return PairScores(links, np.stack((target_total, source_total, both), 1), scores), missing


@kernel()
def transpose_links(bits: Any) -> Any:
    """Return the bit mask of links with source and target exchanged (Warren, Hacker's Delight, section 7-3)."""
    # transpose the 8 x 8 bits in three steps: inside blocks of 2 x 2 bits, then 2 x 2 blocks inside blocks of 4 x 4
    # bits, then the 4 x 4 blocks; each step exchanges the two blocks off the diagonal. The masks clear the bits that a
    # right shift copies from the sign.
    swap = (bits ^ (bits >> 7)) & np.int64(0x00AA00AA00AA00AA)
    bits ^= swap ^ (swap << 7)
    swap = (bits ^ (bits >> 14)) & np.int64(0x0000CCCC0000CCCC)
    bits ^= swap ^ (swap << 14)
    swap = (bits ^ (bits >> 28)) & np.int64(0x00000000F0F0F0F0)
    return bits ^ swap ^ (swap << 28)


@kernel()
def greater_links(a: int, b: int) -> bool:
    """Return whether alignment a is greater than alignment b, in the order by which the scorer of Moses breaks ties.

    An alignment is compared as a list that contains the sorted source positions of each target position. Lists are
    compared lexicographically, and so are the sorted source positions; a sequence is greater than its own prefix.
    """
    for j in range(8):
        # sets of source positions as bits
        x, y = (a >> (8 * j)) & 255, (b >> (8 * j)) & 255
        if x != y:
            k = 0
            # k: the lowest position that only one set contains. The set with k is less, because its next element is
            # smaller, unless the other set has no further elements and is therefore a prefix.
            while (x >> k) & 1 == (y >> k) & 1:
                k += 1
            if (x >> k) & 1:
                return (y >> (k + 1)) == 0
            return (x >> (k + 1)) != 0
    return False


@kernel()
def choose_links(links: Any, joint: Any, begin: int, end: int) -> Any:
    """Return the most frequent alignments of a phrase pair, as selected by Moses for each direction.

    If several alignments are most frequent, the greatest one (``greater_links``) is selected. For p(source | target),
    the transposed alignments are compared.

    Args:
        links, joint: [N], alignments (bit masks) and their counts.
        begin, end: range of the rows of the phrase pair, ``begin`` to ``end - 1``.

    Returns:
        The alignment for p(target | source) and the alignment for p(source | target), as bit masks.
    """
    best, best_inverse, count = links[begin], links[begin], joint[begin]
    for row in range(begin + 1, end):
        if joint[row] > count:
            best, best_inverse, count = links[row], links[row], joint[row]
        elif joint[row] == count:
            if greater_links(links[row], best):
                best = links[row]
            if greater_links(transpose_links(links[row]), transpose_links(best_inverse)):
                best_inverse = links[row]
    return best, best_inverse


class LexicalTable(NamedTuple):
    """A lexical table p(word | given) as a hash table with linear probing.

    Attributes:
        keys: int64 [slots], word codes packed as given << 32 | word; -1 for a free slot. The number of slots is a power
            of two.
        probabilities: float64 [slots].
    """

    keys: Any
    probabilities: Any


def hash_lexicon(
    words: NDArray[np.int64], given: NDArray[np.int64], probabilities: NDArray[np.float64]
) -> LexicalTable:
    """Return a lexical table as a hash table; if an entry is repeated, the first one is used.

    Args:
        words, given: [n], word codes below 2^31.
        probabilities: [n], p(word | given).
    """
    # at most half of the slots are in use, so that probing is short
    slots = 1 << (2 * len(words)).bit_length()
    lexicon = LexicalTable(np.full(slots, -1, np.int64), np.zeros(slots))
    _fill(lexicon, given << 32 | words, probabilities)
    return lexicon


@kernel()
def _fill(lexicon: Any, keys: Any, probabilities: Any) -> None:
    """Insert entries into an empty hash table."""
    for n in range(len(keys)):
        slot = find_slot(lexicon.keys, keys[n], -1)
        if lexicon.keys[slot] < 0:
            lexicon.keys[slot] = keys[n]
            lexicon.probabilities[slot] = probabilities[n]


@kernel(**INNER)
def _look_up(lexicon: Any, word: int, given: int) -> float:
    """Return p(word | given), or -1 if the pair is not in the table; arguments are word codes."""
    slot = find_slot(lexicon.keys, given << 32 | word, -1)
    return lexicon.probabilities[slot] if lexicon.keys[slot] >= 0 else -1.0


@kernel()
def lexical_weight(words: Any, n_words: int, given: Any, links: int, null: int, lexicon: Any, missing: Any) -> float:
    """Return the lexical weight lex(words | given, links) (Koehn, Och and Marcu 2003, section 4.4).

    As in Moses, the probability of a missing entry is 1, and the weight is rounded to single precision, so that the
    sixth digit is the same. Weights that would underflow in single precision are not rounded.

    Args:
        words, given: word codes of the two phrases.
        n_words: number of elements of ``words`` that are used.
        links: bit mask; bit 8·j + i is set if element j of ``words`` is linked to element i of ``given``.
        null: code of NULL on the given side.
        lexicon: ``LexicalTable`` of p(word | given).
        missing: int64 [1], incremented for every missing entry.
    """
    weight = 1.0
    for j in range(n_words):
        total, count = 0.0, 0
        # bit i is set if word j is linked to element i of ``given``
        linked = (links >> (8 * j)) & 255
        i = 0
        while linked:
            if linked & 1:
                probability = _look_up(lexicon, words[j], given[i])
                if probability < 0.0:
                    probability = 1.0
                    missing[0] += 1
                total += probability
                count += 1
            linked >>= 1
            i += 1
        if count == 0:
            total = _look_up(lexicon, words[j], null)
            if total < 0.0:
                total = 1.0
                missing[0] += 1
            count = 1
        weight *= total / count
    if weight < 1e-37:
        return weight
    return np.float64(np.float32(weight))


@kernel()
def lexical_weights(
    rows: Any, links: Any, joint: Any, sides: Any, nulls: Any, lexicons: Any, chosen: Any, scores: Any
) -> int:
    """Choose the links of P pairs and compute their lexical weights.

    Args:
        rows: the pairs, ``SortedPairs``.
        links, joint: [N], links and counts of the rows.
        sides: ``Side`` of source and target.
        nulls: code of NULL on the source side and on the target side.
        lexicons: ``LexicalTable`` of p(f|e) and of p(e|f).
        chosen: int64 [P], filled with the links of each pair.
        scores: float64 [P, 4]; column 1 is filled with lex(f|e), column 3 with lex(e|f).

    Returns:
        The number of look-ups without an entry in the lexical tables.
    """
    pairs, _, source_keys, target_keys = rows
    source, target = np.empty(8, np.int64), np.empty(8, np.int64)
    missing = np.zeros(1, np.int64)
    for pair in range(pairs.shape[0] - 1):
        begin = pairs[pair]
        n_source = unpack(source_keys, begin, sides[0], source)
        n_target = unpack(target_keys, begin, sides[1], target)
        best, best_inverse = choose_links(links, joint, begin, pairs[pair + 1])
        chosen[pair] = best
        scores[pair, 1] = lexical_weight(
            source, n_source, target, transpose_links(best_inverse), nulls[1], lexicons[0], missing
        )
        scores[pair, 3] = lexical_weight(target, n_target, source, best, nulls[0], lexicons[1], missing)
    return missing[0]
