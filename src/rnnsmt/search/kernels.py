"""The search itself, compiled: stacks by covered words, filled by cube pruning (Chiang 2007; Huang and Chiang 2007).

``begin`` prepares the state of a sentence, ``expand_stack`` fills one stack from the shorter ones. Everything that a
stack needs lies in ``Work``, so that many sentences can be advanced side by side, stack by stack.

An *edge* joins a group of hypotheses with the options of one source span: a grid of cells, hypotheses downwards and
options to the right, both best first. Edges are opened in the order of an estimate without LM context, cells are popped in
the order of their real scores, ``pop_limit`` of them for a stack.
"""

import numpy as np
from numba import njit

from rnnsmt.lm.automaton import lm_slot, query
from rnnsmt.lm.bytescan import mix
from rnnsmt.search.arrays import ARCS, BINS, CELLS, COVERAGES, EDGES, GROUPS, HYPOTHESES, QUERIES, REQUESTS, STAMP

_ONE = np.uint64(1)
_NONE = -1
MONOTONE, SWAP, DISCONTINUOUS = 0, 1, 2


@njit(cache=True, nogil=True)
def future_costs(spans, inventory, work, window):
    """Best estimate of every span up to ``window`` words (Koehn 2010, section 6.2.4) and of every tail of the sentence."""
    count, longest = spans.shape
    work.tail_future[count] = 0.0
    for i in range(count - 1, -1, -1):
        best_tail = -np.inf
        for length in range(1, min(window, count - i) + 1):
            work.span_future[i, length] = -np.inf
        for length in range(1, min(longest, count - i) + 1):
            source = spans[i, length - 1]
            if source < 0 or inventory.first[source] == inventory.first[source + 1]:
                continue
            best = inventory.estimate[inventory.first[source]]
            best_tail = max(best_tail, best + work.tail_future[i + length])
            if length <= window:
                work.span_future[i, length] = max(work.span_future[i, length], best)
            for whole in range(length + 1, min(window, count - i) + 1):
                rest = work.span_future[i + length, whole - length]
                work.span_future[i, whole] = max(work.span_future[i, whole], best + rest)
        work.tail_future[i] = best_tail


@njit(cache=True, nogil=True, forceinline=True)
def coverage_future(work, gap, mask):
    """Future cost of what a coverage leaves open."""
    total = 0.0
    position = gap
    while mask != np.uint64(0):
        run = 0
        while mask & _ONE == np.uint64(0):
            mask >>= _ONE
            run += 1
        if run > 0:
            total += work.span_future[position, run]
        position += run
        while mask & _ONE != np.uint64(0):
            mask >>= _ONE
            position += 1
    return total + work.tail_future[position]


@njit(cache=True, nogil=True)
def begin(spans, inventory, work, settings):
    """Set up the state of a sentence: future costs and the empty hypothesis in stack 0."""
    future_costs(spans, inventory, work, min(np.int64(settings.distortion_limit), spans.shape[0]))
    work.hypotheses[0].score = 0.0
    work.hypotheses[0].state = settings.lm_start
    work.hypotheses[0].back = _NONE
    work.hypotheses[0].option = _NONE
    work.hypotheses[0].start = _NONE
    work.hypotheses[0].end = _NONE
    work.hypotheses[0].arc = _NONE
    work.groups[0].end = -1
    work.groups[0].swap = _NONE
    work.groups[0].first = 0
    work.groups[0].count = 1
    work.groups[0].next = _NONE
    work.coverages[0].gap = 0
    work.coverages[0].mask = np.uint64(0)
    work.coverages[0].group = 0
    work.stacks[0].hypothesis = 0
    work.stacks[1].hypothesis = 1
    work.stacks[0].coverage = 0
    work.stacks[1].coverage = 1
    for item in (HYPOTHESES, GROUPS, COVERAGES):
        work.counts[item] = 1
    work.counts[ARCS] = 0


