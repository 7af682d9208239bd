"""Kernels of the training that leads from the HMM over IBM Model 3 to Model 4 (Brown et al. 1993).

The words that one given word generates are its cept. In Model 4 the first word of a cept is placed relative to the
centre of the cept before, by the classes of that cept's given word and of the placed word; every other word relative to
the word before it in the cept, by its own class. See ``kernels.model3`` for the other terms.
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
from rnnsmt.kernels.decorator import kernel
from rnnsmt.kernels.fixed_point import add_count, add_counts

HMM, MODEL3, MODEL4 = 0, 3, 4

SMOOTHING = 0.4
"""Share of a uniform distribution in every distribution of Model 4's distances."""

_CLOSE = -16.0  # neighbours that lose so much before their words are placed are left out

_RARE = 1e-5  # smaller expected counts are left out

_BETTER = 1e-4  # what a change must add to the log-probability


class Tables(NamedTuple):
    """Parameters of the models, or expected counts in fixed point; longer sentences than W words are left out."""

    t: Any  # p(f | e), [pairs of the lexicon + 1]; counts have no place for the pairs that it does not have
    t_null: Any  # p(f | NULL), [generated vocabulary]
    distortion: Any  # Model 3's p(j | i, J) at ``distortion_row(i, J, W)`` + j
    fertility: Any  # p(phi | e), [given vocabulary, MAX_FERTILITY + 1]
    head: Any  # p(distance to the last centre | both classes), [given classes + 1 (start), generated classes, 2 W + 1]
    inner: Any  # p(distance to the last word of the cept | class), [generated classes, W + 1]


@kernel()
def distortion_row(i, words, width):
    """Where the row of position ``i`` in sentence pairs of ``words`` generated words begins, W = ``width``."""
    return width * (words * (words - 1) // 2) + i * words


@kernel()
def placement(links, given_classes, generated_classes, head, inner, first, following, head_counts, inner_counts, add):
    """Log-probability of the positions of all cepts; with ``add`` the counts (fixed point) of what was used grow by it.

    Args:
        given_classes, generated_classes: class of every word, [I] and [J].
        head, inner: as in ``Tables``, before smoothing.
        first, following: work space, [I + 1] and [J].
    """
    length, words = len(given_classes), len(generated_classes)
    width = head.shape[2] // 2
    uniform_head, uniform_inner = SMOOTHING / (2 * words - 1), SMOOTHING / max(words - 1, 1)
    first[: length + 1] = -1
    for j in range(words - 1, -1, -1):
        following[j] = first[links[j]]
        first[links[j]] = j
    centre, before = -1, head.shape[0] - 1
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
        centre = (positions + number - 1) // number
        before = given_classes[i]
    return score + np.log(product)


@kernel()
def placement_gains(
    links, given_classes, generated_classes, head, inner, first, following, nothing, moves, swaps
):  # fmt: skip
    """Add to the gains of all neighbours what their placement adds; those that are far off without it are left out."""
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
    """Expected counts of distances over an alignment, of probability ``itself``, and its neighbours."""
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
    """As ``model3.neighbour_gains``, with the probabilities of the HMM."""
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
    """One pass over a block: the best alignment that hill climbing finds, and counts over its neighbourhood.

    Args:
        model: the climb starts from the most probable path of the HMM and follows Model 3 or 4. ``HMM``: there is none,
            that path and its neighbours have their probabilities in the HMM.
        counted: the model whose parameters ``counts`` is for, or 0 for no counts.
        first ... generated_classes: the sentences, the lexicon, the corpus and the classes of all words.
        jumps, beginnings, hmm_null, hmm_uniform: of the HMM, see ``kernels.hmm.transitions``.
        p_null: NULL's probability in Models 3 and 4.
        climbs: most steps of one climb.
        best: without ``counted`` filled with the alignments, [generated words] given positions, -1 for NULL.

    Returns:
        The log-probability of the alignments.
    """
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
                for k in range(MAX_FERTILITY + 1):
                    phi[i, k] = np.log(max(tables.fertility[given[i], k], FLOOR))
                    phi[i, k] += log_factorials[k] if model == MODEL3 else 0.0
                if model == MODEL3:
                    for j in range(m):
                        lexical[j, i] += np.log(max(tables.distortion[row + j], FLOOR))
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
