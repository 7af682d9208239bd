"""One step of a sentence in the lockstep search, and the selection of the cells that the neural features score.

The module ``cells`` has already selected the cells of the stack by n-gram LM. This module selects a few of these cells
for the networks to score, and lists the requests to the stores of their scores (``neural_store``).
"""

import numpy as np

from rnnsmt.base.kernels.decorator import INNER, UNCOUNTED, kernel
from rnnsmt.search.kernels.cells import find_group
from rnnsmt.search.kernels.hash_tables import find_item, pair
from rnnsmt.search.kernels.neural_store import settle
from rnnsmt.search.kernels.records import next_stamp
from rnnsmt.search.kernels.selection import last_place
from rnnsmt.search.kernels.stack import add_cells, propose, recombination_key

_NONE = -1

_OTHER, _LEADER, _KEPT = range(3)
"""Ranks of cells in ``Scratch.ranks``. A leader is the best of the cells that the n-gram search would recombine."""


@kernel(**INNER, **UNCOUNTED)
def _estimate(cells, work, constants):
    """Compute ``Scratch.estimates``, and return the best estimate.

    An estimate is the total of a cell plus the sum of the weights of the neural features times the n-gram LM score of
    the new words: the n-gram LM score estimates the scores of all neural features, which score the same words. A
    separate estimate for one of the features would have to be added here and in ``translation_options.rank``.
    """
    best = -np.inf
    for number in range(cells):
        cell = work.cells[number]
        value = cell.total + constants.neural_weight * work.lm_requests[cell.lm_request].total
        work.scratch.estimates[number] = value
        best = max(best, value)
    return best


@kernel(**INNER, **UNCOUNTED)
def _mark_leaders(cells, threshold, ranked, work, constants, stamp):
    """Mark the best cell of each set of cells that the n-gram search would recombine; return the number of groups.

    cells: number of cells; cells with an estimate below ``threshold`` are ignored.
    """
    groups = np.int64(0)
    for number in range(cells):
        work.scratch.ranks[number] = _OTHER
        value = work.scratch.estimates[number]
        if value < threshold:
            continue
        cell = work.cells[number]
        group = np.int64(work.edges[cell.edge].new_group)  # usually known, which saves a call of 100 ns
        if group == _NONE:
            group, groups = find_group(work, constants, cell.edge, groups)
        state = work.lm_requests[cell.lm_request].state
        forward = ranked.forward_class[cell.option]
        high, low = recombination_key(group, forward, state, 0)
        first = find_item(work.scratch.recombination_table, stamp, high, low, number)
        if first == number:
            work.scratch.leaders[number] = number
        elif value > work.scratch.estimates[work.scratch.leaders[first]]:  # among equal cells the first is the leader
            work.scratch.ranks[work.scratch.leaders[first]] = _OTHER
            work.scratch.leaders[first] = number
        else:
            continue
        work.scratch.ranks[number] = _LEADER
    return groups


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def _request(cell, requests, ranked, work, constants, stamp):
    """Find the request for a cell, or add it; return its index and the number of requests.

    Cells with the same context and target phrase share a request. If a neural feature depends on the source, they must
    also have the same option and source position, which determine the source words that a target word is translated
    from.
    """
    context = work.hypotheses[cell.hypothesis].context
    option = cell.option
    target = ranked.target[option]
    start = work.edges[cell.edge].start
    low = pair(option, start) if constants.by_source else np.uint64(0)
    number = find_item(work.scratch.request_table, stamp, pair(context, target), low, requests)
    if number != requests:
        return number, requests
    request = work.neural.requests[requests]
    request.context = context
    request.target = target
    request.option = option
    request.start = start
    return requests, requests + 1


