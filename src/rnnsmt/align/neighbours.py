"""Alignments that differ from another one in one link or in two: their gains, and counts over all of them.

The gains are those of Model 3, and of the terms of Model 4 that it shares with Model 3: NULL, fertilities and lexical
translations. Links, moves and swaps are those of ``model4``.
"""

import numpy as np

from rnnsmt.align.hmm import path_score
from rnnsmt.base.kernels.decorator import INNER, UNCOUNTED, kernel
from rnnsmt.base.kernels.numbers import add_count

RARE = 1e-5
"""Expected counts below this value are skipped."""

MAX_FERTILITY = 10
"""Index that represents all fertilities of at least this value, which are considered impossible."""

NEVER = -1e3
"""Factor of the log-probability of impossible numbers of NULL words, see ``null_score``; finite, so that differences
between alignments are defined."""


@kernel(**UNCOUNTED)
def null_score(nulls, words, p_null, log_factorials):
    """Return the log-probability that NULL generates ``nulls`` of ``words`` words.

    It is log of C(J - nulls, nulls) p_null^nulls (1 - p_null)^(J - 2 nulls). More than half of the words are
    impossible: the penalty grows with the excess, so hill climbing reduces it.
    """
    if 2 * nulls > words:
        return NEVER * (2 * nulls - words)
    rest = words - nulls
    choices = log_factorials[rest] - log_factorials[nulls] - log_factorials[rest - nulls]
    return choices + nulls * np.log(p_null) + (rest - nulls) * np.log(1.0 - p_null)


@kernel(**UNCOUNTED)
def neighbour_gains(links, lexical, fertility, fertilities, p_null, log_factorials, moves, swaps):
    """Compute the gain in log-probability of every neighbour of an alignment.

    Args:
        links: the alignment, int64 [J].
        lexical: log-probability of the terms that depend on one link only, [J, I + 1], NULL last: log p(f_j | e_i), in
            Model 3 also log p(j | i, J).
        fertility: log-probability of the terms that depend on the fertility of one given word, [I, MAX_FERTILITY + 1]:
            log p(phi | e_i), in Model 3 also log phi!.
        fertilities: number of words that are linked to each position, [I + 1], NULL last.
        log_factorials: log n! for n = 0, 1, ...
        moves: filled with the gain of linking word j to position i, [J, I + 1]; -inf at the current link.
        swaps: filled, above the diagonal, with the gain of exchanging the links of two words, [J, J]; -inf if they are
            equal.
    """
    words, length = lexical.shape[0], lexical.shape[1] - 1
    nulls = fertilities[length]
    now = null_score(nulls, words, p_null, log_factorials)
    more = null_score(nulls + 1, words, p_null, log_factorials) - now
    less = null_score(nulls - 1, words, p_null, log_factorials) - now if nulls > 0 else 0.0
    for j in range(words):
        old = links[j]
        leaving = -lexical[j, old]
        if old == length:
            leaving += less
        else:
            phi = fertilities[old]
            leaving += fertility[old, min(phi - 1, MAX_FERTILITY)] - fertility[old, min(phi, MAX_FERTILITY)]
        for i in range(length):
            phi = fertilities[i]
            moves[j, i] = leaving + lexical[j, i] - fertility[i, min(phi, MAX_FERTILITY)]
            moves[j, i] += fertility[i, min(phi + 1, MAX_FERTILITY)]
        moves[j, length] = leaving + lexical[j, length] + more
        moves[j, old] = -np.inf
        for k in range(j + 1, words):
            other = links[k]
            # fertilities do not change
            swaps[j, k] = lexical[j, other] + lexical[k, old] - lexical[j, old] - lexical[k, other]
            if other == old:
                swaps[j, k] = -np.inf


