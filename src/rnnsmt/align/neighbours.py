"""Neighbours of an alignment, obtained by moves and swaps: gains in probability, and expected counts.

The gains are computed for Model 3, and for the terms that Models 3 and 4 have in common: NULL, fertilities and lexical
translations. Links, neighbours, moves and swaps are defined in ``model4``.
"""

import numpy as np

from rnnsmt.align.hmm import path_score
from rnnsmt.base.kernels.decorator import INNER, UNCOUNTED, kernel
from rnnsmt.base.kernels.numbers import add_count

RARE = 1e-5
"""Expected counts below this value are skipped."""

MAX_FERTILITY = 10
"""Index of the element for all fertilities from this value on, which are considered impossible."""

NEVER = -1e3
"""Factor of the penalty in log-probability if NULL generates too many words, see ``null_score``; finite, so that
differences between alignments are defined."""


@kernel(**UNCOUNTED)
def null_score(nulls, words, p_null, log_factorials):
    """Return the log-probability that NULL generates ``nulls`` of J = ``words`` words.

    The probability is C(J - nulls, nulls) p_null^nulls (1 - p_null)^(J - 2 nulls). NULL cannot generate more than half
    of the words; then, a penalty is returned that grows with the excess, so that hill climbing reduces the excess.
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
        lexical: [J, I + 1], terms of the log-probability that depend on a single link, with NULL in the last column:
            log p(f_j | e_i), for Model 3 plus log p(j | i, J).
        fertility: [I, MAX_FERTILITY + 1], terms of the log-probability that depend on the fertility phi of a given
            word: log p(phi | e_i), for Model 3 plus log phi!.
        fertilities: [I + 1], number of words that are linked to each position, with NULL last.
        p_null: probability of NULL.
        log_factorials: log n! for n = 0, 1, ...
        moves: [J, I + 1], filled with the gain of linking word j to position i; -inf at the current link.
        swaps: [J, J], filled above the diagonal with the gain of exchanging the links of two words; -inf if the words
            have the same link.
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
    """Compute the gain in log-probability of every neighbour in the HMM (``path_score``); see ``neighbour_gains``."""
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
        The gain; the word that is moved, or the first word of a swap; the second word of a swap, or -1 for a move; and
        the new position of a move, or -1 for a swap.
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
    """Change an alignment to a neighbour; the last three arguments are returned by ``best_neighbour``."""
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
    # Probabilities are relative to the probability of the alignment itself. Gains above 0 remain only if hill climbing
    # reached the maximum number of steps, or if they are below its threshold; they count as 0.
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
        # start with mass 1 on the links of the alignment; then move the probability of each neighbour to its links
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
        # Neighbours exclude each other. Therefore, the fertility is phi + 1 with the total probability of all moves to
        # position i, phi - 1 with the total probability of all moves away from it, and phi otherwise.
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
