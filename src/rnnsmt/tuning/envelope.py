"""Kernels of Och's line search (Och 2003, section 4; Macherey et al. 2008 for the envelope).

Along a line ``w + x d`` in weight space the score of a candidate is a line ``intercept + x slope``, so the candidate a
sentence is translated with, the highest line, changes at the corners of the upper envelope of its candidates' lines.
Merging the corners of all sentences gives every point where corpus BLEU can change; between two of them it is constant.

All functions are compiled, release the GIL and use no random numbers.
"""

import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def bleu_of_statistics(total):
    """Corpus BLEU, 0 to 1, of summed statistics ``[9]`` (see ``rnnsmt.evaluation.multi_bleu``)."""
    log_precision = 0.0
    for order in range(4):
        if total[order] <= 0:
            return 0.0
        log_precision += math.log(total[order] / total[4 + order])
    log_penalty = min(0.0, 1.0 - total[8] / total[4])
    return math.exp(0.25 * log_precision + log_penalty)


@njit(cache=True, nogil=True)
def project(features, weights, out):
    """``out[n] = sum over k of weights[k] features[k, n]``."""
    out[:] = 0.0
    for k in range(features.shape[0]):
        weight = weights[k]
        if weight != 0.0:
            row = features[k]
            for n in range(out.size):
                out[n] += weight * row[n]


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def line_corners(slopes, intercepts, offsets, low, high, statistics, counts, total, xs, before, after):
    """The corners of all sentences' envelopes along one line.

    Args:
        slopes, intercepts: float64 ``[N]``, candidates of all sentences one after the other.
        offsets: int64 ``[S + 1]``, where each sentence's candidates begin.
        statistics: int32 ``[N, 9]``.
        counts: int32 ``[S]``, how often each sentence counts (1, or its number in a bootstrap sample; 0 skips it).
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
        if counts[s] == 0 or start == end:
            continue
        number = upper_envelope(slopes[start:end], intercepts[start:end], low, high, kept, lines, starts)
        for j in range(9):
            total[j] += counts[s] * statistics[start + lines[0], j]
        for e in range(1, number):
            xs[corners] = starts[e]
            before[corners] = start + lines[e - 1]
            after[corners] = start + lines[e]
            corners += 1
    return corners


@njit(cache=True, nogil=True)
def line_bleu(total, xs, before, after, corners, order, sentence_of, counts, statistics, bleu):
    """Corpus BLEU on every interval between sorted corners: ``bleu[e]`` left of corner ``order[e]``.

    Args:
        order: int64 ``[corners]``, the corners sorted by ``xs``.
        sentence_of: int32 ``[N]``, sentence of a candidate.
        bleu: float64 ``[corners + 1]``, out.
    """
    running = total.copy()
    for e in range(corners):
        bleu[e] = bleu_of_statistics(running)
        old, new = before[order[e]], after[order[e]]
        count = counts[sentence_of[old]]
        for j in range(9):
            running[j] += count * (statistics[new, j] - statistics[old, j])
    bleu[corners] = bleu_of_statistics(running)


@njit(cache=True, nogil=True)
def best_point(xs, order, bleu, corners, low, high, half_width):
    """The point of a line to move to, from its piecewise constant BLEU.

    With ``half_width`` 0 it is the middle of the interval with the highest BLEU (the widest of equal ones; neighbours
    with equal BLEU are one interval). Otherwise BLEU is first averaged over ``x - half_width .. x + half_width``
    (regularisation as Cer et al. 2008, but with a window in weight space) and the best interval middle is taken.

    Returns:
        ``(x, value)``: the point and its (averaged) BLEU.
    """
    best_x, best_value, best_width = 0.0, -1.0, -1.0
    if half_width <= 0.0:
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
    # integral[e] = area under BLEU from low to the start of interval e
    integral = np.empty(corners + 2, np.float64)
    bounds = np.empty(corners + 2, np.float64)
    integral[0], bounds[0] = 0.0, low
    for e in range(corners + 1):
        bounds[e + 1] = high if e == corners else xs[order[e]]
        integral[e + 1] = integral[e] + bleu[e] * (bounds[e + 1] - bounds[e])
    left, right = 0, 0
    for e in range(corners + 1):
        x = 0.5 * (bounds[e] + bounds[e + 1])
        window_low, window_high = max(low, x - half_width), min(high, x + half_width)
        while left < corners and bounds[left + 1] < window_low:
            left += 1
        while right < corners and bounds[right + 1] < window_high:
            right += 1
        area = integral[right] + bleu[right] * (window_high - bounds[right])
        area -= integral[left] + bleu[left] * (window_low - bounds[left])
        value = area / (window_high - window_low)
        if value > best_value:
            best_x, best_value = x, value
    return best_x, best_value


@njit(cache=True, nogil=True)
def best_candidates(scores, offsets, out):
    """``out[s]``: the candidate of sentence ``s`` with the highest score, the first of equal ones."""
    for s in range(offsets.size - 1):
        best = offsets[s]
        for n in range(offsets[s] + 1, offsets[s + 1]):
            if scores[n] > scores[best]:
                best = n
        out[s] = best
