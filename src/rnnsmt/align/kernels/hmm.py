"""Kernels of the HMM alignment model: forward-backward and Viterbi of one sentence pair, an EM pass over a block.

A state is the position of the last given word that generated a word; NULL generates a word without leaving the state
(Och and Ney 2003). The start state lasts until the first link. The arrays of a sentence pair have its size: I given
words, J generated words.
"""

import numpy as np

from rnnsmt.align.kernels.lexicon import look_up
from rnnsmt.base.kernels.decorator import kernel
from rnnsmt.base.kernels.fixed_point import add_count, add_counts


@kernel()
def transitions(classes, jumps, first, p_null, uniform, step, begin):
    """Fill ``step`` and ``begin`` with the transition probabilities of one sentence pair.

    Rows of ``step`` and ``begin`` sum to 1 - ``p_null``.

    Args:
        classes: class of every given word, [I].
        jumps: weights of the jumps -W .. W for every class of the last word, [classes, 2 W + 1]; longer jumps have the
            weight of -W or W.
        first: weights of the first position, [W]; later positions have the weight of the last element.
        p_null: probability of NULL.
        uniform: share of the uniform distribution, which avoids zeros.
        step: filled with p(next position | last position), float64 [I, I]; a row for every last position.
        begin: filled with p(first position), float64 [I].
    """
    length = len(classes)
    width = jumps.shape[1] // 2
    total = 0.0
    for i in range(length):
        begin[i] = first[min(i, len(first) - 1)]
        total += begin[i]
    for i in range(length):
        begin[i] = (1.0 - p_null) * ((1.0 - uniform) * begin[i] / total + uniform / length)
    for last in range(length):
        weights = jumps[classes[last]]
        total = 0.0
        for i in range(length):
            step[last, i] = weights[min(max(i - last, -width), width) + width]
            total += step[last, i]
        for i in range(length):
            step[last, i] = (1.0 - p_null) * ((1.0 - uniform) * step[last, i] / total + uniform / length)


@kernel()
def forward_backward(emission, null, step, begin, alpha, beta, posterior, moves):  # noqa: PLR0912
    """Compute posterior link probabilities of one sentence pair; return the log-likelihood of the generated sentence.

    Args:
        emission: p(f_j | e_i), [J, I].
        null: p_null p(f_j | NULL), [J].
        step, begin: as filled by ``transitions``.
        alpha, beta: work space, [J, I + 1]; the last column is the start state.
        posterior: filled with p(a_j = i | both sentences), [J, I]; the rest of a row's mass is NULL's.
        moves: filled with the expected number of transitions, [I, I].
    """
    words, length = emission.shape
    scale = np.empty(words)
    log_likelihood = 0.0
    # Forward pass. posterior[j, i]: mass of the paths in which word j is linked to i. alpha[j, i]: mass of the paths
    # that are in state i after word j, because j is linked to i or because NULL generated j in state i. Every row of
    # alpha is scaled to sum 1 (Rabiner 1989), and the likelihood is the product of the unscaled sums.
    for j in range(words):
        for i in range(length):
            posterior[j, i] = begin[i] * (alpha[j - 1, length] if j > 0 else 1.0)
        if j > 0:
            for last in range(length):
                mass = alpha[j - 1, last]
                for i in range(length):
                    posterior[j, i] += mass * step[last, i]
        total = 0.0
        for i in range(length):
            posterior[j, i] *= emission[j, i]
            alpha[j, i] = posterior[j, i] + (alpha[j - 1, i] * null[j] if j > 0 else 0.0)
            total += alpha[j, i]
        alpha[j, length] = null[j] * (alpha[j - 1, length] if j > 0 else 1.0)
        total = max(total + alpha[j, length], 1e-300)  # no division by 0 after underflow
        scale[j] = 1.0 / total
        log_likelihood += np.log(total)
        for i in range(length):
            posterior[j, i] *= scale[j]
            alpha[j, i] *= scale[j]
        alpha[j, length] *= scale[j]
    # Backward pass, scaled by the factors of the forward pass, so that posterior = forward mass * beta needs no
    # division
    beta[words - 1, :] = 1.0
    moves[:, :] = 0.0
    # transposed, so that the inner loop over ``last`` below reads consecutive elements
    turned = step.T.copy()
    ahead = np.empty(length)
    for j in range(words - 1, 0, -1):
        stay = null[j] * scale[j]
        beta[j - 1, length] = stay * beta[j, length]
        for i in range(length):
            ahead[i] = emission[j, i] * beta[j, i] * scale[j]
            beta[j - 1, length] += begin[i] * ahead[i]
            beta[j - 1, i] = stay * beta[j, i]
        # The inner loops add to arrays and not to one sum: they are vectorised without reordering floating-point
        # additions
        for i in range(length):
            weight = ahead[i]
            for last in range(length):
                beta[j - 1, last] += turned[i, last] * weight
        for last in range(length):
            mass = alpha[j - 1, last]
            for i in range(length):
                moves[last, i] += mass * ahead[i]
    # step is constant over j: multiply once, after the sum over j
    for last in range(length):
        for i in range(length):
            moves[last, i] *= step[last, i]
    for j in range(words):
        for i in range(length):
            posterior[j, i] *= beta[j, i]
    return log_likelihood


