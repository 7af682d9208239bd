"""Kernels of the training sequence HMM, IBM Model 3, IBM Model 4 (Brown et al. 1993).

The cept of a given word is the set of words that it generates. In Model 4, the first word of a cept is placed relative
to the centre of the previous cept, depending on the classes of the given word of the previous cept and of the placed
word. Each other word is placed relative to the word before it in the cept, depending on its own class. See
``kernels.model3`` for the other terms.
"""

from typing import Any, NamedTuple

import numpy as np

from rnnsmt.align.kernels.hmm import path_score, transitions, viterbi
from rnnsmt.align.kernels.lexicon import FLOOR, look_up
from rnnsmt.align.kernels.model3 import (
    MAX_FERTILITY,
    best_neighbour,
    change,
    neighbour_counts,
    neighbour_gains,
    null_score,
)
from rnnsmt.base.kernels.decorator import kernel
from rnnsmt.base.kernels.fixed_point import add_count, add_counts

HMM, MODEL3, MODEL4 = 0, 3, 4

SMOOTHING = 0.4
"""Share of the uniform distribution in every distance distribution of Model 4."""

_CLOSE = -16.0  # neighbours whose gain without distances is smaller are skipped: computing their distances is slow

_RARE = 1e-5  # smaller expected counts are skipped

_BETTER = 1e-4  # minimum gain of a hill-climbing step in log-probability


class Tables(NamedTuple):
    """Parameters of the models, or their expected counts in fixed point, for sentences of at most W words."""

    t: Any  # p(f | e), [pairs of the lexicon + 1]; counts have no place for the pairs that it does not have
    t_null: Any  # p(f | NULL), [generated vocabulary]
    distortion: Any  # Model 3's p(j | i, J) at ``distortion_row(i, J, W)`` + j
    fertility: Any  # p(phi | e), [given vocabulary, MAX_FERTILITY + 1]
    head: Any  # p(distance to the last centre | both classes), [given classes + 1 (start), generated classes, 2 W + 1]
    inner: Any  # p(distance to the last word of the cept | class), [generated classes, W + 1]