@kernel(**INNER, **UNCOUNTED)
def hmm_gains(links, lexical, log_step, log_begin, log_null, moves, swaps):
    """Compute the gain of every neighbour, as ``neighbour_gains``, in the HMM (``path_score``)."""
    now = path_score(links, lexical, log_step, log_begin, log_null)
    for j in range(len(links)):
        old = links[j]
        for i in range(lexical.shape[1]):
            links[j] = i
            moves[j, i] = path_score(links, lexical, log_step, log_begin, log_null) - now
        links[j] = old
        moves[j, old] = -np.inf
        for k in range(j + 1, len(links)):
            other = links[k]
            links[j], links[k] = other, old
            swaps[j, k] = path_score(links, lexical, log_step, log_begin, log_null) - now
            links[j], links[k] = old, other
            if other == old:
                swaps[j, k] = -np.inf


@kernel(**UNCOUNTED)
def best_neighbour(moves, swaps):
    """Return the most probable neighbour.

    Returns:
        Its gain, the first word, the second word of a swap or -1, the new position of a move or -1.
    """
    best, word, other, position = -np.inf, -1, -1, -1
    for j in range(len(moves)):
        for i in range(moves.shape[1]):
            if moves[j, i] > best:
                best, word, other, position = moves[j, i], j, -1, i
        for k in range(j + 1, len(moves)):
            if swaps[j, k] > best:
                best, word, other, position = swaps[j, k], j, k, -1
    return best, word, other, position


@kernel(**INNER, **UNCOUNTED)
def change(links, fertilities, word, other, position):
    """Replace an alignment by a neighbour, given as the last three values of ``best_neighbour``."""
    if other >= 0:
        links[word], links[other] = links[other], links[word]
    else:
        fertilities[links[word]] -= 1
        fertilities[position] += 1
        links[word] = position


@kernel(**UNCOUNTED)
def neighbour_counts(  # noqa: PLR0912
    links, moves, swaps, given, fertilities, posterior, fertility_counts
):  # fmt: skip
    """Collect expected counts over an alignment and its neighbours.

    Args:
        links: the alignment, int64 [J].
        moves, swaps: gains of the neighbours, as filled by ``neighbour_gains``; replaced by their probabilities.
        given: ids of the given words, [I].
        fertilities: number of words that are linked to each position, [I + 1].
        posterior: filled with p(link) of every word, [J, I + 1].
        fertility_counts: expected counts of the fertilities, int64 [given vocabulary, MAX_FERTILITY + 1], in fixed
            point, updated.

    Returns:
        The probability of the alignment itself.
    """
    words, length = len(links), len(given)
    # Probabilities relative to that of the alignment itself, which is 1. Gains above 0 remain only if hill climbing
    # reached its maximum number of steps, or if they are below its threshold; they count as 0.
    total = 1.0
    for j in range(words):
        for i in range(length + 1):
            moves[j, i] = np.exp(min(moves[j, i], 0.0))
            total += moves[j, i]
        for k in range(j + 1, words):
            swaps[j, k] = np.exp(min(swaps[j, k], 0.0))
            total += swaps[j, k]
    posterior[:, :] = 0.0
    for j in range(words):
        # start with mass 1 on the alignment; each neighbour then moves its probability to its links
        posterior[j, links[j]] += 1.0
    for j in range(words):
        for i in range(length + 1):
            moves[j, i] /= total
            posterior[j, i] += moves[j, i]
            posterior[j, links[j]] -= moves[j, i]
        for k in range(j + 1, words):
            weight = swaps[j, k] / total
            swaps[j, k] = weight
            posterior[j, links[k]] += weight
            posterior[j, links[j]] -= weight
            posterior[k, links[j]] += weight
            posterior[k, links[k]] -= weight
    for i in range(length):
        # Neighbours exclude each other, so the fertility is one higher with the total probability of moves to position
        # i, one lower with that of moves away from it, and otherwise unchanged.
        phi, more, less = fertilities[i], 0.0, 0.0
        for j in range(words):
            if links[j] == i:
                for other in range(length + 1):
                    less += moves[j, other]
            else:
                more += moves[j, i]
        counts = fertility_counts[given[i]]
        add_count(counts, min(phi, MAX_FERTILITY), 1.0 - more - less)
        add_count(counts, min(phi + 1, MAX_FERTILITY), more)
        if phi > 0:
            add_count(counts, min(phi - 1, MAX_FERTILITY), less)
    return 1.0 / total
