"""Kernels that query and build the automaton of an n-gram LM, see ``rnnsmt.lm.automaton``."""

from typing import NamedTuple

import numpy as np

from rnnsmt.base.kernels.decorator import kernel
from rnnsmt.base.kernels.hashing import mix

ROW = np.dtype([("key", np.int64), ("prob", np.float32), ("next", np.int32)])
"""Row of the hash table: (state << 32 | word), natural-log probability and next state; 16 bytes, so that a look-up
costs one cache miss."""

STATE = np.dtype([("link", np.int32), ("backoff", np.float32)])
"""The next shorter context that is a state, and the back-off weight (natural log) of moving to it."""

UNIGRAM = np.dtype([("prob", np.float32), ("next", np.int32)])
"""Natural-log probability and next state of a word in the empty context."""


class LmArrays(NamedTuple):
    """Arrays of the automaton for kernels. State 0 is the empty context.

    Attributes:
        rows: ``ROW`` [slots, a power of two], hash table with open addressing; free slots have key -1.
        states: ``STATE`` [states].
        unigrams: ``UNIGRAM`` [words], entries of the empty context, indexed directly.
    """

    rows: np.ndarray
    states: np.ndarray
    unigrams: np.ndarray


@kernel(inline="always")
def lm_slot(state, word, mask):
    """Return the key of (state, word), and the slot of the hash table where its search begins."""
    key = (np.int64(state) << np.int64(32)) | np.int64(word)
    return key, np.int64(mix(np.uint64(key)) & np.uint64(mask))


@kernel()
def query(lm, state, word):
    """Return the natural-log probability (float32) of a word in a state, and the next state (int32)."""
    # single precision, as in KenLM
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
    """Return the sum of natural-log probabilities of a word sequence int32 [n], and the last state."""
    total = 0.0
    for word in words:
        prob, state = query(lm, state, word)
        total += prob
    return total, state


@kernel()
def _child(rows, state, word):
    """Return the node of the n-gram ``state`` + ``word``, or -1.

    Nodes of unigrams are word + 1; others are in the hash table.
    """
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
    """Insert the n-grams of one order as nodes with consecutive numbers from ``first``.

    Orders must be inserted in ascending order. While the automaton is built, keys and ``next`` contain nodes;
    ``finish`` replaces ``next`` by states.

    Args:
        rows: hash table, updated.
        ngrams: int32 [n, order].
        values: float32 [n], natural-log probabilities.
        first: node of the first n-gram.
        extends: uint8 [nodes], set to 1 for contexts.
        node_links: int32 [nodes], filled with the node of the longest proper suffix that is in the model.

    Returns:
        -1, or the index of an n-gram whose context is missing, or -2 - index of one that occurs twice.
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
        # the longest suffix of the n-gram: a suffix of its context that is followed by the last word; unigrams always
        # exist
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
    """Replace nodes by states: the state of a node is its longest suffix that is a state.

    Args:
        rows: hash table, ``next`` updated.
        is_state: bool [nodes], nodes that are contexts or have a back-off weight.
        node_links: int32 [nodes], as filled by ``insert``.
        next_state: int32 [nodes], work space, zeros: state of each node.
        states: ``STATE`` [nodes below the highest order], ``link`` filled.
        unigrams: ``UNIGRAM`` [words], ``next`` filled.
    """
    # suffixes have smaller node numbers than the node, so that their states are known
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
