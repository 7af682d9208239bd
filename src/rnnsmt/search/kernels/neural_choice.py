"""Which cells of a stack a neural LM scores, compiled: the best by all other scores, and the best of each group.

``cells`` has chosen the cells of the stack before, by the n-gram LM; here the few of them are chosen that are worth the
network's time, and listed as requests to the store (``neural_store``).
"""

import numpy as np

from rnnsmt.kernels.decorator import INNER, kernel
from rnnsmt.kernels.hashing import mix
from rnnsmt.search.kernels.edges import target_group
from rnnsmt.search.kernels.records import STAMP
from rnnsmt.search.kernels.stack import last_place, recombination_key

_NONE = -1

_OTHER, _LEADER, _KEPT = range(3)
"""Ranks of cells, in ``Work.active``: the leader is the best of those that the n-gram search would recombine."""


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
def _mark_leaders(cells, threshold, ranked, work, constants):
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
            group, groups = target_group(work, constants, cell.edge, groups)
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
        groups = _mark_leaders(cells, threshold, ranked, work, constants)
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
