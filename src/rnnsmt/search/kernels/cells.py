"""Selection of the cells of a stack, and their n-gram LM scores; for neural features see ``neural_choice``.

Cells are selected by an estimate that contains the LM score of the phrase in the empty context: the best ``pop_limit``
cells within a margin. The selection precedes all LM queries, so all of these can be answered together. (Cube pruning
with a heap needs the score of one cell before it can select the next, and a bad cell hides the good ones behind it.)
"""

import numpy as np

from rnnsmt.base.kernels.decorator import INNER, kernel
from rnnsmt.base.kernels.hashing import mix
from rnnsmt.lm.automaton import lm_slot
from rnnsmt.search.kernels.records import BINS, QUERIES


@kernel(**INNER)
def _floor(ranked, work, constants, waiting):
    """Determine which cells to score, by a histogram of the estimates of all cells.

    Args:
        waiting: number of edges.

    Returns:
        (top, scale, chosen): cells are scored if they are less than ``chosen`` bins of the width 1 / ``scale`` below
        the estimate ``top``.
    """
    # A histogram instead of a sort or heap: the number of cells that are looked at is many times the pop limit, and the
    # same two loops can afterwards list the cells in memory order.
    top = -np.inf
    for edge in range(waiting):
        top = max(top, work.edges[edge].estimate)
    floor = top - constants.margin
    scale = BINS / constants.margin
    work.histogram[:] = 0
    for edge in range(waiting):
        corner = work.edges[edge]
        turn = corner.backward
        # upper bound of the part that an option can add to the score of a hypothesis of the group
        reach = corner.base + ranked.reach[corner.first, turn] + constants.forward_bound
        group = work.groups[corner.group]
        # Hypotheses outside, options inside: the inner loop reads contiguous options, and is left at the first option
        # that cannot be good enough; the outer one at the first such hypothesis.
        for row in range(group.first, group.first + group.count):
            hypothesis = work.hypotheses[row]
            if hypothesis.score + reach < floor:  # sorted by score: so are all following hypotheses
                break
            base = hypothesis.score + corner.base
            if hypothesis.option >= 0:
                base += ranked.forward[hypothesis.option, corner.forward]
            for option in range(corner.first, corner.last):
                # options are sorted by estimate, without reordering scores: ``reach`` bounds all following ones
                if base + ranked.reach[option, turn] < floor:
                    break
                value = base + ranked.guess[option, turn]
                if value >= floor:
                    # ``top`` is the best first cell of an edge; other cells may be better and count in bin 0
                    work.histogram[min(max(np.int64((top - value) * scale), 0), BINS)] += 1
    # as many whole bins as the pop limit allows, at least one, which ``choose_cells`` cuts off at the limit
    cells = np.int64(0)
    chosen = 0
    while chosen < BINS and cells + work.histogram[chosen] <= constants.pop_limit:
        cells += work.histogram[chosen]
        chosen += 1
    return top, scale, max(chosen, 1)


@kernel(forceinline=True, **INNER)
def _request(ranked, work, state, target, requests, stamp):
    """Find or add the LM request for a target phrase in a state.

    Returns:
        (index of the request, number of requests).
    """
    key = (np.int64(state) << np.int64(32)) | np.int64(target)
    slot = np.int64(mix(np.uint64(key)) & np.uint64(work.cache.shape[0] - 1))
    known = work.cache[slot]
    # overwriting the entry of another key of this stack at most duplicates a request
    same = known.key == key
    if same and known.stamp == stamp:
        return np.int64(known.request), requests
    request = work.requests[requests]
    position = ranked.target_bounds[target]
    request.target = target
    request.from_state = state
    request.end = ranked.target_bounds[target + 1]
    if same:  # scored for an earlier stack: nothing is left to ask
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
    """List the cells to score and their distinct LM requests.

    Args:
        waiting: number of edges.
        stamp: number of the stack.

    Returns:
        (number of cells, number of requests).
    """
    top, scale, chosen = _floor(ranked, work, constants, waiting)
    # the loops of ``_floor`` once more, with a floor that is now known
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
                # the same rounding as in ``_floor``, so that the same cells are counted
                if max(np.int64((top - value) * scale), 0) >= chosen:
                    continue
                if cells >= constants.pop_limit:
                    return cells, requests
                cell = work.cells[cells]
                cells += 1
                cell.total = base + ranked.known[option, turn]  # ``propose`` adds the LM score
                cell.edge = edge
                cell.hypothesis = row
                cell.option = option
                cell.request, requests = _request(
                    ranked, work, hypothesis.state, ranked.target[option], requests, stamp
                )
    return cells, requests


@kernel()
def answer_requests(lm, ranked, work, requests):  # noqa: PLR0912, PLR0915
    """Answer all requests to the only LM together, word by word, and update the cache.

    Each round first touches the memory of all look-ups, then reads the results. Thus the cache misses of different
    requests overlap, which matters because the LM is much larger than the processor's caches.

    Args:
        lm: ``LmArrays``.
        ranked: ``RankedOptions``.
        work: ``Work``; ``active`` holds the indices of the requests that still have words to score.
        requests: number of requests.
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
        # independent loads, no branches: the first probe of every request
        for k in range(waiting):
            request = work.requests[active[k]]
            key, slot = lm_slot(request.state, ranked.target_words[0, request.position], mask)
            request.slot = slot
            request.hit = np.int32(lm.rows[slot].key == key)
        # as ``query`` of the LM, but one step per round; unfinished requests are moved to the front of ``active``
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
                if row.key == -1:  # back off; the same word is looked up in the shorter context in the next round
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
                # same state as in the empty context: the remaining words do not depend on the preceding phrases
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
    # store the answers, except where another request has taken the slot since
    for number in range(requests):
        request = work.requests[number]
        key = (np.int64(request.from_state) << np.int64(32)) | np.int64(request.target)
        known = work.cache[np.int64(mix(np.uint64(key)) & np.uint64(work.cache.shape[0] - 1))]
        if known.key == key:
            known.prob = request.total
            known.state = request.state
