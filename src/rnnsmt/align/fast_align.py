"""fast_align (Dyer, Chahuneau and Smith 2013), with the options ``-d -o -v`` and, for the reverse direction, ``-r``.

The model is IBM Model 2 with p(a_j = i) proportional to exp(-tension |i/I - j/J|) for given position i and generated
position j, a NULL probability of 0.08, and a symmetric Dirichlet prior of 0.01 on the lexical distributions (mean-field
variational Bayes). There are five iterations, the last of which only aligns. Gradient steps between iterations fit the
tension. No random numbers are drawn.
"""

from collections.abc import Iterator

import numpy as np

from rnnsmt.align.direction import Aligner, Counts, Direction, Parameters
from rnnsmt.align.lexicon import look_up, normalise
from rnnsmt.base.kernels.decorator import kernel
from rnnsmt.base.kernels.numbers import add_count, add_counts
from rnnsmt.formats.pharaoh import MAX_POSITION

ITERATIONS = 5
"""Number of iterations, including the last one, which only aligns."""

ALPHA = 0.01
"""Parameter of the symmetric Dirichlet prior."""

TENSION = 4.0
"""Initial tension."""


P_NULL = 0.08
"""Probability of NULL, the default of fast_align."""


def begin(direction: Direction) -> Parameters:
    """Return the initial parameters: lexical probabilities of 1e-9, and the initial tension."""
    return {**direction.uniform(1e-9), "tension": np.array([TENSION])}


def iterate(direction: Direction, parameters: Parameters, done: int) -> Iterator[None]:
    """Run the iterations after the first ``done`` iterations; yield after each. The last iteration sets the links."""
    for iteration in range(done, ITERATIONS - 1):
        counts = direction.lexical_counts()
        feature = _expectation(direction, parameters, counts)
        if iteration > 0:
            _maximise_tension(direction, parameters, feature / len(direction.generated.ids))
        direction.estimate(parameters, *counts, normalise, ALPHA)
        yield
    _expectation(direction, parameters, None)
    yield


ALIGNER = Aligner(begin, iterate, ITERATIONS)


def _expectation(direction: Direction, parameters: Parameters, counts: tuple[Counts, Counts] | None) -> float:
    """Add to the counts of ``t`` and ``t_null``, or set the links if ``counts`` is None; return the sum of the feature.

    The feature is defined in ``fast_align_block``.
    """
    totals = counts or [np.zeros(0, np.int64)] * 2
    learnt = (parameters["t"], parameters["t_null"], parameters["tension"][0], counts is None, *totals)
    return direction.over_blocks(lambda *block: fast_align_block(block, direction.corpus, *learnt, parameters["best"]))


def _maximise_tension(direction: Direction, parameters: Parameters, feature: float) -> None:
    """Update the tension; ``feature`` is the mean of the feature over all generated words."""
    generated, given = direction.generated.lengths, direction.given.lengths
    # pack both lengths into an integer, so that np.unique counts distinct pairs of lengths; skip empty sentences
    sizes, times = np.unique((generated * (MAX_POSITION + 1) + given)[generated * given > 0], return_counts=True)
    lengths = np.stack(np.divmod(sizes, MAX_POSITION + 1), 1)
    parameters["tension"][0] = fit_tension(lengths, times, feature, parameters["tension"][0])


