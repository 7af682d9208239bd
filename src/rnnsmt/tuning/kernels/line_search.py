"""Kernels of Och's line search (Och 2003, section 4; Macherey et al. 2008 for the envelope).

Along a line ``w + x d`` in weight space the score of a candidate is a line ``intercept + x slope``, so the candidate a
sentence is translated with, the highest line, changes at the corners of the upper envelope of its candidates' lines.
Merging the corners of all sentences gives every point where corpus BLEU can change; between two of them it is constant.

All functions are compiled, release the GIL and use no random numbers.
"""

import numpy as np

from rnnsmt.bleu.kernels.statistics import bleu_of_statistics
from rnnsmt.kernels.decorator import kernel


@kernel()
def project(features, weights, out):
    """``out[n] = sum over k of weights[k] features[k, n]``."""
    out[:] = 0.0
    for k in range(features.shape[0]):
        weight = weights[k]
        if weight != 0.0:
            row = features[k]
            for n in range(out.size):
                out[n] += weight * row[n]


@kernel()
def upper_envelope(slopes, intercepts, low, high, kept, lines, starts):
    """The upper envelope of lines between ``low`` and ``high``, from left to right (gift wrapping).

    Args:
        slopes, intercepts: ``[n]``, the lines.
        low, high: finite ends of the range.
        kept: int32 ``[n]``, scratch.
        lines: int32 ``[n]``, out: numbers of the lines on the envelope.
        starts: float64 ``[n]``, out: where each of them begins to be the highest; the first is ``low``.

    Returns:
        How many lines are on the envelope. Of lines that are equal, the first is taken.
    """
    n = slopes.size
    best, last = 0, 0
    best_value = last_value = -np.inf
    for i in range(n):
        left = intercepts[i] + low * slopes[i]
        right = intercepts[i] + high * slopes[i]
        if left > best_value or (left == best_value and slopes[i] > slopes[best]):
            best_value = left
            best = i
        if right > last_value:
            last_value = right
            last = i
    count_kept = 0
    if slopes[last] > slopes[best]:
        # below the first and the last line at both ends, another line rises above them only if it does where they meet
        x = (intercepts[best] - intercepts[last]) / (slopes[last] - slopes[best])
        meeting = intercepts[best] + x * slopes[best]
        for i in range(n):
            kept[count_kept] = i
            count_kept += intercepts[i] + x * slopes[i] > meeting or i == last
    lines[0] = best
    starts[0] = low
    count = 1
    while count_kept > 0:
        slope, intercept = slopes[best], intercepts[best]
        next_x = high
        following = -1
        write = 0
        for place in range(count_kept):
            i = kept[place]
            gap = slopes[i] - slope
            if gap > 0.0:
                kept[write] = i
                write += 1
                x = (intercept - intercepts[i]) / gap
                if x < next_x or (x == next_x and following >= 0 and slopes[i] > slopes[following]):
                    next_x = x
                    following = i
        count_kept = write
        if following < 0:
            break
        best = following
        lines[count] = best
        starts[count] = max(next_x, starts[count - 1])
        count += 1
    return count


@kernel()
def line_corners(slopes, intercepts, offsets, low, high, statistics, total, xs, before, after):
    """The corners of all sentences' envelopes along one line.

    Args:
        slopes, intercepts: float64 ``[N]``, candidates of all sentences one after the other.
        offsets: int64 ``[S + 1]``, where each sentence's candidates begin.
        statistics: int32 ``[N, 9]``.
        total: int64 ``[9]``, out: summed statistics at ``low``.
        xs: float64 ``[N]``, out; before, after: int32 ``[N]``, out: at ``xs[e]`` candidate ``before[e]`` gives way to
            ``after[e]``; sorted within a sentence only.

    Returns:
        The number of corners.
    """
    largest = 0
    for s in range(offsets.size - 1):
        largest = max(largest, offsets[s + 1] - offsets[s])
    kept = np.empty(largest, np.int32)
    lines = np.empty(largest, np.int32)
    starts = np.empty(largest, np.float64)
    total[:] = 0
    corners = 0
    for s in range(offsets.size - 1):
        start, end = offsets[s], offsets[s + 1]
        if start == end:
            continue
        number = upper_envelope(slopes[start:end], intercepts[start:end], low, high, kept, lines, starts)
        for j in range(9):
            total[j] += statistics[start + lines[0], j]
        for e in range(1, number):
            xs[corners] = starts[e]
            before[corners] = start + lines[e - 1]
            after[corners] = start + lines[e]
            corners += 1
    return corners


@kernel()
def line_bleu(total, before, after, corners, order, statistics, bleu):
    """Corpus BLEU on every interval between sorted corners: ``bleu[e]`` left of corner ``order[e]``.

    Args:
        order: int64 ``[corners]``, the corners sorted by ``xs``.
        bleu: float64 ``[corners + 1]``, out.
    """
    running = total.copy()
    for e in range(corners):
        bleu[e] = bleu_of_statistics(running)
        old, new = before[order[e]], after[order[e]]
        for j in range(9):
            running[j] += statistics[new, j] - statistics[old, j]
    bleu[corners] = bleu_of_statistics(running)


@kernel()
def best_point(xs, order, bleu, corners, low, high):
    """The middle of the interval of a line with the highest BLEU.

    Neighbours with equal BLEU are one interval; of equally high ones the widest is taken.

    Returns:
        ``(x, value)``: the point and its BLEU.
    """
    best_x, best_value, best_width = 0.0, -1.0, -1.0
    e = 0
    while e <= corners:
        start = low if e == 0 else xs[order[e - 1]]
        value = bleu[e]
        while e < corners and bleu[e + 1] == value:
            e += 1
        end = high if e == corners else xs[order[e]]
        width = end - start
        if width > 0.0 and (value > best_value or (value == best_value and width > best_width)):
            best_x, best_value, best_width = 0.5 * (start + end), value, width
        e += 1
    return best_x, best_value


@kernel()
def best_candidates(scores, offsets, out):
    """``out[s]``: the candidate of sentence ``s`` with the highest score, the first of equal ones."""
    for s in range(offsets.size - 1):
        best = offsets[s]
        for n in range(offsets[s] + 1, offsets[s + 1]):
            if scores[n] > scores[best]:
                best = n
        out[s] = best
