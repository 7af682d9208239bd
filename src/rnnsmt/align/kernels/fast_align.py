"""Kernels of fast_align (Dyer et al. 2013): a pass over a block of sentences, and the fit of the tension."""

import numpy as np

from rnnsmt.align.kernels.lexicon import look_up
from rnnsmt.kernels.decorator import kernel
from rnnsmt.kernels.fixed_point import add_count, add_counts

P_NULL = 0.08


@kernel()
def fast_align_block(
    first, behind, at, starts, words, cells, given_ids, given_offsets, generated_ids, generated_offsets, t, t_null,
    tension, last, counts, null_counts, best,
):  # fmt: skip
    """One iteration over a block: expected counts, or (``last``) the best links; returns the sum of the feature."""
    feature, nulls = 0.0, np.zeros(len(t_null))
    for s in range(first, behind):
        given = given_ids[given_offsets[s] : given_offsets[s + 1]]
        start = generated_offsets[s]
        n, m = len(given), generated_offsets[s + 1] - start
        prior, probability, found = np.empty(n), np.empty(n), np.empty(n, np.int64)
        for j in range(m if n > 0 else 0):
            f = generated_ids[start + j]
            z = diagonal_prior(j + 1, m, n, tension, prior) / (1.0 - P_NULL)
            null = t_null[f] * P_NULL
            total, best_i, best_p = null, -1, null
            look_up(starts, words, cells, at, given, f, found)
            at += n
            for i in range(n):
                p = t[found[i]] * prior[i] / z
                probability[i] = p
                total += p
                if p > best_p:
                    best_i, best_p = i, p
            if last:
                best[start + j] = best_i
                continue
            nulls[f] += null / total
            for i in range(n):
                p = probability[i] / total
                if found[i] < len(counts):
                    add_count(counts, found[i], p)
                # fast_align counts the generated position from 0 here and from 1 everywhere else
                feature -= p * abs((i + 1) / n - j / m)
    if not last:
        add_counts(null_counts, nulls)
    return feature


@kernel()
def diagonal_prior(j, m, n, tension, prior):
    """Fill prior [n] with exp(-tension |i/n - j/m|), i = 1 .. n: geometric on both sides of j n / m; their sum."""
    above = int(j * n / m)
    ratio, z = np.exp(-tension / n), 0.0
    for first, behind, step in ((above, n, 1), (above - 1, -1, -1)):
        weight = np.exp(-tension * abs((first + 1) / n - j / m))
        for i in range(first, behind, step):
            prior[i] = weight
            z += weight
            weight *= ratio
    return z


@kernel()
def _series(j, m, n, tension):
    """Closed form of the sums over i of exp(-tension |i/n - j/m|) and of its derivative by the tension."""
    floor = int(j * n / m)
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


@kernel()
def fit_tension(lengths, size_counts, observed, tension):
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