@kernel(**INNER, **UNCOUNTED)
def _keep_best(cells, rank, room, threshold, work):
    """Mark the best ``room`` cells of at least this rank as kept; return the number of these cells.

    Among cells with equal estimates, the first ones are kept.

    Args:
        cells: number of cells.
        rank: ``_OTHER`` or ``_LEADER``; cells that are already kept are ignored.
        threshold: minimum estimate.
    """
    if room == 0:
        return room
    count = 0
    for number in range(cells):
        if rank <= work.scratch.ranks[number] < _KEPT and work.scratch.estimates[number] >= threshold:
            work.scratch.values[count] = work.scratch.estimates[number]
            count += 1
    lowest, equal = threshold, room  # lowest estimate to keep, and how many cells may have exactly this one
    if count > room:
        lowest, equal = last_place(work.scratch.values, count, room)
    n_kept = np.int64(0)
    for number in range(cells):
        value = work.scratch.estimates[number]
        if rank <= work.scratch.ranks[number] < _KEPT and (value > lowest or (value == lowest and equal > 0)):
            equal -= value == lowest
            work.scratch.ranks[number] = _KEPT
            n_kept += 1
    return n_kept


@kernel(**UNCOUNTED)
def choose_for_neural(cells, ends, ranked, work, constants):
    """Keep the cells that the neural features will score, and list the requests to them.

    At most ``cslm_cells`` cells within the beam are kept, the best by estimate. If there are more cells, half of the
    kept cells are selected from the leaders; a leader is the best of the cells that the n-gram search would recombine.
    Otherwise, hypotheses that differ only in words before the context of the n-gram LM could fill a stack.

    Args:
        cells: number of cells.
        ends: 1 if the cells complete the sentence, so that ``</s>`` is scored, else 0.

    Returns:
        (number of cells, number of requests, number of groups of hypotheses).
    """
    threshold = _estimate(cells, work, constants) + constants.beam
    stamp = next_stamp(work)
    groups, room = np.int64(0), np.int64(constants.cslm_cells)
    if cells > room:
        groups = _mark_leaders(cells, threshold, ranked, work, constants, stamp)
        room -= _keep_best(cells, _LEADER, (room + 1) // 2, threshold, work)
    else:
        work.scratch.ranks[:cells] = _OTHER
    _keep_best(cells, _OTHER, room, threshold, work)
    n_kept = np.int64(0)
    requests = np.int64(0)
    # Move the kept cells to the front, in order (n_kept <= number). The requests and the new entries of the stores are
    # numbered in the same order, so that the batches of the networks do not depend on hash tables.
    for number in range(cells):
        if work.scratch.ranks[number] == _KEPT:
            work.cells[n_kept] = work.cells[number]
            kept = work.cells[n_kept]
            work.neural.request_of[n_kept], requests = _request(kept, requests, ranked, work, constants, stamp)
            n_kept += 1
    # the range of the entries of a request is the same for all features
    used = 0
    for number in range(requests):
        request = work.neural.requests[number]
        request.first = used
        used += ranked.target_bounds[request.target + 1] - ranked.target_bounds[request.target] + ends
    work.neural.requests[requests].first = used
    return n_kept, requests, groups


@kernel(**UNCOUNTED)
def next_stack(stack, chosen, spans, lms, several, ranked, work, stores, constants):
    """Convert the chosen and scored cells of ``stack`` to hypotheses, then choose the cells of the next stack.

    Both steps are one kernel, because passing dozens of arrays from Python to numba takes a considerable time.

    Args:
        stack: number of source words that are covered; 0 in the first call, before which no cells were chosen.
        chosen: (cells, requests, groups) of ``choose_for_neural`` for this stack.
        spans: ``int32`` [words, longest], source phrase by first word and length - 1, or -1.
        lms, several: as for ``stack.begin``.
        stores: one ``Store`` per neural feature; all requests of this stack have been scored.

    Returns:
        (cells, requests, groups) of ``choose_for_neural`` for the next stack; zeros if the sentence is complete.
    """
    cells, requests, groups = chosen
    if stack > 0:
        settle(requests, work, stores, constants)
        add_cells(stack, cells, ranked, work, constants, True, groups)
    if stack == spans.shape[0]:
        return np.int64(0), np.int64(0), np.int64(0)
    cells = propose(stack + 1, spans, lms, several, ranked, work, constants)
    return choose_for_neural(cells, np.int64(stack + 1 == spans.shape[0]), ranked, work, constants)
