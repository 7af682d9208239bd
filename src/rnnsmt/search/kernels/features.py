"""Features of a derivation, computed from its phrases by the definition of the features, and future costs.

Conventions of Moses: distortion is -abs(start - (end of the previous phrase + 1)), with no term at the end of the
sentence. Backward reordering scores depend on the orientation of a phrase with respect to the previous one (or to the
start of the sentence), forward scores on the orientation of the following phrase with respect to this one; the last
phrase has no forward score. The LM scores ``</s>``.

The future cost is an optimistic estimate of the score of the uncovered words (Koehn 2010, section 6.2.4). As in Moses,
the estimate of a span is the maximum, over its segmentations, of the sum of phrase estimates. A phrase estimate
includes the LM score of the phrase in the empty context, but no reordering scores.
"""

from typing import NamedTuple

import numpy as np

from rnnsmt.base.kernels.decorator import INNER, UNCOUNTED, kernel
from rnnsmt.lm.automaton import query
from rnnsmt.search.kernels.records import LanguageModels

MONOTONE, SWAP, RIGHT, LEFT = 0, 1, 2, 3
"""Orientations of a phrase; also the columns of reordering scores in ``RankedOptions``."""


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def orientation_of(last_start, last_end, start, end):
    """Return the orientation of a span with respect to the previous span; ``last_end`` is -1 at the sentence start."""
    if last_end + 1 == start:
        return MONOTONE
    if last_end >= 0 and end + 1 == last_start:
        return SWAP
    return RIGHT if last_end < start else LEFT


class FeatureTables(NamedTuple):
    """The data from which the features of a derivation are computed, except neural features.

    Attributes:
        lms: ``LanguageModels``.
        bounds: ``int64`` [targets + 1]; the words of target phrase t are bounds[t]..bounds[t + 1] - 1 in ``words``.
        words: ``int32`` [LMs, words], LM word ids.
        target_of: ``int32`` [rows], target phrase of each pair.
        static: ``float64`` [rows, F], features that depend only on the pair.
        reordering: ``float64`` [n, 8], backward scores by orientation, then forward scores.
        reordering_of: ``int32`` [rows], row of each pair in ``reordering``.
        places: ``int64`` [9 + LMs], columns of the feature vector for the 8 columns of ``reordering``, for distortion,
            and for each LM; -1 for none.
        hierarchical: whether the reordering model is hierarchical.
    """

    lms: LanguageModels
    bounds: np.ndarray
    words: np.ndarray
    target_of: np.ndarray
    static: np.ndarray
    reordering: np.ndarray
    reordering_of: np.ndarray
    places: np.ndarray
    hierarchical: bool


@kernel(**UNCOUNTED)
def score_alone(lm, bounds, words, states, rest, totals):
    """Compute LM states and scores of phrases in the empty context.

    Args:
        lm: ``LmArrays``.
        bounds: ``int64`` [phrases + 1]; the words of phrase p are words[bounds[p]:bounds[p + 1]].
        words: ``int32`` [words], LM word ids.
        states: ``int32`` [words], filled with the state after each word.
        rest: ``float64`` [words], filled with the score of all words of the phrase that follow each word.
        totals: ``float64`` [phrases], filled with the score of each phrase.
    """
    for phrase in range(bounds.shape[0] - 1):
        state = np.int32(0)  # the empty context, not that of <s>
        total = 0.0
        for k in range(bounds[phrase], bounds[phrase + 1]):
            prob, state = query(lm, state, words[k])
            total += prob
            states[k] = state
            rest[k] = total  # score up to here, subtracted from the total below
        for k in range(bounds[phrase], bounds[phrase + 1]):
            rest[k] = total - rest[k]
        totals[phrase] = total


@kernel()
def hierarchical_orientations(starts, ends, backward, forward):
    """Compute the orientations of the phrases in a hierarchical model (Galley and Manning 2008), as in Moses.

    Args:
        starts, ends: ``int32`` [phrases], first and last source word of each phrase, in the order of the translation.
        backward: ``int64`` [phrases], filled with the orientation of each phrase with respect to the last block before
            it. Adjacent phrases or blocks form one block.
        forward: ``int64`` [phrases], filled with the orientation of each phrase with respect to the previous phrase,
            estimated as in Moses: a phrase farther to the right (left) also counts as monotone (swap) if the word to
            the right (left) of the previous phrase is still uncovered.
    """
    count = starts.shape[0]
    covered = np.zeros(ends.max() + 2 if count > 0 else 0, np.bool_)
    # stack of blocks: block d consists of the source words first[d]..last[d], for d below ``depth``
    first, last = np.empty(count + 1, np.int64), np.empty(count + 1, np.int64)
    depth = 0
    for k in range(count):
        start, end = np.int64(starts[k]), np.int64(ends[k])
        before_start, before_end = np.int64(-1), np.int64(-1)
        if k > 0:
            before_start, before_end = np.int64(starts[k - 1]), np.int64(ends[k - 1])
        turn = orientation_of(before_start, before_end, start, end)
        if turn == RIGHT and not covered[before_end + 1]:
            turn = MONOTONE
        elif turn == LEFT and before_start > 0 and not covered[before_start - 1]:
            turn = SWAP
        forward[k] = turn
        covered[start : end + 1] = True
        backward[k] = orientation_of(np.int64(-1), np.int64(-1), start, end)
        if depth > 0:
            backward[k] = orientation_of(first[depth - 1], last[depth - 1], start, end)
        # shift-reduce: merge the phrase with the blocks on top as long as they are adjacent
        while depth > 0 and (last[depth - 1] + 1 == start or end + 1 == first[depth - 1]):
            depth -= 1
            start, end = min(start, first[depth]), max(end, last[depth])
        first[depth], last[depth] = start, end
        depth += 1


