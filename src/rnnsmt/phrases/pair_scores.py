"""Scores of phrase pairs: smoothed probabilities, selection of the links, lexical weights, lines of the phrase table.

Modified Kneser-Ney smoothing is that of Foster, Kuhn and Johnson (2006; Moses' ``--KneserNey``). The count c of a pair
is reduced by D(c). The discounted mass of all pairs of one conditioning phrase is distributed over them in proportion
to the number of distinct partners of the other phrase. For a target phrase e with count n(e):

    p(f|e) = (c(f, e) - D(c(f, e))) / n(e) + sum_f' D(c(f', e)) / n(e) * partners(f) / pairs

D(1), D(2) and D(3 or more) are estimated from the numbers of pairs with counts 1, 2, 3 and 4 (Chen and Goodman 1998).
If a text has several alignments, a pair that is not consistent with all of them has a fractional count, for which D is
interpolated linearly: if it occurs once with one of two alignments, its count is 1/2 and D is half of D(1).

The links of a phrase pair are an int64 with bit 8 · target + source, as in ``rnnsmt.phrases.extraction``.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.kernels.decorator import INNER, kernel
from rnnsmt.base.kernels.numbers import NUMBER_BYTES, mix, put_integer, put_number
from rnnsmt.phrases.packing import phrase_bytes, put_phrase, put_separator, unpack


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
            below + (above - below) * step / self.alignments
            for below, above in pairwise(known)
            for step in range(self.alignments)
        ]
        return [*lines, known[-1]]


def discounts(seen: Sequence[int]) -> tuple[float, float, float]:
    """Return D(1), D(2), D(3+) of Chen and Goodman, each limited to 0 .. count.

    Args:
        seen: numbers of pairs with counts 1, 2, 3 and 4.
    """
    n1, n2 = seen[0], seen[1]
    share = n1 / (n1 + 2 * n2) if n1 else 0.0
    limited = []
    for count in (1, 2, 3):
        ratio = seen[count] / seen[count - 1] if seen[count - 1] else 0.0
        limited.append(min(max(count - (count + 1) * share * ratio, 0.0), float(count)))
    return limited[0], limited[1], limited[2]


@kernel()
def transpose_links(bits: Any) -> Any:
    """Return the links with source and target exchanged (Warren, Hacker's Delight, section 7-3)."""
    # transpose the 8 x 8 bits: in blocks of 2 x 2, then the blocks in blocks of 4 x 4, then these; each step exchanges
    # the two blocks off the diagonal. The masks clear the bits that a right shift copies from the sign.
    swap = (bits ^ (bits >> 7)) & np.int64(0x00AA00AA00AA00AA)
    bits ^= swap ^ (swap << 7)
    swap = (bits ^ (bits >> 14)) & np.int64(0x0000CCCC0000CCCC)
    bits ^= swap ^ (swap << 14)
    swap = (bits ^ (bits >> 28)) & np.int64(0x00000000F0F0F0F0)
    return bits ^ swap ^ (swap << 28)


@kernel()
def greater_links(a: int, b: int) -> bool:
    """Return whether alignment a is greater than b in the order in which Moses' scorer breaks ties.

    Alignments are compared as lists, over target positions, of ordered sets of source positions: the first target
    position that differs decides, and there the first element that differs; a set is greater than its own prefix.
    """
    for j in range(8):
        # sets of source positions as bits
        x, y = (a >> (8 * j)) & 255, (b >> (8 * j)) & 255
        if x != y:
            k = 0
            # k: the lowest position that only one set contains. This set is less, because its next element is smaller,
            # unless the other set has no further element and is its prefix.
            while (x >> k) & 1 == (y >> k) & 1:
                k += 1
            if (x >> k) & 1:
                return (y >> (k + 1)) == 0
            return (x >> (k + 1)) != 0
    return False


@kernel()
def choose_links(links: Any, joint: Any, begin: int, end: int) -> Any:
    """Return the most frequent alignment of rows begin..end, as Moses selects it in each direction.

    Ties are resolved separately for both directions: to the greatest alignment as seen from the target, and to the
    greatest one as seen from the source.

    Args:
        links, joint: alignments and their counts, [N].
        begin, end: rows of one pair.

    Returns:
        The alignments for p(target | source) and for p(source | target), both with bit 8 · target + source.
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
        keys: int64 [power of two], given << 32 | word, codes; -1 for a free slot.
        probabilities: float64 [the same].
    """

    keys: Any
    probabilities: Any


def hash_lexicon(
    words: NDArray[np.int64], given: NDArray[np.int64], probabilities: NDArray[np.float64]
) -> LexicalTable:
    """Return a lexical table as a hash table; of repeated entries, the first one is used.

    Args:
        words, given: codes below 2^31, [n].
        probabilities: [n].
    """
    # at most half of the slots are in use, so probing is short
    slots = 1 << (2 * len(words)).bit_length()
    lexicon = LexicalTable(np.full(slots, -1, np.int64), np.zeros(slots))
    _fill(lexicon, given << 32 | words, probabilities)
    return lexicon


@kernel()
def _fill(lexicon: Any, keys: Any, probabilities: Any) -> None:
    """Insert entries into an empty hash table."""
    for n in range(len(keys)):
        slot = _slot(lexicon.keys, keys[n])
        if lexicon.keys[slot] < 0:
            lexicon.keys[slot] = keys[n]
            lexicon.probabilities[slot] = probabilities[n]


@kernel(**INNER)
def _slot(keys: Any, key: int) -> int:
    """Return the slot of a key, or the free slot in which to insert it."""
    mask = keys.shape[0] - 1
    slot = np.int64(mix(np.uint64(key))) & mask
    while keys[slot] != key and keys[slot] >= 0:
        slot = (slot + 1) & mask
    return slot


@kernel(**INNER)
def _look_up(lexicon: Any, word: int, given: int) -> float:
    """Return p(word | given), or -1 if the pair is not in the table; arguments are word codes."""
    slot = _slot(lexicon.keys, given << 32 | word)
    return lexicon.probabilities[slot] if lexicon.keys[slot] >= 0 else -1.0


@kernel()
def lexical_weight(words: Any, n_words: int, given: Any, links: int, null: int, lexicon: Any, missing: Any) -> float:
    """Return the lexical weight lex(words | given, links) (Koehn, Och and Marcu 2003, section 4.4).

    Missing entries count as 1, as in Moses. The weight is rounded to single precision, as in Moses, so its sixth
    digit is the same, unless it would underflow in single precision.

    Args:
        words, given: codes of the two phrases.
        links: bit 8 · position in words + position in given.
        null: code of NULL on the given side.
        lexicon: p(word | given).
        missing: int64 [1], incremented for every missing entry.
    """
    weight = 1.0
    for j in range(n_words):
        total, count = 0.0, 0
        # bit i: whether there is a link to the i-th of the other words
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


class ScoredColumns(NamedTuple):
    """Columns of an extract file that the scores depend on; a row is a pair with one of its links, [N]."""

    links: Any  # links of the row
    joint: Any  # count of the row
    target_total: Any  # count of the row's target phrase
    target_pairs: Any  # number of distinct source phrases of the target phrase
    target_discount: Any  # sum of their discounts


@kernel()
def score_pairs(
    rows: Any,
    columns: Any,
    counting: Any,
    packings: Any,
    nulls: Any,
    lexicons: Any,
    chosen: Any,
    counts: Any,
    scores: Any,
) -> int:
    """Score P distinct pairs of N sorted rows with complete source groups.

    Args:
        rows: the pairs, ``SortedPairs``.
        columns: ``ScoredColumns``.
        counting: (number of alignments of a text, number of pairs of the table, discounts by joint count float64), see
            ``Smoothing``; relative frequencies if all discounts are 0.
        packings: int64 [2, 3], (width, per_key, stop) of source and target.
        nulls: int64 [2], codes of NULL among source and target words.
        lexicons: ``LexicalTable`` of p(f|e) and of p(e|f).
        chosen: int64 [P], filled with the alignment of each pair.
        counts: int64 [P, 3], filled with the counts of e, of f, and of both.
        scores: float64 [P, 4], filled with p(f|e), lex(f|e), p(e|f), lex(e|f).

    Returns:
        The number of look-ups without an entry in the lexical tables.
    """
    pairs, sources, source_keys, target_keys = rows
    links, joint, target_total, target_pairs, target_discount = columns
    source, target = np.empty(8, np.int64), np.empty(8, np.int64)
    missing = np.zeros(1, np.int64)
    alignments, all_pairs, discounts = counting
    smooth = discounts.max() > 0.0
    most = len(discounts) - 1
    pair = 0
    for group in range(sources.shape[0] - 1):
        total = np.int64(0)
        for row in range(sources[group], sources[group + 1]):
            total += joint[row]
        # first pass over the pairs of the source phrase: number of partners and sum of discounts
        source_pairs, source_discount = 0, 0.0
        while smooth and pair + source_pairs < pairs.shape[0] - 1 and pairs[pair + source_pairs] < sources[group + 1]:
            both = joint[pairs[pair + source_pairs] : pairs[pair + source_pairs + 1]].sum()
            source_discount += discounts[min(both, most)]
            source_pairs += 1
        n_source = unpack(source_keys, sources[group], packings[0, 0], packings[0, 1], packings[0, 2], source)
        while pair < pairs.shape[0] - 1 and pairs[pair] < sources[group + 1]:
            begin, end = pairs[pair], pairs[pair + 1]
            both = np.int64(0)
            for row in range(begin, end):
                both += joint[row]
            n_target = unpack(target_keys, begin, packings[1, 0], packings[1, 1], packings[1, 2], target)
            best, best_inverse = choose_links(links, joint, begin, end)
            chosen[pair] = best
            counts[pair, 0], counts[pair, 1], counts[pair, 2] = target_total[begin], total, both
            # single precision, as in Moses, so the sixth digit is the same
            scores[pair, 0] = np.float32(both) / np.float32(target_total[begin])
            scores[pair, 1] = lexical_weight(
                source, n_source, target, transpose_links(best_inverse), nulls[1], lexicons[0], missing
            )
            scores[pair, 2] = np.float32(both) / np.float32(total)
            scores[pair, 3] = lexical_weight(target, n_target, source, best, nulls[0], lexicons[1], missing)
            if smooth:
                # counts per alignment: target_total / alignments is n(e) of the formula at the top
                discounted = both / alignments - discounts[min(both, most)]
                shared = target_discount[begin] * source_pairs / all_pairs
                scores[pair, 0] = (discounted + shared) * alignments / target_total[begin]
                shared = source_discount * target_pairs[begin] / all_pairs
                scores[pair, 2] = (discounted + shared) * alignments / total
            pair += 1
    return missing[0]


@kernel()
def write_phrase_lines(
    start: int, rows: Any, packings: Any, texts: Any, chosen: Any, counts: Any, scores: Any, buffer: Any
) -> Any:
    """Write the lines of the pairs from ``start`` into ``buffer``.

    Args:
        start: first pair.
        rows, packings, chosen, counts, scores: as in ``score_pairs``.
        texts: (text, offsets) of source and of target words, as in ``put_phrase``.
        buffer: uint8, filled.

    Returns:
        The first pair that was not written, and the number of bytes written.
    """
    pairs, _, source_keys, target_keys = rows
    codes = np.empty((2, 8), np.int64)
    (source_text, source_offsets), (target_text, target_offsets) = texts
    at = 0
    for pair in range(start, pairs.shape[0] - 1):
        row = pairs[pair]
        n_source = unpack(source_keys, row, packings[0, 0], packings[0, 1], packings[0, 2], codes[0])
        n_target = unpack(target_keys, row, packings[1, 0], packings[1, 1], packings[1, 2], codes[1])
        most = phrase_bytes(codes[0], n_source, source_offsets) + phrase_bytes(codes[1], n_target, target_offsets)
        # upper bound of the line: words, 64 links of 4 bytes, 4 scores, and less than 100 bytes of counts and
        # separators
        if at + most + 4 * 64 + 4 * NUMBER_BYTES + 100 > buffer.shape[0]:
            return pair, at
        at = put_phrase(buffer, at, codes[0], n_source, source_text, source_offsets)
        at = put_separator(buffer, at)
        at = put_phrase(buffer, at, codes[1], n_target, target_text, target_offsets)
        at = put_separator(buffer, at)
        for n in range(4):
            if n:
                buffer[at] = 32
                at += 1
            at = put_number(buffer, at, scores[pair, n])
        at = put_separator(buffer, at)
        first = True
        for j in range(n_target):
            for i in range(n_source):
                if (chosen[pair] >> (8 * j + i)) & 1:
                    if not first:
                        buffer[at] = 32
                        at += 1
                    first = False
                    # single digits: positions are below 8
                    buffer[at] = 48 + i
                    buffer[at + 1] = 45
                    buffer[at + 2] = 48 + j
                    at += 3
        at = put_separator(buffer, at)
        for n in range(3):
            if n:
                buffer[at] = 32
                at += 1
            at = put_integer(buffer, at, counts[pair, n])
        at = put_separator(buffer, at)
        # Moses' last field is empty
        for _ in range(3):
            buffer[at] = 124
            at += 1
        buffer[at] = 10
        at += 1
    return pairs.shape[0] - 1, at
