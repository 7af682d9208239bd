"""Numba kernels of MERT's exact line search (Och 2003, section 4; upper envelope: Macherey et al. 2008).

On a line ``w + x d`` in weight space, the score of a candidate is a linear function ``intercept + x slope``. The best
candidate of a sentence is the highest line, so that it changes only at the corners of the upper envelope of the lines
of its candidates. The corners of all sentences together are the only points where corpus BLEU can change; between two
neighbouring corners it is constant.

All functions release the GIL and use no random numbers.
"""

import numpy as np

from rnnsmt.base.kernels.decorator import kernel
from rnnsmt.bleu.batch import bleu_of_statistics


@kernel()
def upper_envelope(slopes, intercepts, low, high, kept, lines, starts):
    """Find the upper envelope of lines between ``low`` and ``high``, from left to right, by gift wrapping.

    Takes O(n k) for n lines and k lines on the envelope. No sort is needed, and k is small compared to n.

    Args:
        slopes, intercepts: float64 ``[n]``, the lines.
        low, high: finite bounds of the range.
        kept: int32 ``[n]``, scratch buffer: lines that may still follow on the envelope, in ascending order.
        lines: int32 ``[n]``, written: indices of the lines on the envelope.
        starts: float64 ``[n]``, written: left end of the interval on which each of them is the highest; the first is
            ``low``.

    Returns:
        Number of lines on the envelope. If several lines are equal, the first is used.
    """
    n = slopes.size
    best, last = 0, 0
    best_value = last_value = -np.inf
    for i in range(n):
        # highest line at the left end (if tied, the steepest, which is the highest next to it) and at the right end
        # (first of equal lines)
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
        # No line is above ``best`` at ``low`` or above ``last`` at ``high``. A line that is not above them at the point
        # where these two meet is therefore nowhere above both, and is dropped. This leaves few of the lines.
        x = (intercepts[best] - intercepts[last]) / (slopes[last] - slopes[best])
        meeting = intercepts[best] + x * slopes[best]
        for i in range(n):
            kept[count_kept] = i
            count_kept += intercepts[i] + x * slopes[i] > meeting or i == last
    lines[0] = best
    starts[0] = low
    count = 1
    while count_kept > 0:
        # Slopes ascend along the envelope: only steeper lines can follow, and flatter ones are removed from ``kept``.
        # The next line is the one that crosses the current line first; if tied, the steepest.
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
        starts[count] = max(next_x, starts[count - 1])  # ascending despite rounding errors
        count += 1
    return count


@kernel()
def line_corners(slopes, intercepts, offsets, low, high, statistics, total, xs, before, after):
    """Compute the corners of the envelopes of all sentences on one line in weight space.

    Args:
        slopes, intercepts: float64 ``[N]``, lines of the candidates, sentence by sentence.
        offsets: int64 ``[S + 1]``, first candidate of each sentence.
        low, high: finite bounds of the range.
        statistics: int32 ``[N, 9]``, BLEU statistics of the candidates.
        total: int64 ``[9]``, written: summed statistics of the best candidates at ``low``.
        xs: float64 ``[N]``, written: positions of the corners, ascending within a sentence only.
        before, after: int32 ``[N]``, written: the best candidate left and right of each corner.

    Returns:
        Number of corners.
    """
    largest = 0
    for s in range(offsets.size - 1):
        largest = max(largest, offsets[s + 1] - offsets[s])
    # buffers of ``upper_envelope``, allocated once with the size of the longest n-best list
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
    """Compute corpus BLEU (0 to 1) on every interval between neighbouring corners.

    Statistics are updated at every corner by the difference of two candidates, so that the cost does not depend on the
    number of sentences.

    Args:
        total: int64 ``[9]``, statistics left of the first corner.
        before, after: int32, candidates of the corners, see ``line_corners``.
        corners: number of corners.
        order: int64 ``[corners]``, argsort of ``xs``.
        statistics: int32 ``[N, 9]``.
        bleu: float64 ``[corners + 1]``, written: ``bleu[e]`` is the value left of corner ``order[e]``.
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
    """Return the centre of the interval of the line with the highest BLEU.

    Adjacent intervals with equal BLEU are merged; of several best intervals the widest is used.

    Returns:
        ``(x, value)``: the point and its BLEU (0 to 1).
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
        # several corners at the same position leave empty intervals, which contain no point
        if width > 0.0 and (value > best_value or (value == best_value and width > best_width)):
            best_x, best_value, best_width = 0.5 * (start + end), value, width
        e += 1
    return best_x, best_value
