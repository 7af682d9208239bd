"""Store of the scores of one neural feature, for the n-grams that the search requests.

The *store* is a growing automaton. A context is the input of the network without the predicted word, for a neural LM
the last order - 1 words of a hypothesis; contexts are numbered. An entry is a context with a following word, its score,
and the number of the context after the word. Hypotheses contain context numbers, so recombination compares integers.
The first request for an n-gram adds an entry; new entries are contiguous at the end of the store until they are scored.

A joint model also reads a window of source words, which has a number. Rows of its ``Store.contexts`` are [window,
preceding target words, the oldest first]. There are two kinds of rows:

* with a window: inputs of the network, to which the keys of entries refer.
* with the window ``NO_WINDOW``: states of hypotheses (their last target words), to which ``next`` of an entry refers.
"""

from typing import NamedTuple

import numpy as np

from rnnsmt.base.kernels.decorator import INNER, UNCOUNTED, kernel
from rnnsmt.base.kernels.numbers import mix
from rnnsmt.search.kernels.cells import context_after, context_of_feature

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
        contexts: ``int32`` [size + 1, width], inputs of the network; for a neural LM the last order - 1 word classes,
            the oldest first.
        context_slots: ``int32`` [2 * size], hash table of contexts, -1 in free slots.
        counts: ``int64`` [3].
    """

    entries: np.ndarray
    slots: np.ndarray
    contexts: np.ndarray
    context_slots: np.ndarray
    counts: np.ndarray


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def _context(store, before, word):
    """Return the number of the context after ``word`` in the context ``before``; add the context if it is new."""
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


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def add_entry(store, context, word):
    """Return the index of the entry of a word in a context, and whether it is new.

    A new entry gets the score NaN; the caller must set ``next``.
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


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def _entry(store, context, word, ends):
    """Return the index of the entry of a word in a context; a new entry gets the score NaN.

    ends: whether the word ends the sentence, so no context follows.
    """
    number, new = add_entry(store, context, word)
    if new:
        store.entries[number].next = np.int32(0) if ends else _context(store, context, word)
    return number


@kernel(**UNCOUNTED)
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


@kernel(**UNCOUNTED)
def gather(feature, requests, work, store, bounds, words, end):
    """Find or add the entries of all requests of a sentence in the store of a neural LM.

    Args:
        feature: number of the feature, a row of ``work.entries`` and ``work.end_contexts``, which are filled.
        requests: number of requests in ``work.phrases``.
        store: ``Store``, with free capacity for all n-grams of the requests.
        bounds: ``int64`` [targets + 1], range of each target phrase in ``words``.
        words: ``int32`` [words], word classes.
        end: class of ``</s>`` if the phrases complete the sentence, else -1.
    """
    for number in range(requests):
        request = work.phrases[number]
        index = request.first
        context = context_of_feature(work, request.context, feature)
        # word by word, because the entry of a word contains the context of the next word
        for position in range(bounds[request.target], bounds[request.target + 1]):
            entry = _entry(store, context, words[position], False)
            work.entries[feature, index] = entry
            index += 1
            context = store.entries[entry].next
        if end >= 0:
            work.entries[feature, index] = _entry(store, context, end, True)
        work.end_contexts[feature, number] = context
    store.counts[ASKED] += work.phrases[requests].first


@kernel(**UNCOUNTED)
def settle(requests, work, stores, constants):
    """Sum the weighted scores of the entries of every request, and number the context after it.

    Args:
        requests: number of requests.
        stores: one ``Store`` per neural feature.
    """
    for number in range(requests):
        request = work.phrases[number]
        weighted = 0.0
        for feature in range(len(stores)):
            store, total = stores[feature], 0.0
            for index in range(request.first, work.phrases[number + 1].first):
                total += np.float64(store.entries[work.entries[feature, index]].score)
            weighted += constants.neural_weights[feature] * total
        request.total = weighted
        request.end_context = context_after(work, number)


@kernel(**UNCOUNTED)
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


@kernel(**UNCOUNTED)
def derivation_scores(store, places, totals):
    """Sum the scores of the entries found by ``derivation_entries`` into ``totals`` ``float64`` [n]."""
    for d in range(totals.shape[0]):
        totals[d] = 0.0
        for index in range(places[d], places[d + 1]):
            totals[d] += np.float64(store.entries[places[index]].score)


NO_WINDOW = 0
"""Number that represents no window; windows are numbered from 1."""