@kernel()
def viterbi(emission, null, step, begin, best, back, links):
    """Fill ``links`` [J] with the most probable path of one sentence pair: given positions, I for NULL.

    Args:
        emission, null, step, begin: as in ``forward_backward``.
        best: work space, [2, I + 1]: probability of the best path that ends in each state, for the word before and the
            current word in turn; the last column is the start state.
        back: work space, [J, I + 1]: the state before; I + 1 if NULL generated the word, and the state is the same.
        links: int64 [J], filled.
    """
    words, length = emission.shape
    best[0, :length] = 0.0
    best[0, length] = 1.0
    for j in range(words):
        last, now = best[j & 1], best[1 - (j & 1)]
        highest = 0.0
        for i in range(length):
            probability, origin = last[length] * begin[i], length
            for before in range(length):
                if last[before] * step[before, i] > probability:
                    probability, origin = last[before] * step[before, i], before
            probability *= emission[j, i]
            if last[i] * null[j] > probability:
                probability, origin = last[i] * null[j], length + 1
            now[i], back[j, i] = probability, origin
            highest = max(highest, probability)
        now[length], back[j, length] = last[length] * null[j], length + 1
        highest = max(highest, now[length], 1e-300)
        # only ratios matter: scale by the maximum instead of taking logarithms
        for i in range(length + 1):
            now[i] /= highest
    state = np.argmax(best[words & 1, : length + 1])
    for j in range(words - 1, -1, -1):
        if back[j, state] == length + 1:
            links[j] = length
        else:
            links[j], state = state, back[j, state]


@kernel()
def path_score(links, lexical, log_step, log_begin, log_null):
    """Return the log-probability of a path.

    Args:
        links: given positions, I for NULL, [J].
        lexical: log p(f_j | e_i), [J, I + 1]; the last column is NULL, without ``log_null``.
        log_step, log_begin: logarithms of ``step`` and ``begin`` of ``transitions``.
        log_null: log p_null.
    """
    length = len(log_begin)
    score, last = 0.0, length
    for j in range(len(links)):
        i = links[j]
        score += lexical[j, i]
        if i == length:
            score += log_null
        else:
            score += log_begin[i] if last == length else log_step[last, i]
            last = i
    return score


