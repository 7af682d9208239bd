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
from rnnsmt.search.kernels.edges import target_group
from rnnsmt.search.kernels.records import STAMP
from rnnsmt.search.kernels.stack import last_place, recombination_key

_NONE = -1

_OTHER, _LEADER, _KEPT = range(3)
"""Ranks of cells, in ``Work.active``: the leader is the best of those that the n-gram search would recombine."""

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
    store.contexts[number, : size - 1] = store.contexts[before, 1:]
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


@kernel(**INNER)
def _estimate(cells, work, constants):
    """Set ``estimates``: totals of cells with the n-gram LM's score of the new words in place of the neural one's.

    Both rate the same words. Returns the best estimate.
    """
    best = -np.inf
    for number in range(cells):
        cell = work.cells[number]
        value = cell.total + constants.neural_weight * work.requests[cell.request].total
        work.estimates[number] = value
        best = max(best, value)
    return best


@kernel(**INNER)
def _mark_leaders(cells, threshold, ranked, work):
    """Mark the best of all cells that the n-gram search would recombine; how many groups of hypotheses there are."""
    stamp = -np.int32(work.counts[STAMP])  # the slots are needed again, for the hypotheses of this stack
    last = work.recombination_slots.shape[0] - 1
    groups = np.int64(0)
    for number in range(cells):
        work.active[number] = _OTHER
        value = work.estimates[number]
        if value < threshold:
            continue
        cell = work.cells[number]
        group = np.int64(work.edges[cell.edge].target)  # most are known, and the call costs 100 ns
        if group == _NONE:
            group, groups = target_group(work, cell.edge, groups)
        state = work.requests[cell.request].state
        forward = ranked.forward_class[cell.option]
        slot = np.int64(mix(recombination_key(group, forward, state)) & np.uint64(last))
        found = np.int64(_NONE)
        while work.recombination_slots[slot].stamp == stamp:
            leader = work.cells[work.recombination_slots[slot].item]
            same = work.edges[leader.edge].target == group and work.requests[leader.request].state == state
            if same and ranked.forward_class[leader.option] == forward:
                found = np.int64(work.recombination_slots[slot].item)
                break
            slot = (slot + 1) & last
        if found != _NONE:
            if value <= work.estimates[found]:
                continue
            work.active[found] = _OTHER
        work.recombination_slots[slot].stamp = stamp
        work.recombination_slots[slot].item = number
        work.active[number] = _LEADER
    return groups


@kernel(forceinline=True, **INNER)
def _request(cell, requests, ranked, work):
    """The number of a cell's request, which may be a new one; (number, how many requests)."""
    context = work.hypotheses[cell.hypothesis].context
    target = ranked.target[cell.option]
    stamp = np.int32(work.counts[STAMP])
    last = work.phrase_slots.shape[0] - 1
    key = (np.uint64(context) << np.uint64(32)) | np.uint64(target)
    slot = np.int64(mix(key) & np.uint64(last))
    while work.phrase_slots[slot].stamp == stamp:
        known = work.phrases[work.phrase_slots[slot].item]
        if known.context == context and known.target == target:
            return np.int64(work.phrase_slots[slot].item), requests
        slot = (slot + 1) & last
    work.phrase_slots[slot].stamp = stamp
    work.phrase_slots[slot].item = requests
    work.phrases[requests].context = context
    work.phrases[requests].target = target
    return requests, requests + 1


@kernel(**INNER)
def _keep_best(cells, rank, room, threshold, work):
    """Mark the best ``room`` cells of this or a higher rank as kept, of equal ones the first; how many there were."""
    if room == 0:
        return room
    count = 0
    for number in range(cells):
        if rank <= work.active[number] < _KEPT and work.estimates[number] >= threshold:
            work.values[count] = work.estimates[number]
            count += 1
    lowest, equal = threshold, room
    if count > room:
        lowest, equal = last_place(work.values, count, room)
    kept = np.int64(0)
    for number in range(cells):
        value = work.estimates[number]
        if rank <= work.active[number] < _KEPT and (value > lowest or (value == lowest and equal > 0)):
            equal -= value == lowest
            work.active[number] = _KEPT
            kept += 1
    return kept


@kernel()
def choose_for_neural(cells, ranked, work, constants):
    """Keep the cells that the neural LM shall score, and list its requests; (cells, requests, groups of hypotheses).

    ``neural_cells`` within the beam are kept by their estimates. Half of them are the best of each that the n-gram
    search would recombine: hypotheses that differ in words long ago only would fill a stack with one translation.
    """
    threshold = _estimate(cells, work, constants) + constants.beam
    groups, room = np.int64(0), np.int64(constants.neural_cells)
    if cells > room:
        groups = _mark_leaders(cells, threshold, ranked, work)
        room -= _keep_best(cells, _LEADER, (room + 1) // 2, threshold, work)
    else:
        work.active[:cells] = _OTHER
    _keep_best(cells, _OTHER, room, threshold, work)
    kept = np.int64(0)
    requests = np.int64(0)
    for number in range(cells):
        if work.active[number] == _KEPT:
            work.cells[kept] = work.cells[number]
            work.cell_phrase[kept], requests = _request(work.cells[kept], requests, ranked, work)
            kept += 1
    return kept, requests, groups


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
