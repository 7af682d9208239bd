"""Kernels of the lexicon of co-occurring words (``rnnsmt.align.lexicon``): building it, look-up, normalisation."""

import numpy as np

from rnnsmt.kernels.decorator import kernel
from rnnsmt.kernels.fixed_point import ONE
from rnnsmt.kernels.sorted_values import lower_bound

FLOOR = 1e-7
"""No probability that is estimated by relative frequencies is taken for less."""

WEAKEST = 255
"""The last step of ``weakness``."""


@kernel()
def sentences_of_words(ids, offsets, starts, sentences):
    """Fill ``sentences`` from ``starts[w]`` on with the sentences that word w is in, one for each occurrence."""
    free = starts[:-1].copy()
    for s in range(len(offsets) - 1):
        for p in range(offsets[s], offsets[s + 1]):
            sentences[free[ids[p]]] = s
            free[ids[p]] += 1


@kernel()
def sentence_frequencies(ids, offsets, frequencies):
    """Fill ``frequencies`` [vocabulary] with the number of sentences that a word is in."""
    last = np.full(len(frequencies), -1, np.int64)
    for s in range(len(offsets) - 1):
        for p in range(offsets[s], offsets[s + 1]):
            if last[ids[p]] != s:
                last[ids[p]] = s
                frequencies[ids[p]] += 1


@kernel()
def weakness(together, one, other):
    """How little two words have to do with each other: 4 log2 of n(e) n(f) / n(e, f)^2, in sentences; 0 .. 255."""
    return min(np.int64(4.0 * np.log2(np.float64(one) * other / (np.float64(together) * together))), WEAKEST)


@kernel()
def partners_of_words(
    first, behind, sentence_starts, sentences, ids, offsets, given_frequencies, generated_frequencies, weakest, sizes,
    words, strengths,
):  # fmt: skip
    """Distinct partners of the given words ``first`` .. ``behind`` - 1, without pairs weaker than ``weakest``.

    Without room in ``words``: sizes[e + 1] = how many, and ``strengths`` [WEAKEST + 1] gets the number of pairs of each
    ``weakness``. With room: the partners of e, ascending, from words[sizes[e]] on.
    """
    row = np.full(len(generated_frequencies), -1, np.int32)
    together, last = np.empty(len(row), np.int32), np.empty(len(row), np.int32)
    found = np.empty(len(row), np.int32)
    for e in range(first, behind):
        partners = 0
        for k in range(sentence_starts[e], sentence_starts[e + 1]):
            s = sentences[k]
            for p in range(offsets[s], offsets[s + 1]):
                f = ids[p]
                if row[f] != e:
                    row[f], together[f], last[f] = e, 1, s
                    found[partners] = f
                    partners += 1
                elif last[f] != s:
                    together[f] += 1
                    last[f] = s
        if len(words) == 0:
            size = 0
            for k in range(partners):
                f = found[k]
                step = weakness(together[f], given_frequencies[e], generated_frequencies[f])
                strengths[step] += 1
                size += step <= weakest
            sizes[e + 1] = size
            continue
        at = sizes[e]
        for k in range(partners):
            f = found[k]
            if weakest < WEAKEST and weakness(together[f], given_frequencies[e], generated_frequencies[f]) > weakest:
                continue
            words[at] = f
            at += 1
        words[sizes[e] : at].sort()


@kernel()
def find(starts, words, e, f):
    """Where the lexicon keeps the pair (e, f); ``len(words)`` where it does not."""
    end = starts[e + 1]
    place = lower_bound(words, starts[e], end, f)
    return place if place < end and words[place] == f else len(words)


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
def corpus_cells(
    first, behind, at, starts, words, given_ids, given_offsets, generated_ids, generated_offsets, cells
):  # fmt: skip
    """Fill ``cells`` for ``look_up``, of a block of sentences: by sentence, generated and given word."""
    for s in range(first, behind):
        for p in range(generated_offsets[s], generated_offsets[s + 1]):
            for k in range(given_offsets[s], given_offsets[s + 1]):
                if at >= len(cells):
                    return
                cells[at] = find(starts, words, given_ids[k], generated_ids[p])
                at += 1


@kernel()
def mark_pairs(
    first, behind, starts, words, given_ids, given_offsets, generated_ids, generated_offsets, marks
):  # fmt: skip
    """Set ``marks`` [pairs + 1] where the lexicon keeps the word pairs of a block of sentences."""
    for s in range(first, behind):
        for p in range(generated_offsets[s], generated_offsets[s + 1]):
            for k in range(given_offsets[s], given_offsets[s + 1]):
                marks[find(starts, words, given_ids[k], generated_ids[p])] = True


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
    """Mean-field update of every row of t = p(f | e) under a symmetric Dirichlet prior over the words seen with e.

    ``counts`` as ``kernels.fixed_point`` keeps them.
    """
    for e in range(len(starts) - 1):
        total = 0.0
        for k in range(starts[e], starts[e + 1]):
            total += counts[k] / ONE + alpha
        if total > 0.0:
            log_total = digamma(total)
            for k in range(starts[e], starts[e + 1]):
                t[k] = max(np.exp(digamma(counts[k] / ONE + alpha) - log_total), 1e-12)


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
