"""Word pairs that co-occur in at least one sentence pair, as compressed sparse rows, and their probabilities.

The aligners store one parameter for each word pair, so that memory is proportional to the number of distinct pairs, and
neither to the product of the vocabulary sizes nor to the length of the corpus.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rnnsmt.align import MAX_PAIRS
from rnnsmt.align.bitext import BitextSide
from rnnsmt.base.kernels.decorator import kernel
from rnnsmt.base.kernels.numbers import ONE, lower_bound
from rnnsmt.base.parallel import in_threads
from rnnsmt.base.progress import say

FLOOR = 1e-7
"""Minimum probability in ``relative_frequencies``."""

WEAKEST = 255
"""Maximum value of ``weakness``."""

_RANGES = 64
"""Number of ranges of given words that are distributed over threads; all have about the same number of occurrences."""


class Lexicon(NamedTuple):
    """Word pairs as compressed sparse rows.

    Row ``e`` is ``words[starts[e]:starts[e + 1]]``: the generated words that co-occur with the given word ``e``, in
    ascending order. The index of a pair in ``words`` is its lexicon index.
    """

    starts: npt.NDArray[np.int64]  # [given vocabulary + 1]
    words: npt.NDArray[np.int32]  # [pairs]


class Occurrences(NamedTuple):
    """Arrays used to find the generated-side words that co-occur with each word of the given side."""

    sentence_starts: npt.NDArray[np.int64]  # [given vocabulary + 1], begin of the list of each given word in sentences
    sentences: npt.NDArray[np.int32]  # [given words of the corpus], sentences that contain each given word, ascending
    ids: npt.NDArray[np.int32]  # the generated side, as in ``BitextSide``
    offsets: npt.NDArray[np.int64]
    given_frequencies: npt.NDArray[np.int32]  # [given vocabulary], number of sentences that contain each word
    generated_frequencies: npt.NDArray[np.int32]  # [generated vocabulary]


def build_lexicon(given: BitextSide, generated: BitextSide, threads: int = 1, max_pairs: int = MAX_PAIRS) -> Lexicon:
    """Collect the pairs of a given word e and a generated word f that co-occur in a sentence pair.

    The time is linear in the sum of I · J over all sentence pairs. If there are more than ``max_pairs`` pairs, those
    with the weakest association are discarded. The association is n(e, f)^2 / (n(e) n(f)), where n is the number of
    sentence pairs that contain the word or both words. It is quantised by ``weakness``; all pairs with the same
    ``weakness`` are either kept or discarded.
    """
    # sentences that contain each given word, also as compressed sparse rows, with an entry for each occurrence
    frequency = np.bincount(given.ids, minlength=len(given.vocabulary))
    sentence_starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(frequency)])
    sentences = np.empty(len(given.ids), np.int32)
    sentences_of_words(given.ids, given.offsets, sentence_starts, sentences)
    frequencies = [np.zeros(len(side.vocabulary), np.int32) for side in (given, generated)]
    for side, numbers in zip((given, generated), frequencies, strict=True):
        sentence_frequencies(side.ids, side.offsets, numbers)
    occurrences = Occurrences(sentence_starts, sentences, generated.ids, generated.offsets, *frequencies)
    bounds = np.searchsorted(sentence_starts, np.linspace(0, len(given.ids), _RANGES + 1)).tolist()
    ranges = [(first, end) for first, end in pairwise(bounds) if first < end]
    sizes = np.zeros(len(given.vocabulary) + 1, np.int64)

    def count(weakest: int) -> npt.NDArray[np.int64]:
        """Set ``sizes[e + 1]`` to the number of pairs of e to keep; return the number of pairs by ``weakness``."""
        nothing = np.zeros(0, np.int32)

        def count_range(word_range: tuple[int, int]) -> npt.NDArray[np.int64]:
            strengths = np.zeros(WEAKEST + 1, np.int64)
            partners_of_words(*word_range, occurrences, weakest, sizes, nothing, strengths)
            return strengths

        return sum(in_threads(count_range, ranges, threads), np.zeros(WEAKEST + 1, np.int64))

    strengths, weakest = count(WEAKEST), WEAKEST
    if strengths.sum() > max_pairs:
        # the highest ``weakness`` for which at most max_pairs pairs are kept
        weakest = int(np.searchsorted(np.cumsum(strengths), max_pairs, side="right")) - 1
        count(weakest)
        say(
            f"{strengths.sum():,} word pairs co-occur; the {sizes.sum():,} pairs with the strongest association are "
            "kept"
        )
    starts = np.cumsum(sizes)
    words = np.empty(starts[-1], np.int32)

    def fill(word_range: tuple[int, int]) -> None:
        partners_of_words(*word_range, occurrences, weakest, starts, words, strengths)

    for _ in in_threads(fill, ranges, threads):
        pass
    return Lexicon(starts, words)


@kernel()
def sentences_of_words(ids, offsets, starts, sentences):
    """List the sentences that contain each word, in ascending order; a sentence is listed once per occurrence.

    Args:
        ids, offsets: a side of the corpus, as in ``BitextSide``.
        starts: int64 [vocabulary + 1], begin of the list of each word in ``sentences``.
        sentences: int32 [words of the corpus], filled.
    """
    free = starts[:-1].copy()
    for s in range(len(offsets) - 1):
        for p in range(offsets[s], offsets[s + 1]):
            sentences[free[ids[p]]] = s
            free[ids[p]] += 1


@kernel()
def sentence_frequencies(ids, offsets, frequencies):
    """Fill ``frequencies`` int32 [vocabulary] with the number of sentences that contain each word."""
    last = np.full(len(frequencies), -1, np.int64)
    for s in range(len(offsets) - 1):
        for p in range(offsets[s], offsets[s + 1]):
            if last[ids[p]] != s:
                last[ids[p]] = s
                frequencies[ids[p]] += 1


@kernel()
def weakness(together, count_e, count_f):
    """Return 4 log2(n(e) n(f) / n(e, f)^2), truncated to an integer 0 .. ``WEAKEST``; large for a weak association.

    Args:
        together: n(e, f), number of sentence pairs that contain both words.
        count_e, count_f: n(e) and n(f), number of sentences that contain each word.
    """
    return min(np.int64(4.0 * np.log2(np.float64(count_e) * count_f / (np.float64(together) * together))), WEAKEST)


@kernel()
def partners_of_words(first, end, occurrences, weakest, sizes, words, strengths):
    """Find the partners of the given words ``first`` .. ``end`` - 1: the distinct generated words that co-occur.

    Pairs with a ``weakness`` above ``weakest`` are discarded. The kernel is called twice: with empty ``words`` it
    counts the partners, with allocated ``words`` it writes them.

    Args:
        first, end: range of given words.
        occurrences: ``Occurrences``.
        weakest: maximum ``weakness`` of pairs that are kept.
        sizes: int64 [given vocabulary + 1]. When counting, ``sizes[e + 1]`` is set to the number of partners of e that
            are kept. When writing, ``sizes`` contains the begin of each row in ``words``.
        words: int32 [pairs], empty when counting. When writing, row e is filled with the partners that are kept, in
            ascending order.
        strengths: int64 [WEAKEST + 1]. When counting, the number of pairs of each ``weakness`` is added.
    """
    sentence_starts, sentences, ids, offsets, given_frequencies, generated_frequencies = occurrences
    # sparse set of the partners of e: row[f] == e if f is a partner, so that nothing is cleared between given words;
    # together[f]: number of common sentences; last[f]: the last common sentence, so that a sentence with several
    # occurrences of e or f counts once
    row = np.full(len(generated_frequencies), -1, np.int32)
    together, last = np.empty(len(row), np.int32), np.empty(len(row), np.int32)
    listed = np.empty(len(row), np.int32)
    for e in range(first, end):
        partners = 0
        for k in range(sentence_starts[e], sentence_starts[e + 1]):
            s = sentences[k]
            for p in range(offsets[s], offsets[s + 1]):
                f = ids[p]
                if row[f] != e:
                    row[f], together[f], last[f] = e, 1, s
                    listed[partners] = f
                    partners += 1
                elif last[f] != s:
                    together[f] += 1
                    last[f] = s
        if len(words) == 0:
            size = 0
            for k in range(partners):
                f = listed[k]
                step = weakness(together[f], given_frequencies[e], generated_frequencies[f])
                strengths[step] += 1
                size += step <= weakest
            sizes[e + 1] = size
            continue
        at = sizes[e]
        for k in range(partners):
            f = listed[k]
            if weakest < WEAKEST and weakness(together[f], given_frequencies[e], generated_frequencies[f]) > weakest:
                continue
            words[at] = f
            at += 1
        words[sizes[e] : at].sort()


@kernel()
def find(starts, words, e, f):
    """Return the index of the pair (e, f) in the lexicon, or ``len(words)`` if the lexicon does not contain it."""
    end = starts[e + 1]
    entry = lower_bound(words, starts[e], end, f)
    return entry if entry < end and words[entry] == f else len(words)


class Places(NamedTuple):
    """Arrays in which ``look_up`` finds the lexicon indices of word pairs: either ``cells`` or bitmaps.

    The bitmap of a given word consists of 64-bit elements with a bit for every generated word. A bit is set if the
    lexicon contains the pair.
    """

    cells: npt.NDArray[np.int32]  # lexicon indices of all word pairs of the corpus, as in ``corpus_cells``, or empty
    bitmaps: npt.NDArray[
        np.int64
    ]  # [given vocabulary], begin of the bitmap of each word in ``bits``; -1 if it has none
    bits: npt.NDArray[np.uint64]  # the bitmaps
    before: npt.NDArray[np.int64]  # for each element of ``bits``, number of pairs in the lexicon before its first bit


def places_of_cells(cells: npt.NDArray[np.int32], given: BitextSide) -> Places:
    """Return ``Places`` with cells and without bitmaps."""
    return Places(cells, np.full(len(given.vocabulary), -1, np.int64), np.zeros(0, np.uint64), np.zeros(0, np.int64))


def build_bitmaps(lexicon: Lexicon, given: BitextSide, generated: BitextSide, size: int) -> Places:
    """Return ``Places`` without cells and with bitmaps of the most frequent given words.

    Args:
        size: maximum size of ``bits`` and ``before`` in bytes.
    """
    width = -(-len(generated.vocabulary) // 64)
    number = min(size // (16 * max(width, 1)), len(given.vocabulary))
    order = np.argsort(-np.bincount(given.ids, minlength=len(given.vocabulary)), kind="stable")[:number]
    bitmaps = np.full(len(given.vocabulary), -1, np.int64)
    bitmaps[order] = np.arange(number) * width
    bits, before = np.zeros(number * width, np.uint64), np.zeros(number * width, np.int64)
    fill_bitmaps(order, *lexicon, bitmaps, width, bits, before)
    return Places(np.zeros(0, np.int32), bitmaps, bits, before)


@kernel()
def count_bits(x):
    """Return the number of set bits of a ``uint64``."""
    x -= (x >> np.uint64(1)) & np.uint64(0x5555555555555555)
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56))


@kernel()
def fill_bitmaps(order, starts, words, bitmaps, width, bits, before):
    """Fill the bitmaps of given words.

    Args:
        order: the given words.
        starts, words: the lexicon.
        bitmaps: as in ``Places``.
        width: number of elements of a bitmap.
        bits, before: as in ``Places``, filled; ``bits`` must contain zeros.
    """
    for e in order:
        first = bitmaps[e]
        for k in range(starts[e], starts[e + 1]):
            bits[first + (words[k] >> 6)] |= np.uint64(1) << np.uint64(words[k] & 63)
        entry = starts[e]
        for part in range(first, first + width):
            before[part] = entry
            entry += count_bits(bits[part])


@kernel()
def look_up(starts, words, places, at, given, f, entries):
    """Look up the lexicon indices of the pairs of each given word of a sentence and a generated word f.

    Args:
        starts, words: the lexicon.
        places: ``Places``. Without cells, pairs of given words without a bitmap are looked up by binary search.
        at: number of word pairs of the corpus before these pairs.
        given: ids of the given words, [I].
        f: id of the generated word.
        entries: int64 [I], filled with the lexicon indices; ``len(words)`` for pairs that are not in the lexicon.
    """
    cells, bitmaps, bits, before = places
    if len(cells) > 0:
        for i in range(len(given)):
            entries[i] = cells[at + i]
        return
    bit = np.uint64(1) << np.uint64(f & 63)
    for i in range(len(given)):
        if bitmaps[given[i]] < 0:
            entries[i] = find(starts, words, given[i], f)
            continue
        part = bitmaps[given[i]] + (f >> 6)
        if bits[part] & bit:
            entries[i] = before[part] + count_bits(bits[part] & (bit - np.uint64(1)))
        else:
            entries[i] = len(words)


@kernel()
def corpus_cells(
    first, end, at, starts, words, given_ids, given_offsets, generated_ids, generated_offsets, cells
):  # fmt: skip
    """Fill ``cells`` with the lexicon indices of all word pairs of a block of sentence pairs.

    The pairs are ordered by sentence, then generated position, then given position.

    Args:
        first, end, at: as in ``Direction.over_blocks``.
        starts, words: the lexicon.
        given_ids, given_offsets, generated_ids, generated_offsets: both sides of the text.
        cells: int32 [word pairs of the corpus].
    """
    for s in range(first, end):
        for p in range(generated_offsets[s], generated_offsets[s + 1]):
            for k in range(given_offsets[s], given_offsets[s + 1]):
                cells[at] = find(starts, words, given_ids[k], generated_ids[p])
                at += 1


@kernel()
def relative_frequencies(starts, counts, t):
    """Set every row of t to relative frequencies, at least ``FLOOR``, or to a uniform distribution without counts.

    Args:
        starts: [rows + 1], begin of each row.
        counts: [pairs], in any unit.
        t: [pairs or more], filled; row e is p(f | e).
    """
    for e in range(len(starts) - 1):
        total = 0.0
        for k in range(starts[e], starts[e + 1]):
            total += counts[k]
        for k in range(starts[e], starts[e + 1]):
            t[k] = max(counts[k] / total, FLOOR) if total > 0.0 else 1.0 / (starts[e + 1] - starts[e])


@kernel()
def normalise(starts, counts, alpha, t):
    """Set every row of t by the mean-field update for a symmetric Dirichlet prior over the words of the row.

    Rows without pairs are skipped; values are at least 1e-12.

    Args:
        starts: [rows + 1], begin of each row.
        counts: int64 [pairs], in fixed point (``rnnsmt.base.kernels.numbers``).
        alpha: parameter of the prior.
        t: [pairs or more], filled; row e is p(f | e).
    """
    for e in range(len(starts) - 1):
        total = 0.0
        for k in range(starts[e], starts[e + 1]):
            total += counts[k] / ONE + alpha
        if total > 0.0:
            log_total = digamma(total)
            for k in range(starts[e], starts[e + 1]):
                t[k] = max(np.exp(digamma(counts[k] / ONE + alpha) - log_total), 1e-12)


@kernel()
def digamma(x):
    """Return the logarithmic derivative of the gamma function for x > 0, accurate to about 1e-10."""
    result = 0.0
    # recurrence below 6, asymptotic series from 6 on
    while x < 6.0:
        result -= 1.0 / x
        x += 1.0
    y = 1.0 / (x * x)
    series = y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y * (1 / 132)))))
    return result + np.log(x) - 0.5 / x - series
