"""Sufficient statistics of BLEU for many candidates of the same sentences, compiled; equal to ``multi_bleu``."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _slot(keys, node, word):
    """The place of ``(node, word)`` in an open-addressed table of int64 keys (-1 is free)."""
    key = (np.int64(node) << 32) | np.int64(word)
    mask = keys.size - 1
    place = (key * np.int64(-7046029254386353131) >> 20) & mask
    while keys[place] != -1 and keys[place] != key:
        place = (place + 1) & mask
    return place, key


@njit(cache=True, nogil=True)
def candidate_statistics(words, word_offsets, references, reference_offsets, number_of_references, offsets, out):
    """Statistics of candidates that are grouped by sentence.

    The n-grams of a sentence's references form a trie: node 0 is the empty n-gram, an edge is a word, the depth is the
    order. ``limit[node]`` is how often the n-gram occurs in the reference that has it most often. A candidate walks
    down from each of its positions; a visit counts as a match while the node's limit is not used up.

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
        size = 16
        while size < 16 * (reference_offsets[last] - reference_offsets[first] + 1):
            size *= 2
        keys = np.full(size, -1, np.int64)
        children = np.zeros(size, np.int32)
        limit = np.zeros(size, np.int32)
        used = np.zeros(size, np.int32)
        nodes = 1
        for r in range(first, last):
            start, end = reference_offsets[r], reference_offsets[r + 1]
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
        for n in range(offsets[s], offsets[s + 1]):
            start, end = word_offsets[n], word_offsets[n + 1]
            length = end - start
            used[:nodes] = 0
            for j in range(9):
                out[n, j] = 0
            for i in range(start, end):
                node = 0
                for j in range(i, min(i + 4, end)):
                    if words[j] < 0:
                        break
                    place, key = _slot(keys, node, words[j])
                    if keys[place] == -1:
                        break
                    node = children[place]
                    used[node] += 1
                    if used[node] <= limit[node]:
                        out[n, j - i] += 1
            for order in range(4):
                out[n, 4 + order] = max(length - order, 0)
            closest = np.int64(-1)
            for r in range(first, last):
                reference = reference_offsets[r + 1] - reference_offsets[r]
                gap, best_gap = abs(reference - length), abs(closest - length)
                if closest < 0 or gap < best_gap or (gap == best_gap and reference < closest):
                    closest = reference
            out[n, 8] = closest
