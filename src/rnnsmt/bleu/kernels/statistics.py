"""Numba kernels of BLEU: sufficient statistics of many candidates per sentence, and BLEU of many sums.

Results are equal to those of ``rnnsmt.bleu.multi_bleu``. All functions release the GIL and use no random numbers.
"""

import math

import numpy as np

from rnnsmt.base.kernels.decorator import kernel
from rnnsmt.bleu.multi_bleu import log_precision_and_penalty


@kernel()
def _slot(keys, node, word):
    """Return the slot of the edge ``(node, word)`` in a hash table of int64 keys, and its key.

    Open addressing with linear probing; the number of slots is a power of two; -1 marks a free slot. ``word`` must not
    be negative.
    """
    key = (np.int64(node) << 32) | np.int64(word)
    mask = keys.size - 1
    # multiplicative hashing by 2^64 / golden ratio (as int64); the low bits of the product, which depend on few
    # bits of the key, are dropped
    place = (key * np.int64(-7046029254386353131) >> 20) & mask
    while keys[place] != -1 and keys[place] != key:
        place = (place + 1) & mask
    return place, key


@kernel()
def _reference_trie(references, offsets, first, last):
    """Build a trie of the n-grams of references ``first`` to ``last - 1`` of one sentence.

    Node 0 is the empty n-gram, an edge is a word, and the depth of a node is the order of its n-gram.

    Args:
        references: int32, words of all references, concatenated.
        offsets: int64, first word of each reference.
        first, last: range of the references.

    Returns:
        ``(keys, children, limit)``: keys of the edges in a hash table (int64, see ``_slot``), node at the end of each
        edge (int32, same slots), and the maximum count of each n-gram in a single reference (int32 ``[nodes]``).
    """
    size = 16  # at most 4 n-grams begin at a word: the table is at most a quarter full, and nodes fit below ``size``
    while size < 16 * (offsets[last] - offsets[first] + 1):
        size *= 2
    keys = np.full(size, -1, np.int64)
    children = np.zeros(size, np.int32)
    limit = np.zeros(size, np.int32)
    used = np.zeros(size, np.int32)  # counts in the current reference
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
    """Count the clipped n-gram matches of one candidate in the trie of its references.

    Args:
        words: int32 ``[length]``, -1 for words that are not in any reference.
        keys, children, limit: see ``_reference_trie``.
        used: int32 ``[nodes]``, scratch buffer: occurrences of each n-gram in the candidate so far.
        out: int32 ``[9]``; the first eight statistics are written, the others set to 0.
    """
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
            if used[node] <= limit[node]:  # the sum over occurrences is min(count, limit)
                out[j - i] += 1
    for order in range(4):
        out[4 + order] = max(words.size - order, 0)


@kernel()
def candidate_statistics(words, word_offsets, references, reference_offsets, number_of_references, offsets, out):
    """Compute the statistics of candidates that are grouped by sentence.

    The trie of a sentence's references is built once and used for all of its candidates.

    Args:
        words: int32, words of all candidates, concatenated; -1 for a word that is not in any reference.
        word_offsets: int64 ``[N + 1]``, first word of each candidate.
        references: int32, words of all references, concatenated.
        reference_offsets: int64 ``[S * number_of_references + 1]``, first word of each reference; those of sentence
            ``s`` are ``s * number_of_references`` to ``(s + 1) * number_of_references - 1``.
        number_of_references: references per sentence.
        offsets: int64 ``[S + 1]``, first candidate of each sentence.
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
    """Return corpus BLEU (0 to 1) of summed statistics ``[9]``."""
    log_precision, log_penalty = _log_precision_and_penalty(total)
    return math.exp(log_precision + log_penalty)


@kernel()
def bleu_of_rows(totals, out):
    """Write corpus BLEU (0 to 1) of every row of ``totals`` ``[N, 9]`` to ``out`` ``[N]``."""
    for n in range(out.size):
        out[n] = bleu_of_statistics(totals[n])
