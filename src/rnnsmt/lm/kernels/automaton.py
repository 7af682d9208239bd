"""Queries of the n-gram LM's automaton, and the kernels that build it; ``rnnsmt.lm.automaton`` says what it is."""

from typing import NamedTuple

import numpy as np

from rnnsmt.kernels.decorator import kernel
from rnnsmt.kernels.hashing import mix

ROW = np.dtype([("key", np.int64), ("prob", np.float32), ("next", np.int32)])
"""One answer, 16 bytes, so that a look-up is one cache miss: natural-log probability and next state."""

STATE = np.dtype([("link", np.int32), ("backoff", np.float32)])
"""The next shorter context and what is charged for going there (natural log)."""

UNIGRAM = np.dtype([("prob", np.float32), ("next", np.int32)])


class LmArrays(NamedTuple):
    """The automaton for kernels. State 0 is the empty context.

    Attributes:
        rows: ``ROW`` [slots, a power of two], the hash table of (state << 32 | word); free slots have key -1.
        states: ``STATE`` [states].
        unigrams: ``UNIGRAM`` [words], answers in the empty context.
    """

    rows: np.ndarray
    states: np.ndarray
    unigrams: np.ndarray


@kernel(inline="always")
def lm_slot(state, word, mask):
    """Key of (state, word) and the slot of the hash table where the search for it begins."""
    key = (np.int64(state) << np.int64(32)) | np.int64(word)
    return key, np.int64(mix(np.uint64(key)) & np.uint64(mask))


@kernel()
def query(lm, state, word):
    """(natural-log probability ``float32``, next state ``int32``) of a word in a state."""
    total = np.float32(0.0)
    mask = lm.rows.shape[0] - 1
    while state != 0:
        key, slot = lm_slot(state, word, mask)
        while True:
            row = lm.rows[slot]
            if row.key == key:
                return total + row.prob, row.next
            if row.key == -1:
                break
            slot = (slot + 1) & mask
        context = lm.states[state]
        total += context.backoff
        state = context.link
    unigram = lm.unigrams[word]
    return total + unigram.prob, unigram.next


@kernel()
def score_sequence(lm, state, words):
    """(sum of natural-log probabilities, last state) of a word sequence ``int32`` [n]."""
    total = 0.0
    for word in words:
        prob, state = query(lm, state, word)
        total += prob
    return total, state


@kernel()
def _child(rows, state, word):
    """Node below ``state`` by ``word``, or -1."""
    if state == 0:
        return np.int64(word) + 1
    mask = rows.shape[0] - 1
    key, slot = lm_slot(state, word, mask)
    while True:
        row = rows[slot]
        if row.key == key:
            return np.int64(row.next)
        if row.key == -1:
            return np.int64(-1)
        slot = (slot + 1) & mask


@kernel()
def insert(rows, ngrams, values, first, extends, node_links):
    """Enter one order's n-grams as nodes numbered from ``first``.

    Returns -1, or the index of an n-gram whose context is missing, or -2 - index of one that is there twice.
    """
    order = ngrams.shape[1]
    mask = rows.shape[0] - 1
    for i in range(ngrams.shape[0]):
        context = np.int64(0)
        for k in range(order - 1):
            context = _child(rows, context, ngrams[i, k])
            if context < 0:
                return np.int64(i)
        key, slot = lm_slot(context, ngrams[i, order - 1], mask)
        while rows[slot].key != -1:
            if rows[slot].key == key:
                return np.int64(-2 - i)
            slot = (slot + 1) & mask
        rows[slot].key = key
        rows[slot].prob = values[i]
        rows[slot].next = first + i
        extends[context] = 1
        suffix = np.int64(node_links[context])
        while True:
            below = _child(rows, suffix, ngrams[i, order - 1])
            if below >= 0:
                break
            suffix = np.int64(node_links[suffix])
        node_links[first + i] = below
    return np.int64(-1)


@kernel()
def finish(rows, is_state, node_links, next_state, states, unigrams):
    """Turn nodes into states: the longest suffix of a node that is a state."""
    for node in range(1, node_links.shape[0]):
        shorter = next_state[node_links[node]]
        next_state[node] = node if is_state[node] else shorter
        if node < states.shape[0]:
            states[node].link = shorter
    for word in range(unigrams.shape[0]):
        unigrams[word].next = next_state[word + 1]
    for slot in range(rows.shape[0]):
        if rows[slot].key != -1:
            rows[slot].next = next_state[rows[slot].next]