@njit(cache=True, nogil=True, forceinline=True)
def _target_coverage(work, gap, mask, known, stamp):
    """Number of a coverage among those of the stack that is being filled; (number, how many are known)."""
    last = np.uint64(work.coverage_slots.shape[0] - 1)
    slot = np.int64(mix((mask << np.uint64(20)) ^ mask ^ np.uint64(gap)) & last)
    while work.coverage_slots[slot].stamp == stamp:
        number = work.coverage_slots[slot].item
        if work.targets[number].gap == gap and work.targets[number].mask == mask:
            return np.int64(number), known
        slot = (slot + 1) & np.int64(last)
    work.coverage_slots[slot].stamp = stamp
    work.coverage_slots[slot].item = known
    work.targets[known].gap = gap
    work.targets[known].mask = mask
    work.targets[known].future = coverage_future(work, gap, mask)
    work.targets[known].group = _NONE
    return known, known + 1


@njit(cache=True, nogil=True)
def _collect_edges(k, spans, inventory, work, settings, stamp):
    """All edges into stack ``k`` with the estimates of their best cells; returns how many."""
    count, longest = spans.shape
    edges = 0
    known = np.int64(0)
    limit = np.int64(settings.distortion_limit)
    for length in range(1, min(longest, k) + 1):
        bits = (_ONE << np.uint64(length)) - _ONE
        for coverage in range(work.stacks[k - length].coverage, work.stacks[k - length + 1].coverage):
            gap = np.int64(work.coverages[coverage].gap)
            mask = work.coverages[coverage].mask
            for start in range(gap, min(count - length, gap + max(limit - length, 0)) + 1):
                source = spans[start, length - 1]
                if source < 0:
                    continue
                first, last = inventory.first[source], inventory.first[source + 1]
                place = bits << np.uint64(start - gap)
                if mask & place != np.uint64(0) or first == last:
                    continue
                new_mask, new_gap = mask | place, gap
                while new_mask & _ONE != np.uint64(0):
                    new_mask >>= _ONE
                    new_gap += 1
                target, known = _target_coverage(work, new_gap, new_mask, known, stamp)
                future = work.targets[target].future
                group = work.coverages[coverage].group
                while group != _NONE:
                    jump = abs(work.groups[group].end + 1 - start)
                    orientation = DISCONTINUOUS
                    if jump == 0:
                        orientation = MONOTONE
                    elif work.groups[group].swap == start + length:
                        orientation = SWAP
                    base = future - settings.distortion_weight * jump
                    best = work.groups[group].first
                    estimate = work.hypotheses[best].score + base + inventory.estimate[first]
                    estimate += inventory.backward[first, orientation]
                    if work.hypotheses[best].option >= 0:
                        estimate += inventory.forward[work.hypotheses[best].option, orientation]
                    work.edges[edges].group = group
                    work.edges[edges].coverage = target
                    work.edges[edges].start = start
                    work.edges[edges].length = length
                    work.edges[edges].first = first
                    work.edges[edges].last = last
                    work.edges[edges].base = base
                    work.edges[edges].orientation = orientation
                    work.edges[edges].target = _NONE
                    work.edges[edges].estimate = estimate
                    edges += 1
                    group = work.groups[group].next
    return edges


@njit(cache=True, nogil=True)
def _target_group(work, edge, groups):
    """The group that the cells of an edge belong to; (group, how many groups)."""
    if work.edges[edge].target != _NONE:
        return np.int64(work.edges[edge].target), groups
    coverage = work.edges[edge].coverage
    start = np.int64(work.edges[edge].start)
    end = start + work.edges[edge].length - 1
    gap = np.int64(work.targets[coverage].gap)
    swap = start  # a phrase that ends right before `start` would be a swap: only where that word is still open
    if start <= gap or (work.targets[coverage].mask >> np.uint64(start - 1 - gap)) & _ONE != np.uint64(0):
        swap = _NONE
    group = np.int64(work.targets[coverage].group)
    while group != _NONE:
        if work.members[group].end == end and work.members[group].swap == swap:
            work.edges[edge].target = group
            return group, groups
        group = np.int64(work.members[group].next)
    work.members[groups].coverage = coverage
    work.members[groups].end = end
    work.members[groups].swap = swap
    work.members[groups].count = 0
    work.members[groups].next = work.targets[coverage].group
    work.targets[coverage].group = groups
    work.edges[edge].target = groups
    return groups, groups + 1


