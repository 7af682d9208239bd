"""HMM alignment model (Vogel, Ney and Tillmann 1996) with jumps that depend on word classes (Och and Ney 2003).

The settings are those of GIZA++. Five EM iterations start from the lexical probabilities of Model 1 and uniform jumps.
The weight of NULL is 0.4 and the total weight of the jumps is 1. Every jump distribution is interpolated with the
uniform distribution, which has weight 0.2. Estimates are maximum-likelihood estimates. Unlike in GIZA++, there is no
distribution of the position of the last word, and the distribution of the position of the first word does not depend on
the sentence length. A word is linked to the given word with the highest posterior probability, or to NULL if NULL has a
higher posterior probability. No random numbers are drawn.

A state is the position of the last given word that generated a word; NULL generates a word without changing the state
(Och and Ney 2003). The start state lasts until the first link. In the kernels, I is the number of given words of a
sentence pair, and J the number of generated words.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from rnnsmt.align import HMM_ITERATIONS, MODEL1_ITERATIONS, model1
from rnnsmt.align.direction import Aligner, Direction, Parameters
from rnnsmt.align.lexicon import look_up, relative_frequencies
from rnnsmt.align.word_classes import word_classes
from rnnsmt.base.kernels.decorator import UNCOUNTED, kernel
from rnnsmt.base.kernels.numbers import ONE, add_count, add_counts

P_NULL = 0.4 / 1.4
"""Probability of NULL, for every generated word."""

UNIFORM = 0.2
"""Weight of the uniform distribution in every jump distribution."""

LONGEST = 200
"""Maximum sentence length; longer sentences keep the links of Model 1, as time grows with the cube of the length."""


class HmmTables(NamedTuple):
    """Parameters of the HMM, or their expected counts in fixed point."""

    t: Any  # p(f | e), [pairs + 1]; the last element is for pairs that are not in the lexicon; counts lack it
    t_null: Any  # p(f | NULL), [generated vocabulary]
    jumps: Any  # weights of the jumps -W .. W for every class of given words, [given classes, 2 W + 1]
    beginnings: Any  # weights of the first position, [W]


def begin(direction: Direction) -> Parameters:
    """Return the initial parameters: the parameters of Model 1, and equal weights of all jumps.

    The names are those of ``HmmTables``. ``log_likelihoods`` contains the natural log-likelihood of the corpus in every
    iteration of the HMM, before the parameters are updated.
    """
    classes = word_classes(direction.given)
    width = int(np.minimum(direction.given.lengths, LONGEST).max())
    return {
        **model1.begin(direction),
        "given_classes": classes,
        "jumps": np.ones((int(classes.max()) + 1, 2 * width + 1)),
        "beginnings": np.ones(width),
        "log_likelihoods": np.zeros(0),
    }


def iterate(direction: Direction, parameters: Parameters, done: int) -> Iterator[None]:
    """Run the iterations after the first ``done`` iterations; yield after each. The last iteration sets the links."""
    yield from estimate(direction, parameters, done)
    _expectation(direction, parameters, P_NULL, None)
    yield


ALIGNER = Aligner(begin, iterate, MODEL1_ITERATIONS + HMM_ITERATIONS + 1)


def estimate(direction: Direction, parameters: Parameters, done: int) -> Iterator[None]:
    """Run the iterations of Model 1 and of the HMM after the first ``done`` iterations; yield after each."""
    yield from model1.iterate(direction, parameters, done)
    for iteration in range(max(done - MODEL1_ITERATIONS, 0), HMM_ITERATIONS):
        others = [np.zeros(parameters[name].shape, np.int64) for name in ("jumps", "beginnings")]
        counts = HmmTables(*direction.lexical_counts(), *others)
        # 0 in the first iteration: NULL has the same probability as each given word, as in Model 1
        _expectation(direction, parameters, P_NULL if iteration > 0 else 0.0, counts)
        direction.estimate(parameters, counts.t, counts.t_null, relative_frequencies)
        # add 1e-9, so that a class without jumps, or a sentence with only unseen jumps, has a distribution
        parameters["jumps"], parameters["beginnings"] = counts.jumps / ONE + 1e-9, counts.beginnings / ONE + 1e-9
        yield


def _expectation(direction: Direction, parameters: Parameters, p_null: float, counts: HmmTables | None) -> None:
    """Add to the expected counts, or set the links if ``counts`` is None; append the log-likelihood."""
    tables = HmmTables(*[parameters[name] for name in HmmTables._fields])
    totals = counts or HmmTables(*[np.zeros([0] * table.ndim, np.int64) for table in tables])
    settings = (parameters["given_classes"], tables, p_null, counts is None, totals, parameters["best"])
    total = direction.over_blocks(lambda *block: hmm_block(block, direction.corpus, *settings))
    parameters["log_likelihoods"] = np.append(parameters["log_likelihoods"], total)


@kernel()
def transitions(classes, jumps, first, p_null, uniform, step, begin):
    """Fill ``step`` and ``begin`` with the transition probabilities of one sentence pair.

    Every row of ``step`` sums to 1 - ``p_null``, and so does ``begin``.

    Args:
        classes: class of every given word, [I].
        jumps: weights of the jumps -W .. W for every class of the last word, [classes, 2 W + 1]; longer jumps have the
            weight of -W or W.
        first: weights of the first position, [W]; later positions have the weight of the last element.
        p_null: probability of NULL.
        uniform: weight of the uniform distribution, which avoids zeros.
        step: filled with p(next position | last position), float64 [I (last position), I (next position)].
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
        alpha, beta: work space, [J, I + 1]; the last column is for the start state.
        posterior: filled with p(a_j = i | both sentences), [J, I]; 1 minus the sum of a row is the probability of NULL.
        moves: filled with the expected number of transitions, [I (last position), I (next position)].
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
    # Backward pass, scaled by the factors of the forward pass, so that posterior = forward mass * beta without division
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
        # The inner loops add to elements of arrays instead of a single sum, so that they are vectorised without
        # reordering floating-point additions
        for i in range(length):
            weight = ahead[i]
            for last in range(length):
                beta[j - 1, last] += turned[i, last] * weight
        for last in range(length):
            mass = alpha[j - 1, last]
            for i in range(length):
                moves[last, i] += mass * ahead[i]
    # step does not depend on j: multiply once, after the sum over j
    for last in range(length):
        for i in range(length):
            moves[last, i] *= step[last, i]
    for j in range(words):
        for i in range(length):
            posterior[j, i] *= beta[j, i]
    return log_likelihood