@kernel()
def distortion_row(i, words, width):
    """Return the index of the first element of a row of the distortion table.

    The rows are ordered by ``words``, then ``i``: ``width`` rows (W, the maximum sentence length) of length ``words``
    for every ``words`` from 1 to W.

    Args:
        i: given position.
        words: number of generated words of the sentence pair.
        width: W.
    """
    return width * (words * (words - 1) // 2) + i * words


@kernel()
def placement(links, given_classes, generated_classes, head, inner, first, following, head_counts, inner_counts, add):
    """Return the log-probability of the positions of all cepts in Model 4, and update the counts of the distances.

    Args:
        links: given position of every generated word, I for NULL, [J].
        given_classes, generated_classes: class of every word, [I] and [J].
        head, inner: as in ``Tables``, before smoothing.
        first: work space, int64 [I + 1]: first word of each cept, or -1; the last element is for NULL.
        following: work space, int64 [J]: next word in the same cept, or -1.
        head_counts, inner_counts: counts of ``head`` and ``inner`` in fixed point; ``add`` is added for every distance.
        add: weight of this alignment; 0: the counts are not used.
    """
    length, words = len(given_classes), len(generated_classes)
    width = head.shape[2] // 2
    # distances between positions: -(J - 1) .. J - 1 for first words, 1 .. J - 1 inside a cept
    uniform_head, uniform_inner = SMOOTHING / (2 * words - 1), SMOOTHING / max(words - 1, 1)
    # linked lists of the words of each cept, from right to left, so that each list is ascending
    first[: length + 1] = -1
    for j in range(words - 1, -1, -1):
        following[j] = first[links[j]]
        first[links[j]] = j
    # the first cept is placed relative to position -1, in the class of the sentence start
    centre, before = -1, head.shape[0] - 1
    # The product of the factors is accumulated, and its logarithm taken only before it could underflow, because log is
    # slow. Smoothing bounds every factor from below.
    score, product = 0.0, 1.0
    for i in range(length):
        j = first[i]
        if j < 0:
            continue
        if add > 0.0:
            add_count(head_counts[before, generated_classes[j]], j - centre + width, add)
        product *= uniform_head + (1.0 - SMOOTHING) * head[before, generated_classes[j], j - centre + width]
        positions, number, last = j, 1, j
        j = following[j]
        while j >= 0:
            if add > 0.0:
                add_count(inner_counts[generated_classes[j]], j - last, add)
            product *= uniform_inner + (1.0 - SMOOTHING) * inner[generated_classes[j], j - last]
            if product < 1e-250:
                score += np.log(product)
                product = 1.0
            positions, number, last = positions + j, number + 1, j
            j = following[j]
        if product < 1e-250:
            score += np.log(product)
            product = 1.0
        # mean position, rounded up (Brown et al. 1993)
        centre = (positions + number - 1) // number
        before = given_classes[i]
    return score + np.log(product)


@kernel()
def placement_gains(
    links, given_classes, generated_classes, head, inner, first, following, nothing, moves, swaps
):  # fmt: skip
    """Add the change of the distance terms to the gains of all neighbours, for Model 4.

    Neighbours whose gain without it is below ``_CLOSE`` are set to -inf.

    Args:
        links, given_classes, generated_classes, head, inner, first, following: as in ``placement``.
        nothing: int64 [1, 1, 1], placeholder for the counts.
        moves, swaps: gains as filled by ``neighbour_gains``, updated.
    """
    now = placement(links, given_classes, generated_classes, head, inner, first, following, nothing, nothing[0], 0.0)
    for j in range(len(links)):
        old = links[j]
        for i in range(moves.shape[1]):
            if moves[j, i] < _CLOSE:
                moves[j, i] = -np.inf
                continue
            links[j] = i
            moves[j, i] -= now
            moves[j, i] += placement(
                links, given_classes, generated_classes, head, inner, first, following, nothing, nothing[0], 0.0
            )  # fmt: skip
        links[j] = old
        for k in range(j + 1, len(links)):
            if swaps[j, k] < _CLOSE:
                swaps[j, k] = -np.inf
                continue
            links[j], links[k] = links[k], old
            swaps[j, k] -= now
            swaps[j, k] += placement(
                links, given_classes, generated_classes, head, inner, first, following, nothing, nothing[0], 0.0
            )  # fmt: skip
            links[k], links[j] = links[j], old


@kernel()
def placement_counts(
    links, given_classes, generated_classes, head, inner, first, following, head_counts, inner_counts, moves, swaps,
    itself,
):  # fmt: skip
    """Collect the expected counts of distances over an alignment and its neighbours.

    Args:
        links, given_classes, generated_classes, head, inner, first, following: as in ``placement``.
        head_counts, inner_counts: counts in fixed point, updated.
        moves, swaps: probabilities of the neighbours, as filled by ``neighbour_counts``.
        itself: probability of the alignment.
    """
    placement(
        links, given_classes, generated_classes, head, inner, first, following, head_counts, inner_counts, itself
    )  # fmt: skip
    for j in range(len(links)):
        old = links[j]
        for i in range(moves.shape[1]):
            if moves[j, i] > _RARE:
                links[j] = i
                placement(
                    links, given_classes, generated_classes, head, inner, first, following, head_counts, inner_counts,
                    moves[j, i],
                )  # fmt: skip
        links[j] = old
        for k in range(j + 1, len(links)):
            if swaps[j, k] > _RARE:
                links[j], links[k] = links[k], old
                placement(
                    links, given_classes, generated_classes, head, inner, first, following, head_counts, inner_counts,
                    swaps[j, k],
                )  # fmt: skip
                links[k], links[j] = links[j], old


@kernel()
def _hmm_gains(links, lexical, log_step, log_begin, log_null, moves, swaps):
    """Compute the gain of every neighbour with the probabilities of the HMM, as ``model3.neighbour_gains``."""
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


@kernel()
def fertility_block(  # noqa: PLR0912, PLR0915
    first, behind, at, starts, words, cells, given_ids, given_offsets, generated_ids, generated_offsets, given_classes,
    generated_classes, model, counted, jumps, beginnings, hmm_null, hmm_uniform, tables, counts, p_null, climbs, best,
):  # fmt: skip
    """Run one pass over a block: find the best alignment by hill climbing, and collect counts over its neighbourhood.

    Sentence pairs with more than W words on a side are skipped; their links in ``best`` remain unchanged.

    Args:
        first, behind, at, starts, words, cells: as in ``fast_align_block``.
        given_ids, given_offsets, generated_ids, generated_offsets: as in ``fast_align_block``.
        given_classes, generated_classes: class of every word, int32 [vocabulary].
        model: ``MODEL3`` or ``MODEL4``: hill climbing with this model from the Viterbi path of the HMM; ``HMM``: no
            hill climbing, the Viterbi path and its neighbours have their probabilities in the HMM.
        counted: the model whose parameters are counted, or 0 for no counts.
        jumps, beginnings, hmm_null, hmm_uniform: parameters of the HMM, see ``kernels.hmm.transitions``.
        tables: parameters, ``Tables``.
        counts: counts, ``Tables`` of int64 in fixed point, updated; empty arrays if ``counted`` is 0.
        p_null: probability of NULL in Models 3 and 4.
        climbs: maximum number of hill-climbing steps.
        best: given position of every generated word, -1 for NULL, [generated words]; set if ``counted`` is 0.

    Returns:
        The log-probability of the alignments.
    """
    # W; the arrays below are work space for all sentence pairs, and views of them have the size of a sentence pair
    size = tables.inner.shape[1] - 1
    all_moves, all_swaps, all_found = (
        np.empty((size, size + 1)),
        np.empty((size, size)),
        np.empty((size, size), np.int64),
    )
    all_lexical, posterior, all_phi = (np.empty((size, size + 1)), np.empty((size, size + 1)),
                                       np.empty((size, MAX_FERTILITY + 1)))  # fmt: skip
    emission, null, all_step, all_begin = np.empty((size, size)), np.empty(size), np.empty((size, size)), np.empty(size)
    paths, back = np.empty((2, size + 1)), np.empty((size, size + 1), np.int64)
    all_fertilities, heads, following, all_links = (
        np.empty(size + 1, np.int64),
        np.empty(size + 1, np.int64),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
    )
    # placeholder for the counts of ``placement``
    nothing = np.zeros((1, 1, 1), np.int64)
    nulls = np.zeros(len(tables.t_null))
    log_factorials = np.zeros(size + MAX_FERTILITY + 1)
    for k in range(1, len(log_factorials)):
        log_factorials[k] = log_factorials[k - 1] + np.log(k)
    log_probability, pairs = 0.0, at
    for s in range(first, behind):
        given = given_ids[given_offsets[s] : given_offsets[s + 1]]
        start = generated_offsets[s]
        generated = generated_ids[start : generated_offsets[s + 1]]
        n, m = len(given), len(generated)
        at, pairs = pairs, pairs + n * m
        if n == 0 or m == 0 or max(n, m) > size:
            continue
        links, classes, others = all_links[:m], given_classes[given], generated_classes[generated]
        lexical, moves, swaps = all_lexical[:m, : n + 1], all_moves[:m, : n + 1], all_swaps[:m, :m]
        found, step, begin, phi = all_found[:m, :n], all_step[:n, :n], all_begin[:n], all_phi[:n]
        fertilities = all_fertilities[: n + 1]
        for j in range(m):
            null[j] = hmm_null * tables.t_null[generated[j]]
            lexical[j, n] = np.log(tables.t_null[generated[j]])
            look_up(starts, words, cells, at + j * n, given, generated[j], found[j])
            for i in range(n):
                emission[j, i] = tables.t[found[j, i]]
                lexical[j, i] = np.log(emission[j, i])
        transitions(classes, jumps, beginnings, hmm_null, hmm_uniform, step, begin)
        viterbi(emission[:m, :n], null[:m], step, begin, paths, back, links)
        fertilities[:] = 0
        for j in range(m):
            fertilities[links[j]] += 1
        if model == HMM:
            log_step, log_begin, log_null = np.log(step), np.log(begin), np.log(hmm_null)
            _hmm_gains(links, lexical, log_step, log_begin, log_null, moves, swaps)
            log_probability += path_score(links, lexical, log_step, log_begin, log_null)
        else:
            for i in range(n):
                row = distortion_row(i, m, size)
                # Model 3 has a factor phi! per given word; in Model 4, the order of a cept's words is fixed by their
                # distances
                for k in range(MAX_FERTILITY + 1):
                    phi[i, k] = np.log(max(tables.fertility[given[i], k], FLOOR))
                    phi[i, k] += log_factorials[k] if model == MODEL3 else 0.0
                if model == MODEL3:
                    for j in range(m):
                        lexical[j, i] += np.log(max(tables.distortion[row + j], FLOOR))
            # One more evaluation than steps: at the end, moves and swaps are the gains of the neighbours of the final
            # alignment, from which the counts are computed.
            for climb in range(climbs + 1):
                neighbour_gains(links, lexical, phi, fertilities, p_null, log_factorials, moves, swaps)
                if model == MODEL4:
                    placement_gains(
                        links, classes, others, tables.head, tables.inner, heads, following, nothing, moves, swaps
                    )  # fmt: skip
                gain, word, other, position = best_neighbour(moves, swaps)
                if gain < _BETTER or climb == climbs:
                    break
                change(links, fertilities, word, other, position)
            log_probability += null_score(fertilities[n], m, p_null, log_factorials)
            for i in range(n):
                log_probability += phi[i, min(fertilities[i], MAX_FERTILITY)]
            for j in range(m):
                log_probability += lexical[j, links[j]]
            if model == MODEL4:
                log_probability += placement(
                    links, classes, others, tables.head, tables.inner, heads, following, nothing, nothing[0], 0.0
                )  # fmt: skip
        if counted == 0:
            for j in range(m):
                best[start + j] = links[j] if links[j] < n else -1
            continue
        itself = neighbour_counts(links, moves, swaps, given, fertilities, posterior, counts.fertility)
        if counted == MODEL4:
            placement_counts(
                links, classes, others, tables.head, tables.inner, heads, following, counts.head, counts.inner, moves,
                swaps, itself,
            )  # fmt: skip
        for j in range(m):
            if posterior[j, n] > _RARE:
                nulls[generated[j]] += posterior[j, n]
            for i in range(n):
                if posterior[j, i] > _RARE:
                    if found[j, i] < len(counts.t):
                        add_count(counts.t, found[j, i], posterior[j, i])
                    add_count(counts.distortion, distortion_row(i, m, size) + j, posterior[j, i])
    if counted != 0:
        add_counts(counts.t_null, nulls)
    return log_probability
