"""What a neural LM is asked during the search, and what it has answered before, compiled.

The *store* is an automaton that grows: a context is the last words of a hypothesis and has a number, an entry is a
context with the word that follows, its score and the number of the context that then begins. Hypotheses hold numbers
of contexts, so that recombination compares integers. An n-gram is a new entry the first time it is asked for; new
entries lie together at the end, waiting for their score.
"""

from typing import NamedTuple

import numpy as np

from rnnsmt.kernels.decorator import INNER, kernel
from rnnsmt.kernels.hashing import mix

_NONE = -1

ENTRY = np.dtype([("key", np.int64), ("score", np.float32), ("next", np.int32)])
"""Context << 32 | word; natural-log probability; the context after the word."""

ENTRIES, CONTEXTS, ASKED = range(3)
"""Entries of ``Store.counts``: how many entries and contexts there are, how many n-grams were asked for."""


class Store(NamedTuple):
    """entries: records; contexts: ``int32`` [., order - 1], oldest word first; hash slots of both (-1: free)."""

    entries: np.ndarray
    slots: np.ndarray
    contexts: np.ndarray
    context_slots: np.ndarray
    counts: np.ndarray


@kernel(forceinline=True, **INNER)
def _context(store, before, word):
    """The number of the context that begins after ``word`` in context ``before``."""
    size = store.contexts.shape[1]
    key = np.uint64(word)
    for i in range(size - 1, 0, -1):
        key = mix(key) ^ np.uint64(store.contexts[before, i])
    last = store.context_slots.shape[0] - 1
    slot = np.int64(mix(key) & np.uint64(last))
    while store.context_slots[slot] != _NONE:
        known = store.context_slots[slot]
        same = store.contexts[known, size - 1] == word
        for i in range(size - 1):
            same = same and store.contexts[known, i] == store.contexts[before, i + 1]
        if same:
            return np.int32(known)
        slot = (slot + 1) & last
    number = store.counts[CONTEXTS]
    store.counts[CONTEXTS] = number + 1
    store.context_slots[slot] = number
    for i in range(size - 1):
        store.contexts[number, i] = store.contexts[before, i + 1]
    store.contexts[number, size - 1] = word
    return np.int32(number)


@kernel(forceinline=True, **INNER)
def _entry(store, context, word, ends):
    """The entry of a word in a context; a new one waits for its score. ``ends``: nothing follows the word."""
    key = (np.int64(context) << np.int64(32)) | np.int64(word)
    last = store.slots.shape[0] - 1
    slot = np.int64(mix(np.uint64(key)) & np.uint64(last))
    while store.slots[slot] != _NONE:
        if store.entries[store.slots[slot]].key == key:
            return store.slots[slot]
        slot = (slot + 1) & last
    number = np.int32(store.counts[ENTRIES])
    store.counts[ENTRIES] = number + 1
    store.slots[slot] = number
    store.entries[number].key = key
    store.entries[number].score = np.nan
    store.entries[number].next = np.int32(0) if ends else _context(store, context, word)
    return number


@kernel()
def rebuild_slots(store):
    """Enter all entries and contexts into empty slots (after they were given more room)."""
    last = store.slots.shape[0] - 1
    for number in range(store.counts[ENTRIES]):
        slot = np.int64(mix(np.uint64(store.entries[number].key)) & np.uint64(last))
        while store.slots[slot] != _NONE:
            slot = (slot + 1) & last
        store.slots[slot] = number
    last = store.context_slots.shape[0] - 1
    size = store.contexts.shape[1]
    for number in range(store.counts[CONTEXTS]):
        key = np.uint64(store.contexts[number, size - 1])
        for i in range(size - 2, -1, -1):
            key = mix(key) ^ np.uint64(store.contexts[number, i])
        slot = np.int64(mix(key) & np.uint64(last))
        while store.context_slots[slot] != _NONE:
            slot = (slot + 1) & last
        store.context_slots[slot] = number


@kernel()
def gather(requests, work, store, bounds, words, end):
    """Find the entries of all requests in the store; ``end``: the class of ``</s>`` where phrases are last, or -1."""
    used = 0
    for number in range(requests):
        request = work.phrases[number]
        request.first = used
        context = request.context
        for position in range(bounds[request.target], bounds[request.target + 1]):
            entry = _entry(store, context, words[position], False)
            work.entries[used] = entry
            used += 1
            context = store.entries[entry].next
        if end >= 0:
            work.entries[used] = _entry(store, context, end, True)
            used += 1
        request.end_context = context
    work.entries[used] = _NONE
    store.counts[ASKED] += used
    if requests < work.phrases.shape[0]:
        work.phrases[requests].first = used


@kernel()
def settle(requests, work, store):
    """Add up the scores of every request."""
    for number in range(requests):
        total = 0.0
        for place in range(work.phrases[number].first, work.phrases[number + 1].first):
            total += np.float64(store.entries[work.entries[place]].score)
        work.phrases[number].total = total


@kernel()
def derivation_entries(offsets, targets, store, bounds, words, end, out):
    """Entries of whole derivations: target phrases of d are targets[offsets[d]:offsets[d + 1]]; (how many in all).

    Args:
        out: ``int32`` [n + 1 + entries]: where the entries of a derivation begin, then the entries, from n + 1 on.
    """
    count = offsets.shape[0] - 1
    used = count + 1
    for d in range(count):
        out[d] = used
        context = np.int32(0)
        for k in range(offsets[d], offsets[d + 1]):
            for position in range(bounds[targets[k]], bounds[targets[k] + 1]):
                entry = _entry(store, context, words[position], False)
                out[used] = entry
                used += 1
                context = store.entries[entry].next
        out[used] = _entry(store, context, end, True)
        used += 1
    out[count] = used
    return used


@kernel()
def derivation_scores(store, places, totals):
    """Sum the entries that ``derivation_entries`` has found, derivation by derivation, into ``totals`` float64 [n]."""
    for d in range(totals.shape[0]):
        totals[d] = 0.0
        for place in range(places[d], places[d + 1]):
            totals[d] += np.float64(store.entries[places[place]].score)
