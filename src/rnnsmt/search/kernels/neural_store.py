"""Store of the scores of one neural feature: the requests of the search, and the scores of earlier ones.

The *store* is a growing automaton. A context is what the network reads besides the word, for a neural LM the last
order - 1 words of a hypothesis, and has a number. An entry is a context with a following word, its score, and the
number of the context after the word. Hypotheses hold numbers of contexts, so recombination compares integers. The first
request for an n-gram adds an entry; new entries are contiguous at the end of the store until they are scored.

The contexts of a feature that also reads the source contain target words only: the rows of its store with a source
window are looked up for scoring, and ``next`` of its entries is a row without a window (``joint_store``).
"""

from typing import NamedTuple

import numpy as np

from rnnsmt.base.kernels.decorator import INNER, kernel
from rnnsmt.base.kernels.hashing import mix
from rnnsmt.search.kernels.joint_states import context_after, context_of_feature

_NONE = -1

ENTRY = np.dtype([("key", np.int64), ("score", np.float32), ("next", np.int32)])
"""``key`` is context << 32 | word; ``score`` is the natural-log probability, NaN until it is known; ``next`` is the
context after the word."""

ENTRIES, CONTEXTS, ASKED = range(3)
"""Indices into ``Store.counts``: number of entries, number of contexts, and number of n-grams requested."""


class Store(NamedTuple):
    """Arrays of the store. Context 0 is the beginning of a sentence.

    Attributes:
        entries: ``ENTRY`` [size].
        slots: ``int32`` [2 * size], hash table of entries, -1 in free slots.
        contexts: ``int32`` [size + 1, width], what the network reads; for a neural LM the last order - 1 word classes,
            the oldest first.
        context_slots: ``int32`` [2 * size], hash table of contexts, -1 in free slots.
        counts: ``int64`` [3].
    """

    entries: np.ndarray
    slots: np.ndarray
    contexts: np.ndarray
    context_slots: np.ndarray
    counts: np.ndarray


@kernel(forceinline=True, **INNER)
def _context(store, before, word):
    """Return the number of the context after ``word`` in the context ``before``; a new one is added."""
    size = store.contexts.shape[1]
    # the new context is before[1:] + [word]; hashed from the newest word to the oldest, as in ``rebuild_slots``
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
def add_entry(store, context, word):
    """Return the index of the entry of a word in a context, and whether it is new.

    A new one gets the score NaN; ``next`` is still to be set.
    """
    key = (np.int64(context) << np.int64(32)) | np.int64(word)
    last = store.slots.shape[0] - 1
    slot = np.int64(mix(np.uint64(key)) & np.uint64(last))
    while store.slots[slot] != _NONE:
        if store.entries[store.slots[slot]].key == key:
            return store.slots[slot], False
        slot = (slot + 1) & last
    number = np.int32(store.counts[ENTRIES])
    store.counts[ENTRIES] = number + 1
    store.slots[slot] = number
    store.entries[number].key = key
    store.entries[number].score = np.nan
    return number, True


@kernel(forceinline=True, **INNER)
def _entry(store, context, word, ends):
    """Return the index of the entry of a word in a context; a new one gets the score NaN.

    Args:
        ends: whether the word ends the sentence, so that no context follows.
    """
    number, new = add_entry(store, context, word)
    if new:
        store.entries[number].next = np.int32(0) if ends else _context(store, context, word)
    return number


@kernel()
def rebuild_slots(store):
    """Enter all entries and contexts into empty hash tables, after the store was enlarged."""
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
def gather(feature, requests, work, store, bounds, words, end):
    """Find or add the entries of all requests of a sentence in the store of a neural LM.

    Args:
        feature: number of the feature, a row of ``work.entries`` and ``work.end_contexts``, which are filled.
        requests: number of requests in ``work.phrases``.
        work: ``Work``.
        store: ``Store``, with free capacity for all n-grams of the requests.
        bounds: ``int64`` [targets + 1], range of each target phrase in ``words``.
        words: ``int32`` [words], word classes.
        end: class of ``</s>`` if the phrases complete the sentence, else -1.
    """
    for number in range(requests):
        request = work.phrases[number]
        place = request.first
        context = context_of_feature(work, request.context, feature)
        # word by word: the entry of a word leads to the context of the next one
        for position in range(bounds[request.target], bounds[request.target + 1]):
            entry = _entry(store, context, words[position], False)
            work.entries[feature, place] = entry
            place += 1
            context = store.entries[entry].next
        if end >= 0:
            work.entries[feature, place] = _entry(store, context, end, True)
        work.end_contexts[feature, number] = context
    store.counts[ASKED] += work.phrases[requests].first


@kernel()
def settle(requests, work, stores, constants):
    """Sum the weighted scores of the entries of every request, and number the context after it.

    Args:
        requests: number of requests.
        work: ``Work``.
        stores: one ``Store`` per neural feature.
        constants: ``SearchConstants``.
    """
    for number in range(requests):
        request = work.phrases[number]
        weighted = 0.0
        for feature in range(len(stores)):
            store, total = stores[feature], 0.0
            for place in range(request.first, work.phrases[number + 1].first):
                total += np.float64(store.entries[work.entries[feature, place]].score)
            weighted += constants.neural_weights[feature] * total
        request.total = weighted
        request.end_context = context_after(work, number)


@kernel()
def derivation_entries(offsets, targets, store, bounds, words, end, out):
    """Find or add the entries of complete derivations, with ``</s>``.

    Args:
        offsets: ``int64`` [n + 1]; the target phrases of derivation d are targets[offsets[d]:offsets[d + 1]].
        targets: ``int32`` [phrases of all derivations].
        store: ``Store``, with free capacity for all n-grams.
        bounds: ``int64`` [targets + 1], range of each target phrase in ``words``.
        words: ``int32`` [words], word classes.
        end: class of ``</s>``.
        out: ``int32`` [n + 1 + entries], filled: the entries of derivation d are out[out[d]:out[d + 1]], from n + 1 on.

    Returns:
        The end of the used part of ``out``.
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
    """Sum the scores of the entries found by ``derivation_entries`` into ``totals`` ``float64`` [n]."""
    for d in range(totals.shape[0]):
        totals[d] = 0.0
        for place in range(places[d], places[d + 1]):
            totals[d] += np.float64(store.entries[places[place]].score)