class JointText(NamedTuple):
    """A text and its phrase pairs in the form that a joint model reads.

    Attributes:
        words: ``int32`` [words of all target phrases], word classes.
        targets: ``int64`` [target phrases + 1]; the words of phrase t are targets[t]..targets[t + 1] - 1 in ``words``.
        target_of: ``int32`` [pairs], target phrase of every pair.
        places: ``int8`` [target words of all pairs], the position in the source phrase with which a target word is
            affiliated.
        pairs: ``int64`` [pairs + 1]; the target words of pair p are pairs[p]..pairs[p + 1] - 1 in ``places``.
        windows: ``int32`` [source words of all sentences, each with ``</s>``], number of the window around a word.
        sentences: ``int64`` [sentences + 1]; the words of sentence s are sentences[s]..sentences[s + 1] - 1 in
            ``windows``.
    """

    words: np.ndarray
    targets: np.ndarray
    target_of: np.ndarray
    places: np.ndarray
    pairs: np.ndarray
    windows: np.ndarray
    sentences: np.ndarray


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def _row(store, values):
    """Return the number of the row of ``Store.contexts`` with these values ``int32`` [width]; add it if it is new."""
    size = values.shape[0]
    # hashed from the last value to the first, as in ``rebuild_slots``
    key = np.uint64(values[size - 1])
    for i in range(size - 2, -1, -1):
        key = mix(key) ^ np.uint64(values[i])
    last = store.context_slots.shape[0] - 1
    slot = np.int64(mix(key) & np.uint64(last))
    while store.context_slots[slot] != _NONE:
        known = store.context_slots[slot]
        same = True
        for i in range(size):
            same = same and store.contexts[known, i] == values[i]
        if same:
            return np.int32(known)
        slot = (slot + 1) & last
    number = store.counts[CONTEXTS]
    store.counts[CONTEXTS] = number + 1
    store.context_slots[slot] = number
    for i in range(size):
        store.contexts[number, i] = values[i]
    return np.int32(number)


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def _joint_entry(store, context, window, word, ends, values):
    """Return the index of the entry of a word with a window, after a context without a window.

    ends: whether the word ends the sentence, so no context follows. values: ``int32`` [width], scratch space.
    """
    size = values.shape[0]
    for i in range(size):
        values[i] = store.contexts[context, i]
    values[0] = window
    number, new = add_entry(store, _row(store, values), word)
    if new:
        after = np.int32(0)
        if not ends:
            values[0] = NO_WINDOW
            for i in range(1, size - 1):
                values[i] = values[i + 1]
            values[size - 1] = word
            after = _row(store, values)
        store.entries[number].next = after
    return number


@kernel(**INNER, **UNCOUNTED)
def _phrase(store, context, pair, window, text, values, out, place):
    """Write the entries of the target words of a pair after ``context`` to ``out`` from ``place`` on.

    window: index in ``text.windows`` of the first source word of the pair. values: ``int32`` [width], scratch space.
    Return the context after the phrase, and the place after its entries.
    """
    target = text.target_of[pair]
    begin, affiliated = text.targets[target], text.pairs[pair]
    for number in range(text.targets[target + 1] - begin):
        at = text.windows[window + text.places[affiliated + number]]
        entry = _joint_entry(store, context, at, text.words[begin + number], False, values)
        out[place] = entry
        place += 1
        context = store.entries[entry].next
    return context, place


@kernel()
def gather_joint(feature, sentence, requests, work, store, text, row_of, end):
    """Find or add the entries of all requests of a sentence.

    Args:
        feature: number of the feature, a row of ``work.entries`` and ``work.end_contexts``, which are filled.
        sentence: index of the sentence in the text.
        requests: number of requests in ``work.phrases``.
        store: ``Store``, with free capacity for all n-grams of the requests.
        text: ``JointText``.
        row_of: ``int32`` [options], phrase pair of every option.
        end: class of ``</s>`` if the phrases complete the sentence, else -1.
    """
    values = np.empty(store.contexts.shape[1], np.int32)
    first, last = text.sentences[sentence], text.sentences[sentence + 1] - 1
    for number in range(requests):
        request = work.phrases[number]
        context = context_of_feature(work, request.context, feature)
        pair, window = row_of[request.option], first + request.start
        context, index = _phrase(store, context, pair, window, text, values, work.entries[feature], request.first)
        if end >= 0:
            work.entries[feature, index] = _joint_entry(store, context, text.windows[last], end, True, values)
        work.end_contexts[feature, number] = context
    store.counts[ASKED] += work.phrases[requests].first


@kernel()
def joint_derivation_entries(offsets, rows, starts, sentences, store, text, end, out):
    """Find or add the entries of complete derivations, with ``</s>``.

    Args:
        offsets: ``int64`` [n + 1]; the phrases of derivation d are offsets[d]..offsets[d + 1] - 1.
        rows: ``int32`` [phrases of all derivations], their phrase pairs.
        starts: ``int32`` [phrases of all derivations], their first source words.
        sentences: ``int64`` [n], sentence of each derivation.
        store: ``Store``, with free capacity for all n-grams.
        text: ``JointText``.
        end: class of ``</s>``.
        out: ``int32`` [n + 1 + entries], filled as by ``derivation_entries``.
    """
    values = np.empty(store.contexts.shape[1], np.int32)
    count = offsets.shape[0] - 1
    used = np.int64(count + 1)
    for d in range(count):
        out[d] = used
        first, last = text.sentences[sentences[d]], text.sentences[sentences[d] + 1] - 1
        context = np.int32(0)
        for k in range(offsets[d], offsets[d + 1]):
            context, used = _phrase(store, context, rows[k], first + starts[k], text, values, out, used)
        out[used] = _joint_entry(store, context, text.windows[last], end, True, values)
        used += 1
    out[count] = used