@njit(cache=True, nogil=True, forceinline=True)
def _keep_arc(work, total, back, option, edge, following):
    """Store a recombined hypothesis as an arc; returns its number."""
    arc = work.counts[ARCS]
    work.arcs[arc].score = total - work.targets[work.edges[edge].coverage].future
    work.arcs[arc].back = back
    work.arcs[arc].option = option
    work.arcs[arc].start = work.edges[edge].start
    work.arcs[arc].end = work.edges[edge].start + work.edges[edge].length - 1
    work.arcs[arc].next = following
    work.counts[ARCS] = arc + 1
    return arc


@njit(cache=True, nogil=True)
def _add(inventory, work, settings, total, edge, back, option, state, group, fresh, stamp):
    """Add a hypothesis to the stack, recombining it with an equal one; returns how many hypotheses the stack has."""
    forward = inventory.forward_class[option]
    last = work.recombination_slots.shape[0] - 1
    key = (np.uint64(group) << np.uint64(44)) ^ (np.uint64(forward) << np.uint64(26)) ^ np.uint64(state)
    slot = np.int64(mix(key) & np.uint64(last))
    while work.recombination_slots[slot].stamp == stamp:
        known = work.recombination_slots[slot].item
        if (
            work.fresh[known].group == group
            and work.fresh[known].state == state
            and inventory.forward_class[work.fresh[known].option] == forward
        ):
            if total > work.fresh[known].total:
                if settings.keep_arcs:
                    work.fresh[known].arc = _keep_arc(
                        work, work.fresh[known].total, work.fresh[known].back, work.fresh[known].option, work.fresh[known].edge,
                        work.fresh[known].arc,
                    )  # fmt: skip
                work.fresh[known].total = total
                work.fresh[known].back = back
                work.fresh[known].option = option
                work.fresh[known].edge = edge
            elif settings.keep_arcs:
                work.fresh[known].arc = _keep_arc(work, total, back, option, edge, work.fresh[known].arc)
            return fresh
        slot = (slot + 1) & last
    work.recombination_slots[slot].stamp = stamp
    work.recombination_slots[slot].item = fresh
    work.fresh[fresh].total = total
    work.fresh[fresh].state = state
    work.fresh[fresh].back = back
    work.fresh[fresh].option = option
    work.fresh[fresh].edge = edge
    work.fresh[fresh].group = group
    work.fresh[fresh].arc = _NONE
    return fresh + 1


@njit(cache=True, nogil=True)
def _store(k, work, settings, fresh, groups, best):
    """Prune the new stack and lay its hypotheses down by group, best first."""
    threshold = best + settings.beam
    if fresh > settings.stack_size:
        ranked = np.sort(work.fresh[:fresh].total)
        threshold = max(threshold, ranked[fresh - settings.stack_size])
    for i in range(fresh):
        if work.fresh[i].total >= threshold:
            work.members[work.fresh[i].group].count += 1
    hypothesis = work.counts[HYPOTHESES]
    coverages = work.counts[COVERAGES]
    number = work.counts[GROUPS]
    work.stacks[k].hypothesis = hypothesis
    work.stacks[k].coverage = coverages
    # groups get their places coverage by coverage; v_next is walked once, v_count turns into the next free place
    for group in range(groups):
        coverage = work.members[group].coverage
        member = np.int64(work.targets[coverage].group)
        if member == _NONE:
            continue
        work.targets[coverage].group = _NONE
        chain = np.int64(_NONE)
        while member != _NONE:
            size = work.members[member].count
            work.members[member].count = hypothesis
            work.members[member].first = hypothesis
            if size > 0:
                work.groups[number].end = work.members[member].end
                work.groups[number].swap = work.members[member].swap
                work.groups[number].first = hypothesis
                work.groups[number].count = size
                work.groups[number].next = chain
                chain = number
                number += 1
                hypothesis += size
            member = np.int64(work.members[member].next)
        if chain != _NONE:
            work.coverages[coverages].gap = work.targets[coverage].gap
            work.coverages[coverages].mask = work.targets[coverage].mask
            work.coverages[coverages].group = chain
            coverages += 1
    for i in range(fresh):
        if work.fresh[i].total < threshold:
            continue
        group = work.fresh[i].group
        edge = work.fresh[i].edge
        place = np.int64(work.members[group].count)
        work.members[group].count = place + 1
        score = work.fresh[i].total - work.targets[work.edges[edge].coverage].future
        end = np.int64(work.members[group].end)
        lowest = place - 1
        bound = np.int64(
            work.members[group].first
        )  # insertion sort from the group's first place: they come nearly sorted
        while lowest >= bound and work.hypotheses[lowest].score < score:
            _move(work, lowest, lowest + 1)
            lowest -= 1
        place = lowest + 1
        work.hypotheses[place].score = score
        work.hypotheses[place].state = work.fresh[i].state
        work.hypotheses[place].back = work.fresh[i].back
        work.hypotheses[place].option = work.fresh[i].option
        work.hypotheses[place].start = work.edges[edge].start
        work.hypotheses[place].end = end
        work.hypotheses[place].arc = work.fresh[i].arc
    work.counts[HYPOTHESES] = hypothesis
    work.counts[COVERAGES] = coverages
    work.counts[GROUPS] = number
    work.stacks[k + 1].hypothesis = hypothesis
    work.stacks[k + 1].coverage = coverages


