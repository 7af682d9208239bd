"""Kernels of IBM Model 4 (Brown et al. 1993): score of an alignment, hill climbing, counts.

Counts of lexical translations and fertilities are over the neighbourhood of the best alignment, those of placements are
of that alignment alone.

One sentence pair: I given words, J generated words, ``links`` [J] with the given position of every generated word, I
for NULL. The words that one given word generates are its cept; its first word is placed relative to the centre of the
cept before, by the classes of that cept's given word and of the placed word; every other word relative to the word
before it in the cept, by its own class.
"""

import numpy as np

from rnnsmt.align.kernels.lexicon import find
from rnnsmt.kernels.decorator import kernel

MAX_FERTILITY = 9

NEVER = -1e9

_CLOSE = -30.0  # neighbours less probable than exp of this are not looked at further


@kernel()
def placement(links, given_classes, generated_classes, head, inner, first, following, head_counts, inner_counts, add):
    """Log-probability of the positions of all cepts; with ``add`` the counts of what was used grow by it.

    Args:
        given_classes, generated_classes: class of every word, [I] and [J].
        head: log p(distance to the last centre), [given classes + 1 (sentence start), generated classes, 2 W + 1].
        inner: log p(distance to the last word of the cept), [generated classes, V + 1].
        first, following: work space, [I + 1] and [J].
    """
    length, words = len(given_classes), len(generated_classes)
    width, reach = head.shape[2] // 2, inner.shape[1] - 1
    first[: length + 1] = -1
    for j in range(words - 1, -1, -1):
        following[j] = first[links[j]]
        first[links[j]] = j
    centre, before = -1, head.shape[0] - 1
    score = 0.0
    for i in range(length):
        j = first[i]
        if j < 0:
            continue
        distance = min(max(j - centre, -width), width) + width
        score += head[before, generated_classes[j], distance]
        if add != 0.0:
            head_counts[before, generated_classes[j], distance] += add
        positions, number, last = j, 1, j
        j = following[j]
        while j >= 0:
            distance = min(j - last, reach)
            score += inner[generated_classes[j], distance]
            if add != 0.0:
                inner_counts[generated_classes[j], distance] += add
            positions, number, last = positions + j, number + 1, j
            j = following[j]
        centre = (positions + number - 1) // number
        before = given_classes[i]
    return score


@kernel()
def null_score(nulls, words, p_null, log_factorials):
    """log of C(J - nulls, nulls) p_null^nulls (1 - p_null)^(J - 2 nulls); impossible above half the words."""
    if 2 * nulls > words:
        return NEVER
    rest = words - nulls
    choices = log_factorials[rest] - log_factorials[nulls] - log_factorials[rest - nulls]
    return choices + nulls * np.log(p_null) + (rest - nulls) * np.log(1.0 - p_null)


@kernel()
def _move_gain(j, i, links, lexical, fertility, fertilities, p_null, log_factorials):
    """What moving word j to position i adds to the log-probability, without the placement."""
    words, length = lexical.shape[0], lexical.shape[1] - 1
    old = links[j]
    gain = lexical[j, i] - lexical[j, old]
    nulls = fertilities[length]
    if old < length:
        gain += fertility[old, min(fertilities[old] - 1, MAX_FERTILITY)]
        gain -= fertility[old, min(fertilities[old], MAX_FERTILITY)]
        now = nulls + (i == length)
    else:
        now = nulls - 1
    if i < length:
        gain += fertility[i, min(fertilities[i] + 1, MAX_FERTILITY)] - fertility[i, min(fertilities[i], MAX_FERTILITY)]
    if now != nulls:
        gain += null_score(now, words, p_null, log_factorials) - null_score(nulls, words, p_null, log_factorials)
    return gain


@kernel()
def neighbourhood(
    links, lexical, allowed, fertility, fertilities, given_classes, generated_classes, head, inner, p_null,
    log_factorials, first, following, nothing, posterior,
):  # fmt: skip
    """Score all moves of one word and swaps of two.

    Returns:
        gain, j, i, swap of the best neighbour (j = -1: none is better), and the sum of the probabilities of this
        alignment and its neighbours, relative to this one. ``posterior`` [J, I + 1] is filled with the sums of the
        neighbours that hold each changed link.
    """
    words, places = lexical.shape
    current = placement(
        links, given_classes, generated_classes, head, inner, first, following, nothing, nothing[0], 0.0
    )  # fmt: skip
    best, best_j, best_i, best_swap, total = 1e-6, -1, -1, False, 1.0
    posterior[:words, :places] = 0.0
    for j in range(words):
        old = links[j]
        for i in range(places):
            if i == old or not allowed[j, i]:
                continue
            gain = _move_gain(j, i, links, lexical, fertility, fertilities, p_null, log_factorials)
            if gain < _CLOSE:
                continue
            links[j] = i
            gain -= current
            gain += placement(
                links, given_classes, generated_classes, head, inner, first, following, nothing, nothing[0], 0.0
            )  # fmt: skip
            links[j] = old
            if gain > best:
                best, best_j, best_i, best_swap = gain, j, i, False
            weight = np.exp(min(gain, 1.0))
            total += weight
            posterior[j, i] += weight
    for j in range(words):
        here = links[j]
        for k in range(j + 1, words):
            there = links[k]
            if here == there or not (allowed[j, there] and allowed[k, here]):
                continue
            gain = lexical[j, there] + lexical[k, here] - lexical[j, here] - lexical[k, there]
            if gain < _CLOSE:
                continue
            links[j], links[k] = there, here
            gain -= current
            gain += placement(
                links, given_classes, generated_classes, head, inner, first, following, nothing, nothing[0], 0.0
            )  # fmt: skip
            links[j], links[k] = here, there
            if gain > best:
                best, best_j, best_i, best_swap = gain, j, k, True
            weight = np.exp(min(gain, 1.0))
            total += weight
            posterior[j, there] += weight
            posterior[k, here] += weight
    return best, best_j, best_i, best_swap, total