@kernel(**UNCOUNTED)
def viterbi(emission, null, step, begin, best, back, links):
    """Find the most probable path of one sentence pair.

    Args:
        emission, null, step, begin: as in ``forward_backward``.
        best: work space, [2, I + 1]: probability of the best path that ends in each state, for the previous and the
            current word in alternating rows; the last column is for the start state.
        back: work space, [J, I + 1]: previous state, or I + 1 if NULL generated the word and the state did not change.
        links: int64 [J], filled with the given position of every word, I for NULL.
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
        # only ratios matter, so that probabilities are divided by their maximum instead of taking logarithms
        for i in range(length + 1):
            now[i] /= highest
    state = np.argmax(best[words & 1, : length + 1])
    for j in range(words - 1, -1, -1):
        if back[j, state] == length + 1:
            links[j] = length
        else:
            links[j], state = state, back[j, state]


@kernel(**UNCOUNTED)
def path_score(links, lexical, log_step, log_begin, log_null):
    """Return the log-probability of a path.

    Args:
        links: [J], given position of every word, I for NULL.
        lexical: log p(f_j | e_i), [J, I + 1]; the last column is log p(f_j | NULL).
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
    block, corpus, given_classes, tables, p_null, last, counts, best
):
    """Run one pass over a block: collect expected counts or, if ``last``, set the best links.

    Sentence pairs with more than ``LONGEST`` words on a side are skipped; their links in ``best`` remain unchanged.

    Args:
        block, corpus: as in ``fast_align_block``.
        given_classes: class of every given word, int32 [given vocabulary].
        tables: parameters, ``HmmTables``.
        p_null: probability of NULL, or 0 for 1 / (I + 1), the probability of NULL and of each given word in Model 1.
        last: whether this is the last iteration, which aligns.
        counts: counts, ``HmmTables`` of int64 in fixed point, updated; empty if ``last``.
        best: [generated words], set if ``last``: given position with the highest posterior probability for every
            generated word, or -1 if NULL has a higher posterior probability.

    Returns:
        The log-likelihood of the generated sentences.
    """
    first, end, at = block
    starts, words, places, given_ids, given_offsets, generated_ids, generated_offsets = corpus
    t, t_null, jumps, beginnings = tables
    # work space for all sentence pairs of the block; its size is the length of the longest sentence
    size = 1
    for s in range(first, end):
        n, m = given_offsets[s + 1] - given_offsets[s], generated_offsets[s + 1] - generated_offsets[s]
        if max(n, m) <= LONGEST:
            size = max(size, n, m)
    entries = np.empty((size, size), np.int64)
    emission, posterior, step, moves = (np.empty((size, size)), np.empty((size, size)), np.empty((size, size)),
                                        np.empty((size, size)))  # fmt: skip
    alpha, beta = np.empty((size, size + 1)), np.empty((size, size + 1))
    begin, null = np.empty(size), np.empty(size)
    width = jumps.shape[1] // 2
    # floats are summed per block and added to the shared counts once: in a fixed order, with few atomic additions
    nulls, moved, begun = np.zeros(len(t_null)), np.zeros(jumps.shape), np.zeros(len(beginnings))
    log_likelihood, pairs = 0.0, at
    for s in range(first, end):
        given = given_ids[given_offsets[s] : given_offsets[s + 1]]
        start = generated_offsets[s]
        n, m = len(given), generated_offsets[s + 1] - start
        at, pairs = pairs, pairs + n * m
        if n == 0 or m == 0 or max(n, m) > LONGEST:
            continue
        empty = p_null if p_null > 0.0 else 1.0 / (n + 1)
        for j in range(m):
            f = generated_ids[start + j]
            null[j] = empty * t_null[f]
            look_up(starts, words, places, at + j * n, given, f, entries[j])
            for i in range(n):
                emission[j, i] = t[entries[j, i]]
        transitions(given_classes[given], jumps, beginnings, empty, UNIFORM, step[:n, :n], begin[:n])
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
                if entries[j, i] < len(counts.t):
                    add_count(counts.t, entries[j, i], posterior[j, i])
            nulls[generated_ids[start + j]] += max(left, 0.0)
        if not last:
            for i in range(n):
                begun[min(i, len(beginnings) - 1)] += posterior[0, i]
                for k in range(n):
                    moved[given_classes[given[i]], min(max(k - i, -width), width) + width] += moves[i, k]
    if not last:
        add_counts(counts.t_null, nulls)
        add_counts(counts.jumps.ravel(), moved.ravel())
        add_counts(counts.beginnings, begun)
    return log_likelihood
