"""A derivation's features, recomputed from its phrases: the model's definition in one place, compiled.

Conventions of Moses: distortion is -|start - (end of the previous phrase + 1)|, nothing is charged at the end of the
sentence; backward reordering scores use the orientation of a phrase to the one before it (or to the start of the
sentence), forward scores that of the following phrase to this one, none for the last phrase; ``</s>`` is scored.
"""

import numpy as np

from rnnsmt.kernels.decorator import kernel
from rnnsmt.lm.kernels.automaton import query
from rnnsmt.search.kernels.edges import LEFT, MONOTONE, RIGHT, SWAP, orientation_of


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
def hierarchical_orientations(starts, ends, backward, forward):
    """The orientations of a derivation's phrases in a hierarchical model (Galley and Manning 2008), as Moses has them.

    Args:
        starts, ends: ``int32`` [phrases], first and last source word of each.
        backward: ``int64`` [phrases], filled: of a phrase to the last block before it; phrases that touch in the order
            of their translation, and blocks that do, are one block.
        forward: ``int64`` [phrases], filled: of a phrase to the one before it. Moses' estimate: monotone or swapped is
            also what lies farther to the right or left if the word there next to the phrase before is still open.
    """
    count = starts.shape[0]
    covered = np.zeros(ends.max() + 2 if count > 0 else 0, np.bool_)
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
        while depth > 0 and (last[depth - 1] + 1 == start or end + 1 == first[depth - 1]):
            depth -= 1
            start, end = min(start, first[depth]), max(end, last[depth])
        first[depth], last[depth] = start, end
        depth += 1


@kernel()
def derivation_features(
    rows, starts, ends, lms, bounds, words, target_of, static, reordering, places, hierarchical, out
):
    """Add up the features of a derivation.

    Args:
        rows: ``int32`` [phrases], rows of the phrase pairs, in the order of the translation.
        starts, ends: ``int32`` [phrases], first and last source word of each.
        reordering: ``float64`` [rows, 8], backward scores by orientation, then forward ones.
        words: ``int32`` [LMs, words].
        places: ``int64`` [9 + LMs], where these, distortion and the LMs lie in a feature vector; -1 for none.
        hierarchical: whether the reordering model is.
        out: ``float64`` [F], overwritten.
    """
    backward = np.empty(rows.shape[0], np.int64)
    forward = np.empty(rows.shape[0], np.int64)
    if hierarchical:
        hierarchical_orientations(starts, ends, backward, forward)
    out[:] = 0.0
    jumps = 0
    last_start, last_end, last_row = np.int64(-1), np.int64(-1), np.int64(-1)
    for k in range(rows.shape[0]):
        row = np.int64(rows[k])
        for column in range(out.shape[0]):
            out[column] += static[row, column]
        jumps += abs(last_end + 1 - starts[k])
        if not hierarchical:
            backward[k] = orientation_of(last_start, last_end, starts[k], ends[k])
            forward[k] = backward[k]
        turn = backward[k]
        if places[turn] >= 0:
            out[places[turn]] += reordering[row, turn]
        turn = 4 + forward[k]
        if last_row >= 0 and places[turn] >= 0:
            out[places[turn]] += reordering[last_row, turn]
        last_start, last_end, last_row = np.int64(starts[k]), np.int64(ends[k]), row
    if places[8] >= 0:
        out[places[8]] -= jumps
    for n in range(len(lms.arrays)):
        state = lms.starts[n]
        score = 0.0
        for k in range(rows.shape[0]):
            target = target_of[rows[k]]
            for position in range(bounds[target], bounds[target + 1]):
                prob, state = query(lms.arrays[n], state, words[n, position])
                score += prob
        prob, state = query(lms.arrays[n], state, lms.ends[n])
        out[places[9 + n]] += score + prob


@kernel()
def all_features(
    offsets, rows, starts, ends, lms, bounds, words, target_of, static, reordering, places, hierarchical, out
):
    """``derivation_features`` of derivations whose phrases are offsets[d]..offsets[d + 1]; ``out`` float64 [n, F]."""
    for d in range(out.shape[0]):
        a, b = offsets[d], offsets[d + 1]
        derivation_features(
            rows[a:b], starts[a:b], ends[a:b], lms, bounds, words, target_of, static, reordering, places, hierarchical,
            out[d],
        )  # fmt: skip