@kernel()
def _count_fertilities(links, given, fertilities, posterior, total, counts):
    """Expected fertilities, as if all mass of the neighbours came from moves; makes ``posterior`` probabilities."""
    length = len(given)
    for i in range(length):
        counts[given[i], min(fertilities[i], MAX_FERTILITY)] += 1.0
    for j in range(len(links)):
        old, left = links[j], 1.0
        for i in range(length + 1):
            posterior[j, i] /= total
            weight = posterior[j, i]
            left -= weight
            if weight > 0.0:
                if old < length:
                    counts[given[old], min(fertilities[old], MAX_FERTILITY)] -= weight
                    counts[given[old], min(fertilities[old] - 1, MAX_FERTILITY)] += weight
                if i < length:
                    counts[given[i], min(fertilities[i], MAX_FERTILITY)] -= weight
                    counts[given[i], min(fertilities[i] + 1, MAX_FERTILITY)] += weight
        posterior[j, old] = max(left, 0.0)


@kernel()
def model4_pass(  # noqa: PLR0912
    starts, words, given_ids, given_offsets, generated_ids, generated_offsets, given_classes, generated_classes,
    t, t_null, fertility, head, inner, p_null, candidates, longest, climbs, all_links,
    counts, null_counts, fertility_counts, head_counts, inner_counts,
):  # fmt: skip
    """One pass over the corpus: climb from ``all_links`` [generated words] and add up counts.

    ``counts``, ``null_counts`` and ``fertility_counts`` grow by those of the neighbourhood, ``head_counts`` and
    ``inner_counts`` by those of the alignment that the climb ends at.

    ``climbs`` = 0 only counts the alignment as it is. ``fertility`` is log p(number of words | e), [given vocabulary,
    MAX_FERTILITY + 1]; ``candidates`` [generated words, K] are the positions a word may move to beside NULL. Sentences
    over ``longest`` words are left out. Returns the log-probability of the alignments.
    """
    size = 1
    for s in range(len(given_offsets) - 1):
        n, m = given_offsets[s + 1] - given_offsets[s], generated_offsets[s + 1] - generated_offsets[s]
        if max(n, m) <= longest:
            size = max(size, n, m)
    lexical, posterior = np.empty((size, size + 1)), np.empty((size, size + 1))
    allowed, cells = np.empty((size, size + 1), np.bool_), np.empty((size, size), np.int64)
    fertilities, first, following = np.empty(size + 1, np.int64), np.empty(size + 1, np.int64), np.empty(size, np.int64)
    nothing = np.zeros((1, 1, 1))
    log_factorials = np.zeros(size + 1)
    for k in range(1, size + 1):
        log_factorials[k] = log_factorials[k - 1] + np.log(k)
    log_probability = 0.0
    for s in range(len(given_offsets) - 1):
        given = given_ids[given_offsets[s] : given_offsets[s + 1]]
        start, behind = generated_offsets[s], generated_offsets[s + 1]
        generated = generated_ids[start:behind]
        n, m = len(given), len(generated)
        if n == 0 or m == 0 or max(n, m) > longest:
            continue
        links = all_links[start:behind]
        for j in range(m):
            for i in range(n):
                cells[j, i] = find(starts, words, given[i], generated[j])
                lexical[j, i] = np.log(t[cells[j, i]])
            lexical[j, n] = np.log(t_null[generated[j]])
            allowed[j, :n] = False
            for i in candidates[start + j]:
                if i >= 0:
                    allowed[j, i] = True
            allowed[j, n] = True
        row = fertility[given]
        classes, others = given_classes[given], generated_classes[generated]
        fertilities[: n + 1] = 0
        for j in range(m):
            fertilities[links[j]] += 1
        total = 1.0
        posterior[:m, : n + 1] = 0.0
        for climb in range(climbs):
            _, j, i, swap, total = neighbourhood(
                links, lexical[:m, : n + 1], allowed, row, fertilities[: n + 1], classes, others, head, inner, p_null,
                log_factorials, first, following, nothing, posterior,
            )  # fmt: skip
            if j < 0 or climb == climbs - 1:
                break
            if swap:
                links[j], links[i] = links[i], links[j]
            else:
                fertilities[links[j]] -= 1
                fertilities[i] += 1
                links[j] = i
        _count_fertilities(links, given, fertilities[: n + 1], posterior, total, fertility_counts)
        log_probability += placement(
            links, classes, others, head, inner, first, following, head_counts, inner_counts, 1.0
        )  # fmt: skip
        log_probability += null_score(fertilities[n], m, p_null, log_factorials)
        for i in range(n):
            log_probability += row[i, min(fertilities[i], MAX_FERTILITY)]
        for j in range(m):
            log_probability += lexical[j, links[j]]
            null_counts[generated[j]] += posterior[j, n]
            for i in range(n):
                if posterior[j, i] > 0.0:
                    counts[cells[j, i]] += posterior[j, i]
    return log_probability