@kernel()
def derivation_features(rows, starts, ends, tables, out):
    """Compute the feature vector of a derivation.

    Args:
        rows: ``int32`` [phrases], rows of the phrase pairs, in the order of the translation.
        starts, ends: ``int32`` [phrases], first and last source word of each phrase.
        tables: ``FeatureTables``.
        out: ``float64`` [F], overwritten.
    """
    lms, places = tables.lms, tables.places
    backward = np.empty(rows.shape[0], np.int64)
    forward = np.empty(rows.shape[0], np.int64)
    if tables.hierarchical:
        hierarchical_orientations(starts, ends, backward, forward)
    out[:] = 0.0
    jumps = 0
    last_start, last_end, last_row = np.int64(-1), np.int64(-1), np.int64(-1)
    for k in range(rows.shape[0]):
        row = np.int64(rows[k])
        for column in range(out.shape[0]):
            out[column] += tables.static[row, column]
        jumps += abs(last_end + 1 - starts[k])
        if not tables.hierarchical:
            backward[k] = orientation_of(last_start, last_end, starts[k], ends[k])
            forward[k] = backward[k]
        turn = backward[k]
        if places[turn] >= 0:
            out[places[turn]] += tables.reordering[tables.reordering_of[row], turn]
        # add the forward score of the previous pair, which depends on the orientation of this phrase
        turn = 4 + forward[k]
        if last_row >= 0 and places[turn] >= 0:
            out[places[turn]] += tables.reordering[tables.reordering_of[last_row], turn]
        last_start, last_end, last_row = np.int64(starts[k]), np.int64(ends[k]), row
    if places[8] >= 0:
        out[places[8]] -= jumps
    # the outer loop is over LMs, so that only one LM is read at a time: each is larger than the processor's caches
    for n in range(len(lms.arrays)):
        state = lms.starts[n]
        score = 0.0
        for k in range(rows.shape[0]):
            target = tables.target_of[rows[k]]
            for position in range(tables.bounds[target], tables.bounds[target + 1]):
                prob, state = query(lms.arrays[n], state, tables.words[n, position])
                score += prob
        prob, state = query(lms.arrays[n], state, lms.ends[n])
        out[places[9 + n]] += score + prob


@kernel()
def all_features(offsets, rows, starts, ends, tables, out):
    """Compute the feature vectors of several derivations, see ``derivation_features``.

    Args:
        offsets: ``int64`` [n + 1]; the phrases of derivation d are offsets[d]..offsets[d + 1] - 1 in ``rows``,
            ``starts`` and ``ends``.
        rows, starts, ends: ``int32`` [phrases of all derivations].
        tables: ``FeatureTables``.
        out: ``float64`` [n, F], overwritten.
    """
    for d in range(out.shape[0]):
        a, b = offsets[d], offsets[d + 1]
        derivation_features(rows[a:b], starts[a:b], ends[a:b], tables, out[d])


_ONE = np.uint64(1)


@kernel(**UNCOUNTED)
def future_costs(spans, ranked, work, window):
    """Compute the best estimate of every span of up to ``window`` words, and of every suffix of the sentence.

    No other spans can be uncovered: uncovered spans before the last covered word are shorter than the distortion limit,
    and the uncovered words after it are a suffix.

    Args:
        spans: ``int32`` [words, longest], source phrase by first word and length - 1, or -1.
        ranked: ``RankedOptions``; the first option of a source phrase has the best estimate.
        work: ``span_future`` (-inf for spans without a translation) and ``tail_future`` are filled.
        window: in words, at most 63.
    """
    count, longest = spans.shape
    work.tail_future[count] = 0.0
    # from right to left: each span is a phrase, followed by a span whose estimate is already final
    for i in range(count - 1, -1, -1):
        best_tail = -np.inf
        for length in range(1, min(window, count - i) + 1):
            work.span_future[i, length] = -np.inf
        for length in range(1, min(longest, count - i) + 1):
            source = spans[i, length - 1]
            if source < 0 or ranked.first[source] == ranked.first[source + 1]:
                continue
            best = ranked.estimate[ranked.first[source]]
            best_tail = max(best_tail, best + work.tail_future[i + length])
            if length <= window:
                work.span_future[i, length] = max(work.span_future[i, length], best)
            for whole in range(length + 1, min(window, count - i) + 1):
                rest = work.span_future[i + length, whole - length]
                work.span_future[i, whole] = max(work.span_future[i, whole], best + rest)
        work.tail_future[i] = best_tail


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def coverage_future(work, gap, mask):
    """Return the future cost of the uncovered words of a coverage."""
    total = 0.0
    position = gap
    while mask != np.uint64(0):  # alternate runs of uncovered (0) and covered (1) words; the first word is uncovered
        run = 0
        while mask & _ONE == np.uint64(0):
            mask >>= _ONE
            run += 1
        if run > 0:
            total += work.span_future[position, run]
        position += run
        while mask & _ONE != np.uint64(0):
            mask >>= _ONE
            position += 1
    return total + work.tail_future[position]


@kernel(**UNCOUNTED)
def suffix_maxima(first, values):
    """Replace values [4, options] by their running maximum from the last option of each source phrase to the first.

    Args:
        first: ``int64`` [sources + 1]; the options of source phrase s are first[s]..first[s + 1] - 1.
        values: ``float64`` [4, options], changed in place.
    """
    for turn in range(values.shape[0]):
        row = values[turn]
        for source in range(first.shape[0] - 1):
            for option in range(first[source + 1] - 2, first[source] - 1, -1):
                row[option] = max(row[option], row[option + 1])
