"""Store of the scores of one neural feature, for the n-grams that the search requests.

The *store* is the cache of the scores. It is an automaton that grows during the search:

* A *context* is a numbered row: a window, then the preceding target words, the oldest first. The window is the number
  of the sequence of source words that a joint model also reads; it is ``NO_WINDOW`` in a neural LM.
* An *entry* is an n-gram: a context, which is the input of the network, and the word that follows it, with the score of
  the word and the number of the context after the word. This next context has the window ``NO_WINDOW``.

The state of a hypothesis is the context after its last word. Recombination thus compares integers, and hypotheses with
the same last target words are recombined. The first request for an n-gram adds an entry. New entries are contiguous at
the end of the store until they are scored.

With several neural features, a hypothesis has a *joint context*: the index of a row of ``NeuralWork.joint_contexts``,
which contains the context in the store of each feature. Rows are numbered in the order of their first appearance within
a sentence.
"""

from typing import NamedTuple

import numpy as np

from rnnsmt.base.kernels.decorator import INNER, UNCOUNTED, kernel
from rnnsmt.search.kernels.hash_tables import FREE, number_row
from rnnsmt.search.kernels.records import JOINT_CONTEXTS

ENTRY = np.dtype([("context", np.int32), ("word", np.int32), ("score", np.float32), ("next", np.int32)])
"""Entry of a store. ``context``: the input of the network; ``word``: the predicted word; ``score``: the natural-log
probability of the word, NaN until it is computed; ``next``: the context after the word, 0 after ``</s>``."""

ENTRIES, CONTEXTS, ASKED = range(3)
"""Indices into ``Store.counts``: number of entries, number of contexts, and number of n-grams requested."""

NO_WINDOW = 0
"""Window of contexts without source words; the windows of a joint model are numbered from 1."""


class Store(NamedTuple):
    """Arrays of a store. Context 0 is the beginning of a sentence.

    Attributes:
        entries: ``ENTRY`` [size].
        keys: ``int32`` [size, 2], view of ``context`` and ``word`` of the entries.
        slots: ``int32`` [2 * size], hash table of ``keys``.
        contexts: ``int32`` [size + 1, order], window, then the last order - 1 word classes, the oldest first.
        context_slots: ``int32`` [2 * size], hash table of ``contexts``.
        counts: ``int64`` [3], see ``ENTRIES``, ``CONTEXTS`` and ``ASKED``.
    """

    entries: np.ndarray
    keys: np.ndarray
    slots: np.ndarray
    contexts: np.ndarray
    context_slots: np.ndarray
    counts: np.ndarray


class NgramText(NamedTuple):
    """A text and its phrase pairs in the form that a network reads.

    Attributes:
        words: ``int32`` [words of all target phrases], word classes.
        targets: ``int64`` [target phrases + 1]; the words of phrase t are targets[t]..targets[t + 1] - 1 in ``words``.
        target_of: ``int32`` [pairs], target phrase of every pair.
        places: ``int8`` [target words of all pairs], the position in the source phrase with which each target word is
            affiliated; 0 for a neural LM.
        pairs: ``int64`` [pairs + 1]; the target words of pair p are pairs[p]..pairs[p + 1] - 1 in ``places``.
        windows: ``int32`` [source words of all sentences with ``</s>``], number of the window around each word.
        sentences: ``int64`` [sentences + 1]; the words of sentence s are sentences[s]..sentences[s + 1] - 1 in
            ``windows``.
        end: class of ``</s>``.
    """

    words: np.ndarray
    targets: np.ndarray
    target_of: np.ndarray
    places: np.ndarray
    pairs: np.ndarray
    windows: np.ndarray
    sentences: np.ndarray
    end: int


@kernel(**UNCOUNTED)
def first_context(work):
    """Clear the joint contexts of the previous sentence, if any; return the context at the beginning of a sentence.

    The result is always 0. With several neural features, it is the index of the first joint context, a row of zeros.
    """
    work.counts[JOINT_CONTEXTS] = 0
    rows = work.neural.joint_contexts
    if rows.shape[0] > 0:
        work.neural.joint_context_slots[:] = FREE
        rows[0] = 0
        number_row(rows, work.neural.joint_context_slots, work.counts, JOINT_CONTEXTS)
    return np.int32(0)


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def context_after(work, request):
    """Return the context of a hypothesis after a request, from ``NeuralWork.end_contexts``."""
    rows = work.neural.joint_contexts
    if rows.shape[0] == 0:
        return work.neural.end_contexts[0, request]
    for feature in range(rows.shape[1]):
        rows[work.counts[JOINT_CONTEXTS], feature] = work.neural.end_contexts[feature, request]
    return number_row(rows, work.neural.joint_context_slots, work.counts, JOINT_CONTEXTS)


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def _entry(store, context, window, word, ends):
    """Return the index of the entry of a word after a context with a window; add it with the score NaN if it is new.

    Args:
        context: the context, without a window.
        window: the window, or ``NO_WINDOW``.
        word: the word.
        ends: whether the word is ``</s>``, which no context follows.
    """
    rows, last = store.contexts, store.contexts.shape[1] - 1
    key = store.keys[store.counts[ENTRIES]]
    key[0] = context
    key[1] = word
    if window != NO_WINDOW:
        row = rows[store.counts[CONTEXTS]]
        for i in range(1, last + 1):
            row[i] = rows[context, i]
        row[0] = window
        key[0] = number_row(rows, store.context_slots, store.counts, CONTEXTS)
    new = store.counts[ENTRIES]
    number = number_row(store.keys, store.slots, store.counts, ENTRIES)
    if number == new:
        store.entries[number].score = np.nan
        store.entries[number].next = 0
        if not ends:
            row = rows[store.counts[CONTEXTS]]
            for i in range(1, last):
                row[i] = rows[context, i + 1]
            row[0] = NO_WINDOW
            row[last] = word
            store.entries[number].next = number_row(rows, store.context_slots, store.counts, CONTEXTS)
    return number


