"""A derivation's features, recomputed from its phrases: the model's definition in one place, compiled.

Conventions of Moses: distortion is -|start - (end of the previous phrase + 1)|, nothing is charged at the end of the
sentence; backward reordering scores use the orientation of a phrase to the one before it (or to the start of the
sentence), forward scores that of the following phrase to this one, none for the last phrase; ``</s>`` is scored.
"""

import numpy as np

from rnnsmt.kernels.decorator import kernel
from rnnsmt.lm.kernels.automaton import query
from rnnsmt.search.kernels.edges import LEFT, MONOTONE, RIGHT, SWAP


@kernel()
def score_alone(lm, bounds, words, states, rest, totals):
    """LM states and scores of phrases in the empty context."""
    for phrase in range(bounds.shape[0] - 1):
        state = np.int32(0)
        total = 0.0
        for k in range(bounds[phrase], bounds[phrase + 1]):
            prob, state = query(lm, state, words[k])
            total += prob
            states[k] = state
            rest[k] = total
        for k in range(bounds[phrase], bounds[phrase + 1]):
            rest[k] = total - rest[k]
        totals[phrase] = total


@kernel()
def orientation_of(last_start, last_end, start, end):
    """Monotone, swap, or discontinuous to the right or to the left; ``last_end`` -1 is the start of the sentence."""
    if last_end + 1 == start:
        return MONOTONE
    if last_end >= 0 and end + 1 == last_start:
        return SWAP
    return RIGHT if last_end < start else LEFT


@kernel()
def derivation_features(
    rows, starts, ends, lm, lm_start, lm_end_word, bounds, words, target_of, static, reordering, places, out
):
    """Add up the features of a derivation.

    Args:
        rows: ``int32`` [phrases], rows of the phrase pairs, in the order of the translation.
        starts, ends: ``int32`` [phrases], first and last source word of each.
        reordering: ``float64`` [rows, 8], backward scores by orientation, then forward ones.
        places: ``int64`` [10], where these, distortion and LM lie in a feature vector; -1 for none.
        out: ``float64`` [F], overwritten.
    """
    out[:] = 0.0
    state = np.int32(lm_start)
    lm_score = 0.0
    jumps = 0
    last_start, last_end, last_row = np.int64(-1), np.int64(-1), np.int64(-1)
    for k in range(rows.shape[0]):
        row = np.int64(rows[k])
        for column in range(out.shape[0]):
            out[column] += static[row, column]
        target = target_of[row]
        for position in range(bounds[target], bounds[target + 1]):
            prob, state = query(lm, state, words[position])
            lm_score += prob
        jumps += abs(last_end + 1 - starts[k])
        orientation = orientation_of(last_start, last_end, starts[k], ends[k])
        if places[orientation] >= 0:
            out[places[orientation]] += reordering[row, orientation]
        if last_row >= 0 and places[4 + orientation] >= 0:
            out[places[4 + orientation]] += reordering[last_row, 4 + orientation]
        last_start, last_end, last_row = np.int64(starts[k]), np.int64(ends[k]), row
    prob, state = query(lm, state, lm_end_word)
    if places[8] >= 0:
        out[places[8]] -= jumps
    out[places[9]] += lm_score + prob


@kernel()
def all_features(
    offsets, rows, starts, ends, lm, lm_start, lm_end_word, bounds, words, target_of, static, reordering, places, out
):
    """``derivation_features`` of derivations whose phrases are offsets[d]..offsets[d + 1]; ``out`` float64 [n, F]."""
    for d in range(out.shape[0]):
        a, b = offsets[d], offsets[d + 1]
        derivation_features(
            rows[a:b], starts[a:b], ends[a:b], lm, lm_start, lm_end_word, bounds, words, target_of, static, reordering,
            places, out[d],
        )  # fmt: skip
