"""Sufficient statistics of BLEU for many candidates of the same sentences, and BLEU of many sums, compiled.

Equal to ``rnnsmt.bleu.multi_bleu``. All functions release the GIL and use no random numbers.
"""

import math

import numpy as np

from rnnsmt.bleu.multi_bleu import log_precision_and_penalty
from rnnsmt.kernels.decorator import kernel


@kernel()
def _slot(keys, node, word):
    """The place of ``(node, word)`` in an open-addressed table of int64 keys (-1 is free)."""
    key = (np.int64(node) << 32) | np.int64(word)
    mask = keys.size - 1
    place = (key * np.int64(-7046029254386353131) >> 20) & mask
    while keys[place] != -1 and keys[place] != key:
        place = (place + 1) & mask
    return place, key


@kernel()
def _reference_trie(references, offsets, first, last):
    """The n-grams of references ``first`` to ``last - 1`` as a trie.

    Node 0 is the empty n-gram, an edge is a word, the depth is the order; ``limit[node]`` is how often the n-gram
    occurs in the reference that has it most often.

    Returns:
        ``(keys, children, limit)``: the edges as an open-addressed table (see ``_slot``) with the node each leads to,
        and the limits, ``[nodes]``.
    """
    size = 16
    while size < 16 * (offsets[last] - offsets[first] + 1):
        size *= 2
    keys = np.full(size, -1, np.int64)
    children = np.zeros(size, np.int32)
    limit = np.zeros(size, np.int32)
    used = np.zeros(size, np.int32)
    nodes = 1
    for r in range(first, last):
        start, end = offsets[r], offsets[r + 1]
        used[:nodes] = 0
        for i in range(start, end):
            node = 0
            for j in range(i, min(i + 4, end)):
                place, key = _slot(keys, node, references[j])
                if keys[place] == -1:
                    keys[place] = key
                    children[place] = nodes
                    nodes += 1
                node = children[place]
                used[node] += 1
                limit[node] = max(limit[node], used[node])
    return keys, children, limit[:nodes]


@kernel()
def _count_matches(words, keys, children, limit, used, out):
    """Walk down the trie from each position of ``words``; a visit matches while the node's limit is not used up."""
    used[:] = 0
    out[:] = 0
    for i in range(words.size):
        node = 0
        for j in range(i, min(i + 4, words.size)):
            if words[j] < 0:
                break
            place, _ = _slot(keys, node, words[j])
            if keys[place] == -1:
                break
            node = children[place]
            used[node] += 1
            if used[node] <= limit[node]:
                out[j - i] += 1
    for order in range(4):
        out[4 + order] = max(words.size - order, 0)


@kernel()
def candidate_statistics(words, word_offsets, references, reference_offsets, number_of_references, offsets, out):
    """Statistics of candidates that are grouped by sentence.

    Args:
        words: int32, the candidates' words one after the other; a word that is in no reference is -1.
        word_offsets: int64 ``[N + 1]``.
        references: int32, the references' words; those of sentence ``s`` are numbers ``s * number_of_references`` to
            ``(s + 1) * number_of_references - 1`` in ``reference_offsets`` (int64 ``[S * number_of_references + 1]``).
        offsets: int64 ``[S + 1]``, where each sentence's candidates begin.
        out: int32 ``[N, 9]``, written.
    """
    for s in range(offsets.size - 1):
        if offsets[s] == offsets[s + 1]:
            continue
        first, last = s * number_of_references, (s + 1) * number_of_references
        keys, children, limit = _reference_trie(references, reference_offsets, first, last)
        used = np.zeros_like(limit)
        for n in range(offsets[s], offsets[s + 1]):
            length = word_offsets[n + 1] - word_offsets[n]
            _count_matches(words[word_offsets[n] : word_offsets[n + 1]], keys, children, limit, used, out[n])
            closest = np.int64(-1)
            for r in range(first, last):
                reference = reference_offsets[r + 1] - reference_offsets[r]
                gap, best_gap = abs(reference - length), abs(closest - length)
                if closest < 0 or gap < best_gap or (gap == best_gap and reference < closest):
                    closest = reference
            out[n, 8] = closest


_log_precision_and_penalty = kernel()(log_precision_and_penalty)


@kernel()
def bleu_of_statistics(total):
    """Corpus BLEU, 0 to 1, of summed statistics ``[9]``."""
    log_precision, log_penalty = _log_precision_and_penalty(total)
    return math.exp(log_precision + log_penalty)


@kernel()
def bleu_of_rows(totals, out):
    """Corpus BLEU, 0 to 1, of every row of ``totals`` ``[N, 9]`` into ``out`` ``[N]``."""
    for n in range(out.size):
        out[n] = bleu_of_statistics(totals[n])