@kernel(**INNER, **UNCOUNTED)
def _phrase(store, context, pair, window, text, out, place):
    """Find or add the entries of the target words of a pair; write their indices to ``out``, beginning at ``place``.

    Args:
        context: the context before the phrase.
        window: index in ``text.windows`` of the first source word of the pair.

    Returns:
        The context after the phrase, and the index in ``out`` after its last entry.
    """
    target = text.target_of[pair]
    begin, affiliated = text.targets[target], text.pairs[pair]
    # word by word, because the entry of a word contains the context of the next word
    for number in range(text.targets[target + 1] - begin):
        at = text.windows[window + text.places[affiliated + number]]
        entry = _entry(store, context, at, text.words[begin + number], False)
        out[place] = entry
        place += 1
        context = store.entries[entry].next
    return context, place


@kernel(**UNCOUNTED)
def gather(sentence, requests, feature, joint_contexts, entries, end_contexts, store, text, row_of, ends):
    """Find or add the entries of all requests of a sentence.

    The arguments are single arrays instead of ``Work``: passing all of its arrays would take longer than the look-up.

    Args:
        sentence: index of the sentence in the text.
        requests: ``NEURAL_REQUEST`` [n + 1].
        feature: number of the feature, a column of ``joint_contexts``.
        joint_contexts: ``NeuralWork.joint_contexts``; empty if hypotheses have no joint contexts.
        entries: ``int32`` [at least ``first`` of request n], filled with the indices of the entries of all requests.
        end_contexts: ``int32`` [at least n], filled with the context after each request.
        store: ``Store`` with free capacity for all n-grams of the requests.
        text: ``NgramText``.
        row_of: ``int32`` [options], phrase pair of every option.
        ends: whether the phrases complete the sentence, so that ``</s>`` is scored.
    """
    first, last = text.sentences[sentence], text.sentences[sentence + 1] - 1
    for number in range(requests.shape[0] - 1):
        request = requests[number]
        context = request.context
        if joint_contexts.shape[0] > 0:
            context = joint_contexts[context, feature]
        pair, window = row_of[request.option], first + request.start
        context, index = _phrase(store, context, pair, window, text, entries, np.int64(request.first))
        if ends:
            entries[index] = _entry(store, context, text.windows[last], text.end, True)
        end_contexts[number] = context
    store.counts[ASKED] += requests[requests.shape[0] - 1].first


@kernel(**UNCOUNTED)
def settle(requests, work, stores, constants):
    """Compute the weighted sum of the scores of the entries of every request, and the context after the request.

    Args:
        requests: number of requests.
        stores: one ``Store`` per neural feature.
    """
    for number in range(requests):
        request = work.neural.requests[number]
        weighted = 0.0
        for feature in range(len(stores)):
            store, total = stores[feature], 0.0
            for index in range(request.first, work.neural.requests[number + 1].first):
                total += np.float64(store.entries[work.neural.entries[feature, index]].score)
            weighted += constants.neural_weights[feature] * total
        request.total = weighted
        request.end_context = context_after(work, number)


@kernel(**UNCOUNTED)
def derivation_entries(offsets, rows, starts, sentences, store, text, out):
    """Find or add the entries of complete derivations, with ``</s>``.

    Args:
        offsets: ``int64`` [n + 1]; the phrases of derivation d are offsets[d]..offsets[d + 1] - 1.
        rows: ``int32`` [phrases of all derivations], phrase pair of each phrase.
        starts: ``int32`` [phrases of all derivations], first source word of each phrase.
        sentences: ``int64`` [n], sentence of each derivation.
        store: ``Store`` with free capacity for all n-grams.
        text: ``NgramText``.
        out: ``int32`` [n + 1 + entries], filled: n + 1 offsets, then the indices of the entries; those of derivation d
            are out[out[d]:out[d + 1]].
    """
    count = offsets.shape[0] - 1
    used = np.int64(count + 1)
    for d in range(count):
        out[d] = used
        first, last = text.sentences[sentences[d]], text.sentences[sentences[d] + 1] - 1
        context = np.int32(0)
        for k in range(offsets[d], offsets[d + 1]):
            context, used = _phrase(store, context, rows[k], first + starts[k], text, out, used)
        out[used] = _entry(store, context, text.windows[last], text.end, True)
        used += 1
    out[count] = used


@kernel(**UNCOUNTED)
def derivation_scores(store, places, totals):
    """Fill ``totals``, ``float64`` [n], with the sums of the scores of the entries of each derivation.

    places: result ``out`` of ``derivation_entries``.
    """
    for d in range(totals.shape[0]):
        totals[d] = 0.0
        for index in range(places[d], places[d + 1]):
            totals[d] += np.float64(store.entries[places[index]].score)
