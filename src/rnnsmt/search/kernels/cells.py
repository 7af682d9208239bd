"""Choosing the cells of a stack and scoring them with the n-gram LM, compiled; for a neural LM see ``neural_choice``.

Cells are chosen by their estimate, which has the LM score of the phrase alone: the best ``pop_limit`` of them within a
margin. They are known before any is scored, so their LM requests are answered together. (Cube pruning with a heap has
to wait for the score of one cell before it can choose the next, and a bad cell hides the good ones behind it.)
"""

import numpy as np

from rnnsmt.kernels.decorator import INNER, kernel
from rnnsmt.kernels.hashing import mix
from rnnsmt.lm.kernels.automaton import lm_slot
from rnnsmt.search.kernels.records import BINS, QUERIES


@kernel(**INNER)
def _floor(ranked, work, constants, waiting):
    """Which cells to score: those less than ``chosen`` bins of 1 / ``scale`` below ``top``; (top, scale, chosen)."""
    top = -np.inf
    for edge in range(waiting):
        top = max(top, work.edges[edge].estimate)
    floor = top - constants.margin
    scale = BINS / constants.margin
    work.histogram[:] = 0
    for edge in range(waiting):
        corner = work.edges[edge]
        turn = corner.backward
        reach = corner.base + ranked.reach[corner.first, turn] + constants.forward_bound
        group = work.groups[corner.group]
        for row in range(group.first, group.first + group.count):
            hypothesis = work.hypotheses[row]
            if hypothesis.score + reach < floor:
                break
            base = hypothesis.score + corner.base
            if hypothesis.option >= 0:
                base += ranked.forward[hypothesis.option, corner.forward]
            for option in range(corner.first, corner.last):
                if base + ranked.reach[option, turn] < floor:
                    break
                value = base + ranked.guess[option, turn]
                if value >= floor:
                    work.histogram[min(max(np.int64((top - value) * scale), 0), BINS)] += 1
    cells = np.int64(0)
    chosen = 0
    while chosen < BINS and cells + work.histogram[chosen] <= constants.pop_limit:
        cells += work.histogram[chosen]
        chosen += 1
    return top, scale, max(chosen, 1)


@kernel(forceinline=True, **INNER)
def _request(ranked, work, state, target, requests, stamp):
    """The number of the LM request for a target phrase in a state; (number, how many requests)."""
    key = (np.int64(state) << np.int64(32)) | np.int64(target)
    slot = np.int64(mix(np.uint64(key)) & np.uint64(work.cache.shape[0] - 1))
    known = work.cache[slot]
    same = known.key == key
    if same and known.stamp == stamp:
        return np.int64(known.request), requests
    request = work.requests[requests]
    position = ranked.target_bounds[target]
    request.target = target
    request.from_state = state
    request.end = ranked.target_bounds[target + 1]
    if same:
        request.total = known.prob
        request.state = known.state
        request.position = request.end
    else:
        request.total = 0.0
        request.state = state
        request.position = position
    known.key = key
    known.request = requests
    known.stamp = stamp
    return requests, requests + 1


@kernel()
def choose_cells(ranked, work, constants, waiting, stamp):
    """List the cells to score and the LM requests they need; (cells, requests)."""
    top, scale, chosen = _floor(ranked, work, constants, waiting)
    floor = top - chosen / scale
    cells = np.int64(0)
    requests = np.int64(0)
    for edge in range(waiting):
        corner = work.edges[edge]
        turn = corner.backward
        reach = corner.base + ranked.reach[corner.first, turn] + constants.forward_bound
        group = work.groups[corner.group]
        for row in range(group.first, group.first + group.count):
            hypothesis = work.hypotheses[row]
            if hypothesis.score + reach < floor:
                break
            base = hypothesis.score + corner.base
            if hypothesis.option >= 0:
                base += ranked.forward[hypothesis.option, corner.forward]
            for option in range(corner.first, corner.last):
                if base + ranked.reach[option, turn] < floor:
                    break
                value = base + ranked.guess[option, turn]
                if max(np.int64((top - value) * scale), 0) >= chosen:
                    continue
                if cells >= constants.pop_limit:
                    return cells, requests
                cell = work.cells[cells]
                cells += 1
                cell.total = base + ranked.known[option, turn]
                cell.edge = edge
                cell.hypothesis = row
                cell.option = option
                cell.request, requests = _request(
                    ranked, work, hypothesis.state, ranked.target[option], requests, stamp
                )
    return cells, requests


@kernel()
def answer_requests(lm, ranked, work, requests):  # noqa: PLR0912, PLR0915
    """Ask the only LM for all requests together, word by word.

    Every round first touches the memory of all look-ups and then reads them: the look-ups of different requests do not
    wait for each other, which matters because the LM is much larger than the processor's caches.
    """
    active = work.active
    waiting = 0
    for number in range(requests):
        request = work.requests[number]
        if request.position < request.end:
            active[waiting] = number
            waiting += 1
    mask = lm.rows.shape[0] - 1
    while waiting > 0:
        work.counts[QUERIES] += waiting
        for k in range(waiting):
            request = work.requests[active[k]]
            key, slot = lm_slot(request.state, ranked.target_words[0, request.position], mask)
            request.slot = slot
            request.hit = np.int32(lm.rows[slot].key == key)
        left = 0
        for k in range(waiting):
            number = active[k]
            request = work.requests[number]
            word = ranked.target_words[0, request.position]
            if request.state == 0:
                unigram = lm.unigrams[word]
                request.total += unigram.prob
                state = unigram.next
            else:
                slot = np.int64(request.slot)
                if request.hit == 0:
                    key = (np.int64(request.state) << np.int64(32)) | np.int64(word)
                    while lm.rows[slot].key != -1 and lm.rows[slot].key != key:
                        slot = (slot + 1) & mask
                row = lm.rows[slot]
                if row.key == -1:
                    context = lm.states[request.state]
                    request.total += context.backoff
                    request.state = context.link
                    active[left] = number
                    left += 1
                    continue
                request.total += row.prob
                state = row.next
            position = request.position
            if state == ranked.alone_state[0, position]:
                # from here on the words see nothing of what is before the phrase
                request.total += ranked.alone_rest[0, position]
                request.state = ranked.alone_state[0, request.end - 1]
                request.position = request.end
                continue
            request.state = state
            request.position = position + 1
            if position + 1 < request.end:
                active[left] = number
                left += 1
        waiting = left
    for number in range(requests):
        request = work.requests[number]
        key = (np.int64(request.from_state) << np.int64(32)) | np.int64(request.target)
        known = work.cache[np.int64(mix(np.uint64(key)) & np.uint64(work.cache.shape[0] - 1))]
        if known.key == key:
            known.prob = request.total
            known.state = request.state