@njit(cache=True, nogil=True, forceinline=True)
def _move(work, old, new):
    """Copy a hypothesis to another place."""
    work.hypotheses[new].score = work.hypotheses[old].score
    work.hypotheses[new].state = work.hypotheses[old].state
    work.hypotheses[new].back = work.hypotheses[old].back
    work.hypotheses[new].option = work.hypotheses[old].option
    work.hypotheses[new].start = work.hypotheses[old].start
    work.hypotheses[new].end = work.hypotheses[old].end
    work.hypotheses[new].arc = work.hypotheses[old].arc


@njit(cache=True, nogil=True)
def _floor(inventory, work, settings, waiting):
    """The estimate that a cell must reach to be scored: within the margin of the best, at most ``pop_limit`` cells."""
    top = -np.inf
    for edge in range(waiting):
        top = max(top, work.edges[edge].estimate)
    floor = top - settings.margin
    scale = BINS / settings.margin
    work.histogram[:] = 0
    for edge in range(waiting):
        corner = work.edges[edge]
        if corner.estimate < floor:
            continue
        group = work.groups[corner.group]
        for row in range(group.first, group.first + group.count):
            hypothesis = work.hypotheses[row]
            base = hypothesis.score + corner.base
            if hypothesis.option >= 0:
                base += inventory.forward[hypothesis.option, corner.orientation]
            if base + inventory.estimate[corner.first] < floor:
                break
            for option in range(corner.first, corner.last):
                value = base + inventory.estimate[option]
                if value < floor:
                    break
                value += inventory.backward[option, corner.orientation]
                work.histogram[min(max(np.int64((top - value) * scale), 0), BINS)] += 1
    cells = np.int64(0)
    chosen = 0
    while chosen < BINS and cells + work.histogram[chosen] <= settings.pop_limit:
        cells += work.histogram[chosen]
        chosen += 1
    return top, scale, max(chosen, 1)


@njit(cache=True, nogil=True)
def _request(inventory, work, state, target, requests, stamp):
    """The number of the LM request for a target phrase in a state; (number, how many requests)."""
    key = (np.int64(state) << np.int64(32)) | np.int64(target)
    slot = np.int64(mix(np.uint64(key)) & np.uint64(work.cache.shape[0] - 1))
    known = work.cache[slot]
    same = known.key == key
    if same and known.stamp == stamp:
        return np.int64(known.request), requests
    request = work.requests[requests]
    position = inventory.target_bounds[target]
    request.target = target
    request.from_state = state
    request.end = inventory.target_bounds[target + 1]
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


