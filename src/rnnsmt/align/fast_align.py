"""fast_align (Dyer, Chahuneau and Smith 2013), as ``fast_align -d -o -v`` and, for the reverse direction, ``-r``.

IBM Model 2 with p(a_j = i) proportional to exp(-tension |i/I - j/J|), a NULL probability of 0.08, a symmetric
Dirichlet prior of 0.01 on the lexical distributions (mean-field variational Bayes) and five iterations, the last of
which only aligns. The tension is fitted by gradient steps between the iterations. No random numbers are drawn, and
each direction is computed by one thread in corpus order, so the result does not depend on the number of threads.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numba import njit

from rnnsmt.align.bitext import Bitext
from rnnsmt.align.lexicon import Lexicon, build_lexicon, digamma, locate
from rnnsmt.align.pharaoh import Links

ITERATIONS = 5
P_NULL = 0.08
ALPHA = 0.01
TENSION = 4.0


def align(bitext: Bitext, threads: int = 1) -> tuple[Links, Links]:
    """Links of the forward (one source word a target word) and of the reverse direction, both source-target."""
    lexicon = build_lexicon(bitext)
    with ThreadPoolExecutor(max(1, min(threads, 2))) as pool:
        directions = [pool.submit(_one_direction, bitext, lexicon, reverse) for reverse in (False, True)]
        forward, reverse = (direction.result() for direction in directions)
    return forward, reverse


def _one_direction(bitext: Bitext, lexicon: Lexicon, reverse: bool) -> Links:
    """Train and align: every target word takes a source word or none (``reverse``: the other way round)."""
    generated = bitext.source if reverse else bitext.target
    given = bitext.target if reverse else bitext.source
    corpus = (*lexicon, bitext.source.ids, bitext.source.offsets, bitext.target.ids, bitext.target.offsets)
    lengths, size_counts = _sizes(generated.lengths, given.lengths)
    t = np.full(len(lexicon.words), 1e-9)
    t_null = np.full(len(generated.vocabulary), 1e-9)
    best = np.full(len(generated.ids), -1, np.int32)
    tension = TENSION
    for iteration in range(ITERATIONS):
        last = iteration == ITERATIONS - 1
        counts = np.zeros_like(t)
        null_counts = np.zeros_like(t_null)
        feature = _pass(*corpus, reverse, t, t_null, tension, last, counts, null_counts, best)
        if last:
            break
        if iteration > 0:
            tension = _fit_tension(lengths, size_counts, feature, tension)
        _normalise(*lexicon, reverse, len(given.vocabulary), counts, t)
        _normalise_null(null_counts, t_null)
    return _links(best, generated.offsets, reverse)


def _sizes(generated, given):
    """Distinct pairs of lengths [n, 2] and how often each occurs [n], of pairs without an empty side."""
    both = (generated > 0) & (given > 0)
    pairs, counts = np.unique(np.stack([generated[both], given[both]], 1), axis=0, return_counts=True)
    return pairs, counts


def _links(best, offsets, reverse: bool) -> Links:
    """``best`` [generated words]: position in the other sentence or -1."""
    sentence = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    position = (np.arange(len(best)) - offsets[sentence]).astype(np.int32)
    linked = best >= 0
    sizes = np.bincount(sentence[linked], minlength=len(offsets) - 1)
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    source, target = best[linked], position[linked]
    return Links(ends, target, source) if reverse else Links(ends, source, target)


@njit(cache=True, nogil=True)
def _pass(
    starts, words, source_ids, source_offsets, target_ids, target_offsets, reverse, t, t_null, tension, last,
    counts, null_counts, best,
):  # fmt: skip
    """One iteration over the corpus: expected counts, or (``last``) the best link of every word; the mean feature."""
    cells = np.empty((1, 1), np.int64)
    feature, generated_words, behind = 0.0, 0, 0
    for s in range(len(source_offsets) - 1):
        source = source_ids[source_offsets[s] : source_offsets[s + 1]]
        target = target_ids[target_offsets[s] : target_offsets[s + 1]]
        if len(source) > cells.shape[0] or len(target) > cells.shape[1]:
            cells = np.empty((max(len(source), cells.shape[0]), max(len(target), cells.shape[1])), np.int64)
        start, behind = behind, behind + (len(source) if reverse else len(target))
        if len(source) == 0 or len(target) == 0:
            continue
        locate(starts, words, source, target, cells)
        given, generated = (target, source) if reverse else (source, target)
        n, m = len(given), len(generated)
        generated_words += m
        probability = np.empty(n)
        for j in range(m):
            z = _z(j + 1, m, n, tension) / (1.0 - P_NULL)
            null = t_null[generated[j]] * P_NULL
            total, best_i, best_p = null, -1, null
            for i in range(n):
                cell = cells[j, i] if reverse else cells[i, j]
                p = t[cell] * np.exp(-tension * abs((i + 1) / n - (j + 1) / m)) / z
                probability[i] = p
                total += p
                if p > best_p:
                    best_i, best_p = i, p
            if last:
                best[start + j] = best_i
                continue
            null_counts[generated[j]] += null / total
            for i in range(n):
                p = probability[i] / total
                counts[cells[j, i] if reverse else cells[i, j]] += p
                # fast_align counts the generated position from 0 here and from 1 everywhere else
                feature -= p * abs((i + 1) / n - j / m)
    return feature / max(generated_words, 1)


@njit(cache=True, nogil=True)
def _series(j, m, n, tension):
    """Closed form of the sums over i of exp(-tension |i/n - j/m|) and of its derivative by the tension."""
    split = j * n / m
    floor = int(split)
    ratio, step = np.exp(-tension / n), -1.0 / n
    z, derivative = 0.0, 0.0
    for first, terms in ((floor + 1, n - floor), (floor, floor)):
        if terms > 0:
            a = -abs(first / n - j / m)
            g = np.exp(tension * a)
            z += g * (1.0 - ratio**terms) / (1.0 - ratio)
            g_behind, a_last = g * ratio**terms, step * (terms - 1) + a
            derivative += (a_last * g_behind - a * g) / (ratio - 1.0)
            derivative -= step * (g_behind - g * ratio) / ((ratio - 1.0) * (ratio - 1.0))
    return z, derivative


@njit(cache=True, nogil=True)
def _z(j, m, n, tension):
    return _series(j, m, n, tension)[0]


@njit(cache=True, nogil=True)
def _fit_tension(lengths, size_counts, observed, tension):
    """Eight gradient steps of 20 towards the tension whose expected feature equals the observed mean."""
    generated_words = 0.0
    for k in range(len(lengths)):
        generated_words += size_counts[k] * lengths[k, 0]
    for _ in range(8):
        expected = 0.0
        for k in range(len(lengths)):
            m, n = lengths[k]
            for j in range(1, m + 1):
                z, derivative = _series(j, m, n, tension)
                expected += size_counts[k] * derivative / z
        tension = min(max(tension + 20.0 * (observed - expected / generated_words), 0.1), 14.0)
    return tension


@njit(cache=True, nogil=True)
def _normalise(starts, words, reverse, given_words, counts, t):
    """Mean-field update of p(generated | given) with a symmetric Dirichlet prior over the words seen together."""
    totals = np.zeros(given_words)
    for e in range(len(starts) - 1):
        for k in range(starts[e], starts[e + 1]):
            totals[words[k] if reverse else e] += counts[k] + ALPHA
    for given in range(given_words):
        totals[given] = digamma(totals[given]) if totals[given] > 0 else 0.0
    for e in range(len(starts) - 1):
        for k in range(starts[e], starts[e + 1]):
            t[k] = np.exp(digamma(counts[k] + ALPHA) - totals[words[k] if reverse else e])


@njit(cache=True, nogil=True)
def _normalise_null(null_counts, t_null):
    """The same update for the distribution of NULL, over the whole vocabulary."""
    total = digamma(np.sum(null_counts) + ALPHA * len(null_counts))
    for f in range(len(null_counts)):
        t_null[f] = np.exp(digamma(null_counts[f] + ALPHA) - total)
