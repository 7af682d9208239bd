"""Kernels of the lexicon of co-occurring words (``rnnsmt.align.lexicon``): building it, look-up, normalisation."""

import numpy as np

from rnnsmt.kernels.decorator import kernel

FLOOR = 1e-7
"""No probability that is estimated by relative frequencies is taken for less."""


@kernel()
def partners_of_words(sentence_starts, sentences, ids, offsets, vocabulary, sizes, words):
    """Without room in ``words``: sizes[e + 1] = distinct partners of e. With room: fill row e from sizes[e] on."""
    seen = np.full(vocabulary, -1, np.int32)
    count = len(words) == 0
    for e in range(len(sentence_starts) - 1):
        size = 0
        for k in range(sentence_starts[e], sentence_starts[e + 1]):
            s = sentences[k]
            for p in range(offsets[s], offsets[s + 1]):
                f = ids[p]
                if seen[f] != e:
                    seen[f] = e
                    if not count:
                        words[sizes[e] + size] = f
                    size += 1
        if count:
            sizes[e + 1] = size


@kernel()
def transpose(starts, words, vocabulary):
    """Rows of the other side; each of them ascending."""
    other_starts = np.zeros(vocabulary + 1, np.int64)
    for f in words:
        other_starts[f + 1] += 1
    for f in range(vocabulary):
        other_starts[f + 1] += other_starts[f]
    free = other_starts[:-1].copy()
    other_words = np.empty(len(words), np.int32)
    for e in range(len(starts) - 1):
        for k in range(starts[e], starts[e + 1]):
            f = words[k]
            other_words[free[f]] = e
            free[f] += 1
    return other_starts, other_words


@kernel()
def find(starts, words, e, f):
    """Where the lexicon keeps the pair (e, f); the pair must be in it."""
    low, high = starts[e], starts[e + 1] - 1
    while low < high:
        middle = (low + high) >> 1
        if words[middle] < f:
            low = middle + 1
        else:
            high = middle
    return low


@kernel()
def look_up(starts, words, cells, at, given, f, found):
    """Fill ``found`` [I] with where the lexicon keeps the pairs of the given words of a sentence with the word f.

    ``at`` is the number of word pairs in the corpus before these: as far as ``cells`` reaches it has the answers.
    """
    if at + len(given) <= len(cells):
        for i in range(len(given)):
            found[i] = cells[at + i]
    else:
        for i in range(len(given)):
            found[i] = find(starts, words, given[i], f)


@kernel()
def corpus_cells(starts, words, given_ids, given_offsets, generated_ids, generated_offsets, cells):
    """Fill ``cells`` for ``look_up``: by sentence, generated and given word, as far as it has room."""
    at = 0
    for s in range(len(given_offsets) - 1):
        for p in range(generated_offsets[s], generated_offsets[s + 1]):
            for k in range(given_offsets[s], given_offsets[s + 1]):
                if at == len(cells):
                    return
                cells[at] = find(starts, words, given_ids[k], generated_ids[p])
                at += 1


@kernel()
def relative_frequencies(starts, counts, t):
    """Maximum-likelihood estimate of every row of t = p(f | e), but at least ``FLOOR``; uniform without counts."""
    for e in range(len(starts) - 1):
        total = 0.0
        for k in range(starts[e], starts[e + 1]):
            total += counts[k]
        for k in range(starts[e], starts[e + 1]):
            t[k] = max(counts[k] / total, FLOOR) if total > 0.0 else 1.0 / (starts[e + 1] - starts[e])


@kernel()
def normalise(starts, counts, alpha, t):
    """Mean-field update of every row of t = p(f | e) under a symmetric Dirichlet prior over the words seen with e."""
    for e in range(len(starts) - 1):
        total = 0.0
        for k in range(starts[e], starts[e + 1]):
            total += counts[k] + alpha
        if total > 0.0:
            log_total = digamma(total)
            for k in range(starts[e], starts[e + 1]):
                t[k] = max(np.exp(digamma(counts[k] + alpha) - log_total), 1e-12)


@kernel()
def digamma(x):
    """The logarithmic derivative of the gamma function, for x > 0, to about 1e-10 (asymptotic series above 6)."""
    result = 0.0
    while x < 6.0:
        result -= 1.0 / x
        x += 1.0
    y = 1.0 / (x * x)
    series = y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y * (1 / 132)))))
    return result + np.log(x) - 0.5 / x - series