@kernel()
def hmm_block(  # noqa: PLR0912
    first, behind, at, starts, words, cells, given_ids, given_offsets, generated_ids, generated_offsets, given_classes,
    t, t_null, jumps, beginnings, p_null, uniform, longest, last, counts, null_counts, jump_counts, beginning_counts,
    best,
):  # fmt: skip
    """Run one pass over a block: collect expected counts or, if ``last``, set the best links.

    Sentence pairs with more than ``longest`` words on a side are skipped; their links in ``best`` remain unchanged.

    Args:
        first, behind, at, starts, words, cells: as in ``fast_align_block``.
        given_ids, given_offsets, generated_ids, generated_offsets, t, t_null: as in ``fast_align_block``.
        given_classes: class of every given word, int32 [given vocabulary].
        jumps, beginnings: weights, see ``jumps`` and ``first`` of ``transitions``.
        p_null: probability of NULL; 0: 1 / (I + 1), the same as for each given word in Model 1.
        uniform: share of the uniform distribution in the jump distributions.
        longest: maximum sentence length.
        last: whether links are set instead of counts.
        counts, null_counts, jump_counts, beginning_counts: expected counts of ``t``, ``t_null``, ``jumps`` and
            ``beginnings``, int64 in fixed point, flat, updated; empty if ``last``.
        best: given position of every generated word, [generated words]: the one of highest posterior probability, or -1
            if NULL's is higher; set if ``last``.

    Returns:
        The log-likelihood of the generated sentences.
    """
    # work space of all sentence pairs of the block, as large as its longest sentence requires
    size = 1
    for s in range(first, behind):
        n, m = given_offsets[s + 1] - given_offsets[s], generated_offsets[s + 1] - generated_offsets[s]
        if max(n, m) <= longest:
            size = max(size, n, m)
    found = np.empty((size, size), np.int64)
    emission, posterior, step, moves = (np.empty((size, size)), np.empty((size, size)), np.empty((size, size)),
                                        np.empty((size, size)))  # fmt: skip
    alpha, beta = np.empty((size, size + 1)), np.empty((size, size + 1))
    begin, null = np.empty(size), np.empty(size)
    width = jumps.shape[1] // 2
    # float sums of the block, added to the shared counts once: a fixed order of additions, few atomic ones
    nulls, moved, begun = np.zeros(len(t_null)), np.zeros(jumps.shape), np.zeros(len(beginnings))
    log_likelihood, pairs = 0.0, at
    for s in range(first, behind):
        given = given_ids[given_offsets[s] : given_offsets[s + 1]]
        start = generated_offsets[s]
        n, m = len(given), generated_offsets[s + 1] - start
        at, pairs = pairs, pairs + n * m
        if n == 0 or m == 0 or max(n, m) > longest:
            continue
        empty = p_null if p_null > 0.0 else 1.0 / (n + 1)
        for j in range(m):
            f = generated_ids[start + j]
            null[j] = empty * t_null[f]
            look_up(starts, words, cells, at + j * n, given, f, found[j])
            for i in range(n):
                emission[j, i] = t[found[j, i]]
        transitions(given_classes[given], jumps, beginnings, empty, uniform, step[:n, :n], begin[:n])
        log_likelihood += forward_backward(
            emission[:m, :n], null[:m], step[:n, :n], begin[:n], alpha[:m, : n + 1], beta[:m, : n + 1],
            posterior[:m, :n], moves[:n, :n],
        )  # fmt: skip
        for j in range(m):
            # left: posterior probability of NULL
            left, highest, position = 1.0, 0.0, -1
            for i in range(n):
                left -= posterior[j, i]
                if posterior[j, i] > highest:
                    highest, position = posterior[j, i], i
            if last:
                best[start + j] = position if highest >= left else -1
                continue
            for i in range(n):
                if found[j, i] < len(counts):
                    add_count(counts, found[j, i], posterior[j, i])
            nulls[generated_ids[start + j]] += max(left, 0.0)
        if not last:
            for i in range(n):
                begun[min(i, len(beginnings) - 1)] += posterior[0, i]
                for k in range(n):
                    moved[given_classes[given[i]], min(max(k - i, -width), width) + width] += moves[i, k]
    if not last:
        add_counts(null_counts, nulls)
        add_counts(jump_counts, moved.ravel())
        add_counts(beginning_counts, begun)
    return log_likelihood
