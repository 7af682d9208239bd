"""The store of a neural feature that reads a window of source words and the target words before, as a joint model.

Rows of ``Store.contexts`` are [window, target words before, the oldest first], where a window is a number. There are
rows of two kinds:

* with a window: what the network reads; entries have such a row in their key.
* with the window ``NO_WINDOW``: the states of hypotheses, their last target words. ``next`` of an entry is such a row.
"""

from typing import NamedTuple

import numpy as np

from rnnsmt.base.kernels.decorator import INNER, kernel
from rnnsmt.base.kernels.hashing import mix
from rnnsmt.search.kernels.joint_states import context_of_feature
from rnnsmt.search.kernels.neural_store import ASKED, CONTEXTS, add_entry

NO_WINDOW = 0
"""Number of no window; numbers of windows begin at 1."""

_NONE = -1


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


@kernel(forceinline=True, **INNER)
def _row(store, values):
    """Return the number of the row of ``Store.contexts`` with these values ``int32`` [width]; a new one is added."""
    size = values.shape[0]
    # hashed from the last value to the first, as in ``neural_store.rebuild_slots``
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
    store.contexts[number] = values
    return np.int32(number)


@kernel(forceinline=True, **INNER)
def _entry(store, context, window, word, ends, values):
    """Return the index of the entry of a word with a window after a context without one.

    Args:
        ends: whether the word ends the sentence, so that no context follows.
        values: ``int32`` [width], scratch space.
    """
    size = values.shape[0]
    values[:] = store.contexts[context]
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


@kernel(**INNER)
def _phrase(store, context, pair, window, text, values, out, place):
    """Write the entries of the target words of a pair after ``context`` to ``out`` from ``place`` on.

    Args:
        window: index in ``text.windows`` of the first source word of the pair.
        values: ``int32`` [width], scratch space.

    Returns:
        The context after the phrase, and the place after its entries.
    """
    target = text.target_of[pair]
    begin, affiliated = text.targets[target], text.pairs[pair]
    for number in range(text.targets[target + 1] - begin):
        at = text.windows[window + text.places[affiliated + number]]
        entry = _entry(store, context, at, text.words[begin + number], False, values)
        out[place] = entry
        place += 1
        context = store.entries[entry].next
    return context, place


@kernel()
def gather(feature, sentence, requests, work, store, text, row_of, end):
    """Find or add the entries of all requests of a sentence.

    Args:
        feature: number of the feature, a row of ``work.entries`` and ``work.end_contexts``, which are filled.
        sentence: index of the sentence in the text.
        requests: number of requests in ``work.phrases``.
        work: ``Work``.
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
        context, place = _phrase(store, context, pair, window, text, values, work.entries[feature], request.first)
        if end >= 0:
            work.entries[feature, place] = _entry(store, context, text.windows[last], end, True, values)
        work.end_contexts[feature, number] = context
    store.counts[ASKED] += work.phrases[requests].first


@kernel()
def derivation_entries(offsets, rows, starts, sentences, store, text, end, out):
    """Find or add the entries of complete derivations, with ``</s>``.

    Args:
        offsets: ``int64`` [n + 1]; the phrases of derivation d are offsets[d]..offsets[d + 1] - 1.
        rows: ``int32`` [phrases of all derivations], their phrase pairs.
        starts: ``int32`` [phrases of all derivations], their first source words.
        sentences: ``int64`` [n], sentence of each derivation.
        store: ``Store``, with free capacity for all n-grams.
        text: ``JointText``.
        end: class of ``</s>``.
        out: ``int32`` [n + 1 + entries], filled as by ``neural_store.derivation_entries``.
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
        out[used] = _entry(store, context, text.windows[last], end, True, values)
        used += 1
    out[count] = used