@kernel()
def fast_align_block(block, corpus, t, t_null, tension, last, counts, null_counts, best):
    """Run one iteration over a block of sentences: collect expected counts or, if ``last``, set the best links.

    Args:
        block: (first, end, at), as in ``Direction.over_blocks``.
        corpus: ``NumberedCorpus``.
        t: p(f | e), float32 [pairs + 1]; the last element is for pairs that are not in the lexicon.
        t_null: p(f | NULL), float64 [generated vocabulary].
        tension: tension of the diagonal prior.
        counts: expected counts of ``t``, int64 [pairs], updated; empty if ``last``.
        null_counts: expected counts of ``t_null``, int64 [generated vocabulary], updated; empty if ``last``.
        best: given position of every generated word, -1 for NULL, [generated words]; set if ``last``.

    Returns:
        The sum over the generated words of the expected value of the feature -abs(i/I - j/J); 0 if ``last``.
    """
    # NULL counts are summed per block and added to the totals once: floats are added in a fixed order, with few atomic
    # additions
    first, end, at = block
    starts, words, places, given_ids, given_offsets, generated_ids, generated_offsets = corpus
    feature, nulls = 0.0, np.zeros(len(t_null))
    for s in range(first, end):
        given = given_ids[given_offsets[s] : given_offsets[s + 1]]
        start = generated_offsets[s]
        n, m = len(given), generated_offsets[s + 1] - start
        prior, probability, entries = np.empty(n), np.empty(n), np.empty(n, np.int64)
        for j in range(m if n > 0 else 0):
            f = generated_ids[start + j]
            # divide by z / (1 - P_NULL): the prior of all given words sums to 1 - P_NULL
            z = diagonal_prior(j + 1, m, n, tension, prior) / (1.0 - P_NULL)
            null = t_null[f] * P_NULL
            total, best_i, best_p = null, -1, null
            look_up(starts, words, places, at, given, f, entries)
            at += n
            for i in range(n):
                p = t[entries[i]] * prior[i] / z
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
                if entries[i] < len(counts):
                    add_count(counts, entries[i], p)
                # as in fast_align, the generated position is 0-based in this feature, but 1-based everywhere else
                feature -= p * abs((i + 1) / n - j / m)
    if not last:
        add_counts(null_counts, nulls)
    return feature


@kernel()
def diagonal_prior(j, m, n, tension, prior):
    """Fill prior [n] with exp(-tension |i/n - j/m|), i = 1 .. n, and return the sum.

    Args:
        j: generated position, from 1.
        m, n: numbers of generated and given words.
        prior: float64 [n], filled.
    """
    # the values are two geometric series, upwards and downwards from the diagonal i = j n / m, so that exp() is not
    # computed for every position; above: 0-based position of the first i above the diagonal
    above = int(j * n / m)
    ratio, z = np.exp(-tension / n), 0.0
    for first, end, step in ((above, n, 1), (above - 1, -1, -1)):
        weight = np.exp(-tension * abs((first + 1) / n - j / m))
        for i in range(first, end, step):
            prior[i] = weight
            z += weight
            weight *= ratio
    return z


@kernel()
def _series(j, m, n, tension):
    """Return the sum over i = 1 .. n of exp(-tension |i/n - j/m|), and the derivative with respect to the tension.

    Both are computed in closed form, from a geometric and an arithmetico-geometric series on each side of the diagonal,
    as in ``DiagonalAlignment`` of fast_align.
    """
    floor = int(j * n / m)
    ratio, step = np.exp(-tension / n), -1.0 / n
    z, derivative = 0.0, 0.0
    for first, terms in ((floor + 1, n - floor), (floor, floor)):
        if terms > 0:
            # a, g: first terms of the arithmetic and of the geometric sequence, from the diagonal outwards
            a = -abs(first / n - j / m)
            g = np.exp(tension * a)
            z += g * (1.0 - ratio**terms) / (1.0 - ratio)
            g_after, a_last = g * ratio**terms, step * (terms - 1) + a
            derivative += (a_last * g_after - a * g) / (ratio - 1.0)
            derivative -= step * (g_after - g * ratio) / ((ratio - 1.0) * (ratio - 1.0))
    return z, derivative


@kernel()
def fit_tension(lengths, size_counts, observed, tension):
    """Return the tension after eight gradient steps of size 20.

    The gradient is the difference between the observed and the expected mean of the feature. The tension is limited to
    0.1 .. 14, as in fast_align.

    Args:
        lengths: distinct pairs (length of the generated sentence, length of the given sentence), int64 [n, 2]; both
            lengths are at least 1.
        size_counts: number of sentence pairs with these lengths, [n].
        observed: mean of the feature over the generated words under the posterior distribution of the links.
        tension: initial tension.
    """
    generated_words = 0.0
    for k in range(len(lengths)):
        generated_words += size_counts[k] * lengths[k, 0]
    for _ in range(8):
        expected = 0.0
        # expected value under the prior, which depends only on the sentence lengths
        for k in range(len(lengths)):
            m, n = lengths[k]
            for j in range(1, m + 1):
                z, derivative = _series(j, m, n, tension)
                expected += size_counts[k] * derivative / z
        tension = min(max(tension + 20.0 * (observed - expected / generated_words), 0.1), 14.0)
    return tension
