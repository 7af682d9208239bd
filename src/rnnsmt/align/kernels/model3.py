"""Kernels of IBM Model 3 (Brown et al. 1993) and of the neighbourhood of an alignment.

One sentence pair: I given words, J generated words, ``links`` [J] with the given position of every generated word, I
for NULL. A neighbour differs by one word that is linked elsewhere (a move) or by two words that have changed their
links (a swap). Model 4 shares NULL, fertilities and lexical translations with Model 3.
"""

import numpy as np

from rnnsmt.kernels.decorator import kernel
from rnnsmt.kernels.fixed_point import add_count

MAX_FERTILITY = 10
"""This fertility stands for all from it on; none of them is thought possible."""

NEVER = -1e3


@kernel()
def null_score(nulls, words, p_null, log_factorials):
    """log of C(J - nulls, nulls) p_null^nulls (1 - p_null)^(J - 2 nulls); impossible above half the words."""
    if 2 * nulls > words:
        return NEVER * (2 * nulls - words)
    rest = words - nulls
    choices = log_factorials[rest] - log_factorials[nulls] - log_factorials[rest - nulls]
    return choices + nulls * np.log(p_null) + (rest - nulls) * np.log(1.0 - p_null)


@kernel()
def neighbour_gains(links, lexical, fertility, fertilities, p_null, log_factorials, moves, swaps):
    """Fill ``moves`` [J, I + 1] and ``swaps`` [J, J] (above the diagonal) with what each adds to the log-probability.

    Args:
        lexical: log of what belongs to one link, [J, I + 1], NULL last: log p(f_j | e_i), in Model 3 also
            log p(j | i, J).
        fertility: log of what belongs to the fertility of a given word, [I, MAX_FERTILITY + 1]: log p(phi | e_i), in
            Model 3 also log phi!.
        fertilities: number of words that are linked to each position, [I + 1].
        moves, swaps: -inf where nothing changes.
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
            swaps[j, k] = lexical[j, other] + lexical[k, old] - lexical[j, old] - lexical[k, other]
            if other == old:
                swaps[j, k] = -np.inf


@kernel()
def best_neighbour(moves, swaps):
    """Of the most probable neighbour: gain, first word, second word of a swap or -1, new position of a move or -1."""
    best, word, other, position = -np.inf, -1, -1, -1
    for j in range(len(moves)):
        for i in range(moves.shape[1]):
            if moves[j, i] > best:
                best, word, other, position = moves[j, i], j, -1, i
        for k in range(j + 1, len(moves)):
            if swaps[j, k] > best:
                best, word, other, position = swaps[j, k], j, k, -1
    return best, word, other, position


@kernel()
def change(links, fertilities, word, other, position):
    """Go to a neighbour, as ``best_neighbour`` describes it."""
    if other >= 0:
        links[word], links[other] = links[other], links[word]
    else:
        fertilities[links[word]] -= 1
        fertilities[position] += 1
        links[word] = position


@kernel()
def neighbour_counts(  # noqa: PLR0912
    links, moves, swaps, given, fertilities, posterior, fertility_counts
):  # fmt: skip
    """Expected counts over an alignment and its neighbours.

    Args:
        moves, swaps: gains of the neighbours; filled with their probabilities.
        given: ids of the given words, [I].
        posterior: filled with p(link) of every word, [J, I + 1].
        fertility_counts: grow by the expected fertilities, [given vocabulary, MAX_FERTILITY + 1], in fixed point.

    Returns:
        The probability of the alignment itself.
    """
    words, length = len(links), len(given)
    total = 1.0
    for j in range(words):
        for i in range(length + 1):
            moves[j, i] = np.exp(min(moves[j, i], 0.0))
            total += moves[j, i]
        for k in range(j + 1, words):
            swaps[j, k] = np.exp(min(swaps[j, k], 0.0))
            total += swaps[j, k]
    posterior[:words, : length + 1] = 0.0
    for j in range(words):
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