@njit(cache=True, nogil=True)
def choose_cells(inventory, work, settings, waiting, stamp):
    """List the cells to score and the LM requests they need; (cells, requests)."""
    top, scale, chosen = _floor(inventory, work, settings, waiting)
    floor = top - chosen / scale
    cells = np.int64(0)
    requests = np.int64(0)
    for edge in range(waiting):
        corner = work.edges[edge]
        if corner.estimate < floor:
            continue
        group = work.groups[corner.group]
        for row in range(group.first, group.first + group.count):
            hypothesis = work.hypotheses[row]
            base = hypothesis.score + corner.base
            if hypothesis.option >= 0:
                base += inventory.forward[hypothesis.option, corner.orientation]
            if base + inventory.estimate[corner.first] < floor:
                break
            for option in range(corner.first, corner.last):
                value = base + inventory.estimate[option]
                if value < floor:
                    break
                backward = inventory.backward[option, corner.orientation]
                if max(np.int64((top - value - backward) * scale), 0) >= chosen:
                    continue
                if cells >= settings.pop_limit:
                    return cells, requests
                cell = work.cells[cells]
                cells += 1
                cell.total = base + inventory.static[option] + backward
                cell.edge = edge
                cell.hypothesis = row
                cell.option = option
                request, requests = _request(
                    inventory, work, hypothesis.state, inventory.target[option], requests, stamp
                )
                cell.request = request
    return cells, requests


@njit(cache=True, nogil=True)
def answer_requests(lm, inventory, work, requests):
    """Ask the LM for all requests together, word by word.

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
            key, slot = lm_slot(request.state, inventory.target_words[request.position], mask)
            request.slot = slot
            request.hit = np.int32(lm.rows[slot].key == key)
        left = 0
        for k in range(waiting):
            number = active[k]
            request = work.requests[number]
            word = inventory.target_words[request.position]
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
            if state == inventory.alone_state[position]:
                # from here on the words see nothing of what is before the phrase
                request.total += inventory.alone_rest[position]
                request.state = inventory.alone_state[request.end - 1]
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


@njit(cache=True, nogil=True)
def add_cells(k, cells, count, lm, inventory, work, settings, stamp):
    """Turn the scored cells into the hypotheses of stack ``k``."""
    best = -np.inf
    for number in range(cells):
        cell = work.cells[number]
        request = work.requests[cell.request]
        total = cell.total + settings.lm_weight * np.float64(request.total)
        if k == count:
            prob, _ = query(lm, request.state, settings.lm_end_word)
            total += settings.lm_weight * np.float64(prob)
        cell.total = total
        best = max(best, total)
    fresh = np.int64(0)
    groups = np.int64(0)
    for number in range(cells):
        cell = work.cells[number]
        if cell.total < best + settings.beam:
            continue
        group, groups = _target_group(work, cell.edge, groups)
        state = work.requests[cell.request].state
        fresh = _add(
            inventory, work, settings, cell.total, cell.edge, cell.hypothesis, cell.option, state, group, fresh, stamp
        )
    _store(k, work, settings, fresh, groups, best)


@njit(cache=True, nogil=True)
def expand_stack(k, spans, lm, inventory, work, settings):
    """Fill stack ``k`` (hypotheses that cover k words) from the stacks below it."""
    stamp = np.int32(work.counts[STAMP] + 1)
    work.counts[STAMP] = stamp
    waiting = _collect_edges(k, spans, inventory, work, settings, stamp)
    cells, requests = choose_cells(inventory, work, settings, waiting, stamp)
    answer_requests(lm, inventory, work, requests)
    add_cells(k, cells, spans.shape[0], lm, inventory, work, settings, stamp)
    work.counts[EDGES] += waiting
    work.counts[CELLS] += cells
    work.counts[REQUESTS] += requests


@njit(cache=True, nogil=True)
def search_sentence(spans, lm, inventory, work, settings):
    """Search one sentence; returns its best complete hypothesis."""
    begin(spans, inventory, work, settings)
    count = spans.shape[0]
    for k in range(1, count + 1):
        expand_stack(k, spans, lm, inventory, work, settings)
    best = np.int64(_NONE)
    for hypothesis in range(work.stacks[count].hypothesis, work.stacks[count + 1].hypothesis):
        if best == _NONE or work.hypotheses[hypothesis].score > work.hypotheses[best].score:
            best = hypothesis
    return best
