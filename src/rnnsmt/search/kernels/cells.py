"""Selection of the cells of a stack: edges into it, its best cells by estimate, and their n-gram LM scores.

An *edge* combines a group of hypotheses with the options of one source span: a grid of *cells* with the hypotheses as
rows and the options as columns, both sorted best first. The spans that may follow a group obey Moses' rule: a phrase
that does not start at the first uncovered word must end within the distortion limit of that word, so that the later
jump back is not too long.

Cells are selected by an estimate that contains the LM score of the phrase in the empty context: the best ``pop_limit``
cells within a margin. The selection precedes all LM queries, so that these can be processed together. (Cube pruning
with a heap requires the score of one cell before it can select the next, and a bad cell hides good cells behind it.)
For neural features see ``neural_choice``.

With several n-gram LMs their states are combined into one integer, so the rest of the search is the same as with one:
a *joint state* is the index of a row of ``Work.joint_states``; rows are numbered in order of appearance within a
sentence. The LM scores of a phrase are also combined into one number, the weighted sum divided by
``SearchConstants.lm_weight``. A *joint context* is likewise the index of a row of ``Work.joint_contexts``, with the
contexts of several neural features.
"""

import numpy as np

from rnnsmt.base.kernels.decorator import INNER, UNCOUNTED, kernel
from rnnsmt.base.kernels.numbers import mix
from rnnsmt.lm.automaton import following_slot, lm_slot, may_follow, query, word_hash
from rnnsmt.search.kernels.features import LEFT, MONOTONE, RIGHT, SWAP, coverage_future, orientation_of
from rnnsmt.search.kernels.hash_tables import FREE, number_row, stamped_slot
from rnnsmt.search.kernels.records import BINS, JOINT_CONTEXTS, JOINT_STATES, QUERIES

_ONE = np.uint64(1)

_NONE = -1


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def target_coverage(work, gap, mask, known, stamp):
    """Find or add a coverage among those of the stack that is being filled.

    Args:
        gap, mask: the coverage.
        known: number of coverages so far.
        stamp: number of the stack.

    Returns:
        (index in ``Work.targets``, number of coverages).
    """
    number = np.int64(work.coverage_slots[stamped_slot(work.coverage_slots, stamp, mask, np.uint64(gap), known)].item)
    if number != known:
        return number, known
    work.targets[known].gap = gap
    work.targets[known].mask = mask
    work.targets[known].future = coverage_future(work, gap, mask)
    work.targets[known].group = _NONE
    return known, known + 1


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def _is_covered(gap, mask, position):
    """Return whether a source word is covered, given the first gap and the mask of the covered words from there on."""
    return position < gap or (mask >> np.uint64(position - gap)) & _ONE != np.uint64(0)


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def _orientations(work, constants, group, gap, mask, start, length):
    """Return the orientations of a phrase for its backward score and for the forward score of the preceding phrase.

    They differ in hierarchical models only, whose forward orientation is estimated as in
    ``features.hierarchical_orientations``.
    """
    last = work.groups[group]
    turn = RIGHT if last.end < start else LEFT
    if last.end + 1 == start:
        turn = MONOTONE
    elif last.swap == start + length:
        turn = SWAP
    if constants.hierarchical == 0:
        return turn, turn
    backward = orientation_of(last.block_start, last.block_end, start, start + length - 1)
    if turn == RIGHT and not _is_covered(gap, mask, last.end + 1):
        turn = MONOTONE
    elif turn == LEFT and last.swap != _NONE:
        turn = SWAP
    return backward, turn


@kernel(**UNCOUNTED)
def collect_edges(k, spans, ranked, work, constants, stamp):
    """Collect all edges into stack ``k`` with the estimates of their first cells.

    Args:
        k: number of covered words.
        spans: ``int32`` [words, longest], source phrase by first word and length - 1, or -1.
        stamp: number of the stack.

    Returns:
        The number of edges, which are in ``Work.edges``.
    """
    count, longest = spans.shape
    edges = 0
    known = np.int64(0)
    limit = np.int64(constants.distortion_limit)
    # The outermost loop is over lengths, because the coverages that a phrase of one length can extend are those of one
    # stack, contiguous in ``Work.coverages``. The innermost loop is over groups, because the new coverage and its
    # future cost are the same for all groups of a coverage.
    for length in range(1, min(longest, k) + 1):
        bits = (_ONE << np.uint64(length)) - _ONE  # mask of a span of this length
        for coverage in range(work.stacks[k - length].coverage, work.stacks[k - length + 1].coverage):
            gap = np.int64(work.coverages[coverage].gap)
            mask = work.coverages[coverage].mask
            # the end of a phrase is at most ``limit`` words after the gap, except for a phrase that starts at the gap
            last_start = gap + limit - length if limit > length else gap
            for start in range(gap, min(count - length, last_start) + 1):
                source = spans[start, length - 1]
                if source < 0:
                    continue
                first, last = ranked.first[source], ranked.first[source + 1]
                shifted = bits << np.uint64(start - gap)
                if mask & shifted != np.uint64(0) or first == last:
                    continue
                # normalise: shift the mask until bit 0 is the first uncovered word again
                new_mask, new_gap = mask | shifted, gap
                while new_mask & _ONE != np.uint64(0):
                    new_mask >>= _ONE
                    new_gap += 1
                target, known = target_coverage(work, new_gap, new_mask, known, stamp)
                future = work.targets[target].future
                group = work.coverages[coverage].group
                while group != _NONE:
                    jump = abs(work.groups[group].end + 1 - start)
                    backward, forward = _orientations(work, constants, group, gap, mask, start, length)
                    base = future - constants.distortion_weight * jump
                    # hypotheses and options are sorted best first: the first cell is close to the best of the edge
                    best = work.groups[group].first
                    estimate = work.hypotheses[best].score + base + ranked.guess[backward, first]
                    if work.hypotheses[best].option >= 0:
                        estimate += ranked.forward[ranked.forward_class[work.hypotheses[best].option], forward]
                    edge = work.edges[edges]
                    edge.group = group
                    edge.coverage = target
                    edge.start = start
                    edge.length = length
                    edge.first = first
                    edge.last = last
                    edge.base = base
                    edge.backward = backward
                    edge.forward = forward
                    edge.target = _NONE
                    edge.estimate = estimate
                    edges += 1
                    group = work.groups[group].next
    return edges


@kernel(**INNER, **UNCOUNTED)
def _last_block(work, group, start, end):
    """Return the last block after a phrase that follows a group, and the group whose last block is below it.

    The phrase is pushed on the stack of blocks and merged with the adjacent blocks on top, as in Moses (Galley and
    Manning 2008). The result is (first source word, last source word, group or -1).
    """
    if work.groups[group].block_end == _NONE:
        return start, end, np.int64(_NONE)
    turn = orientation_of(work.groups[group].block_start, work.groups[group].block_end, start, end)
    below = np.int64(group)
    while below != _NONE and turn <= SWAP:  # monotone or swap: the blocks are adjacent
        start = min(start, np.int64(work.groups[below].block_start))
        end = max(end, np.int64(work.groups[below].block_end))
        below = np.int64(work.groups[below].below)
        if below != _NONE:
            turn = orientation_of(work.groups[below].block_start, work.groups[below].block_end, start, end)
    return start, end, below


@kernel(**INNER, **UNCOUNTED)
def _are_same_blocks(work, group, other):
    """Return whether the stacks of blocks of two groups, from their last blocks downwards, are equal."""
    while group != other:
        if group == _NONE or other == _NONE:  # noqa: PLR1714
            return False
        if work.groups[group].block_start != work.groups[other].block_start:
            return False
        if work.groups[group].block_end != work.groups[other].block_end:
            return False
        group = np.int64(work.groups[group].below)
        other = np.int64(work.groups[other].below)
    return True


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def target_group(work, constants, edge, groups):
    """Find or add the group that the cells of an edge belong to.

    Args:
        edge: index of the edge.
        groups: number of groups so far.

    Returns:
        (index in ``Work.members``, number of groups).
    """
    if work.edges[edge].target != _NONE:
        return np.int64(work.edges[edge].target), groups
    coverage = work.edges[edge].coverage
    start = np.int64(work.edges[edge].start)
    end = start + work.edges[edge].length - 1
    gap = np.int64(work.targets[coverage].gap)
    # a later phrase that ends just before ``start`` would be a swap; impossible if the word before is covered
    swap = np.int64(start)
    if start <= gap or (work.targets[coverage].mask >> np.uint64(start - 1 - gap)) & _ONE != np.uint64(0):
        swap = np.int64(_NONE)
    first, last, below = np.int64(_NONE), np.int64(_NONE), np.int64(_NONE)
    if constants.hierarchical != 0:
        first, last, below = _last_block(work, np.int64(work.edges[edge].group), start, end)
    # the groups of a coverage are few: a linked list, newest first
    group = np.int64(work.targets[coverage].group)
    while group != _NONE:
        member = work.members[group]
        same = member.end == end and member.swap == swap and member.block_start == first and member.block_end == last
        if same and _are_same_blocks(work, np.int64(member.below), below):
            work.edges[edge].target = group
            return group, groups
        group = np.int64(work.members[group].next)
    work.members[groups].coverage = coverage
    work.members[groups].end = end
    work.members[groups].swap = swap
    work.members[groups].block_start = first
    work.members[groups].block_end = last
    work.members[groups].below = below
    work.members[groups].count = 0
    work.members[groups].next = work.targets[coverage].group
    work.targets[coverage].group = groups
    work.edges[edge].target = groups
    return groups, groups + 1


@kernel(**INNER, **UNCOUNTED)
def _floor(ranked, work, constants, waiting):
    """Determine the cells to score, by a histogram of the estimates of all cells of ``waiting`` edges.

    The result is (top, scale, chosen): cells are scored if they are less than ``chosen`` bins of the width 1 /
    ``scale`` below the estimate ``top``.
    """
    # A histogram instead of a sort or heap: the number of cells that are examined is many times the pop limit, and
    # ``choose_cells`` can afterwards list the cells in memory order with the same loops.
    top = -np.inf
    for edge in range(waiting):
        top = max(top, work.edges[edge].estimate)
    floor = top - constants.margin
    scale = BINS / constants.margin
    work.histogram[:] = 0
    for edge in range(waiting):
        corner = work.edges[edge]
        first, last = np.int64(corner.first), np.int64(corner.last)
        turn, forward = np.int64(corner.backward), np.int64(corner.forward)
        guess, reach = ranked.guess[turn], ranked.reach[turn]
        # upper bound of what an option of this edge can add to the score of a hypothesis
        most = corner.base + reach[first] + constants.forward_bound
        group = work.groups[corner.group]
        # The outer loop is over hypotheses, the inner loop over options, which are contiguous. Each loop ends at the
        # first hypothesis or option from which on no estimate can reach the floor.
        for row in range(group.first, group.first + group.count):
            hypothesis = work.hypotheses[row]
            if hypothesis.score + most < floor:  # sorted by score: so are all following hypotheses
                break
            base = hypothesis.score + corner.base
            if hypothesis.option >= 0:
                base += ranked.forward[ranked.forward_class[hypothesis.option], forward]
            for option in range(first, last):
                # options are sorted by estimate, without reordering scores: ``reach`` bounds all following ones
                if base + reach[option] < floor:
                    break
                value = base + guess[option]
                if value >= floor:
                    # ``top`` is the best first cell of an edge; other cells may be better and are counted in bin 0
                    work.histogram[min(max(np.int64((top - value) * scale), 0), BINS)] += 1
    # as many whole bins as the pop limit allows, and at least one; ``choose_cells`` stops at the limit
    cells = np.int64(0)
    chosen = 0
    while chosen < BINS and cells + work.histogram[chosen] <= constants.pop_limit:
        cells += work.histogram[chosen]
        chosen += 1
    return top, scale, max(chosen, 1)


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def _request(ranked, work, state, target, requests, stamp):
    """Find or add the LM request for a target phrase in a state; return its index, and the number of requests."""
    key = (np.int64(state) << np.int64(32)) | np.int64(target)
    slot = np.int64(mix(np.uint64(key)) & np.uint64(work.cache.shape[0] - 1))
    known = work.cache[slot]
    # overwriting the entry of another key of this stack can only lead to a duplicate request
    same = known.key == key
    if same and known.stamp == stamp:
        return np.int64(known.request), requests
    request = work.requests[requests]
    position = ranked.target_bounds[target]
    request.cached = slot
    request.end = ranked.target_bounds[target + 1]
    if same:  # scored for an earlier stack: the request is complete
        request.total = known.prob
        request.state = known.state
        request.position = request.end
    else:
        request.total = 0.0
        request.state = state
        request.position = position
        known.prob = 0.0  # the result for a phrase without words, which is never scored
        known.state = state
    known.key = key
    known.request = requests
    known.stamp = stamp
    return requests, requests + 1


@kernel(**UNCOUNTED)
def choose_cells(ranked, work, constants, waiting, stamp):
    """List the cells to score and their distinct LM requests.

    Args:
        waiting: number of edges.
        stamp: number of the stack.

    Returns:
        (number of cells, number of requests).
    """
    top, scale, chosen = _floor(ranked, work, constants, waiting)
    # the same loops as in ``_floor``, with the final floor
    floor = top - chosen / scale
    cells = np.int64(0)
    requests = np.int64(0)
    for edge in range(waiting):
        corner = work.edges[edge]
        first, last = np.int64(corner.first), np.int64(corner.last)
        turn, forward = np.int64(corner.backward), np.int64(corner.forward)
        known, guess, reach = ranked.known[turn], ranked.guess[turn], ranked.reach[turn]
        most = corner.base + reach[first] + constants.forward_bound
        group = work.groups[corner.group]
        for row in range(group.first, group.first + group.count):
            hypothesis = work.hypotheses[row]
            if hypothesis.score + most < floor:
                break
            base = hypothesis.score + corner.base
            if hypothesis.option >= 0:
                base += ranked.forward[ranked.forward_class[hypothesis.option], forward]
            for option in range(first, last):
                if base + reach[option] < floor:
                    break
                value = base + guess[option]
                # the same rounding as in ``_floor``, so the same cells are counted
                if max(np.int64((top - value) * scale), 0) >= chosen:
                    continue
                if cells >= constants.pop_limit:
                    return cells, requests
                cell = work.cells[cells]
                cells += 1
                cell.total = base + known[option]  # ``propose`` adds the LM score
                cell.edge = edge
                cell.hypothesis = row
                cell.option = option
                cell.request, requests = _request(
                    ranked, work, hypothesis.state, ranked.target[option], requests, stamp
                )
    return cells, requests


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def _remember(work, number):
    """Store the result of a request in the cache, unless another request has taken its slot in the meantime."""
    request = work.requests[number]
    known = work.cache[request.cached]
    if known.request == number:
        known.prob = request.total
        known.state = request.state


@kernel(**UNCOUNTED)
def answer_requests(lm, ranked, work, requests):  # noqa: PLR0912, PLR0915
    """Score all requests to a single LM together, word by word, and update the cache.

    Each round first touches the memory of all look-ups, then reads the results. Thus the cache misses of different
    requests overlap, which matters because the LM is much larger than the processor's caches.

    Args:
        lm: ``LmArrays``.
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
    size = lm.rows.shape[0]
    words, alone_state, alone_rest = ranked.target_words[0], ranked.alone_state[0], ranked.alone_rest[0]
    while waiting > 0:
        work.counts[QUERIES] += waiting
        # independent loads: the first probe of every request, in the longest context that its word may follow
        for k in range(waiting):
            request = work.requests[active[k]]
            word, state = words[request.position], request.state
            hashed = word_hash(word)
            while state != 0 and not may_follow(lm, state, hashed):
                request.total += lm.states[state].backoff
                state = lm.states[state].link
            request.state = state
            if state != 0:
                key, slot = lm_slot(state, word, size)
                request.slot = slot
                request.hit = np.int32(lm.rows[slot].key == key)
        # as ``query`` of the LM, but one step per round; incomplete requests are moved to the front of ``active``
        left = 0
        for k in range(waiting):
            number = active[k]
            request = work.requests[number]
            word = words[request.position]
            if request.state == 0:
                unigram = lm.unigrams[word]
                request.total += unigram.prob
                state = unigram.next
            else:
                slot = np.int64(request.slot)
                if request.hit == 0:
                    key = (np.int64(request.state) << np.int64(32)) | np.int64(word)
                    while lm.rows[slot].key != -1 and lm.rows[slot].key != key:
                        slot = following_slot(slot, size)
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
            if state == alone_state[position]:
                # same state as in the empty context: the remaining words do not depend on the preceding phrases
                request.total += alone_rest[position]
                request.state = alone_state[request.end - 1]
                _remember(work, number)
                continue
            request.state = state
            request.position = position + 1
            if position + 1 < request.end:
                active[left] = number
                left += 1
            else:
                _remember(work, number)
        waiting = left


@kernel(**UNCOUNTED)
def first_joint_state(lms, work):
    """Clear the joint states of the previous sentence and their cached scores; return the joint state after ``<s>``."""
    work.counts[JOINT_STATES] = 0
    work.joint_slots[:] = FREE
    # the keys of the cache contain joint states, which are renumbered
    for slot in range(work.cache.shape[0]):
        work.cache[slot].key = -1
    for n in range(len(lms.arrays)):
        work.joint_states[0, n] = lms.starts[n]
    return number_row(work.joint_states, work.joint_slots, work.counts, JOINT_STATES)


@kernel(**UNCOUNTED)
def answer_joint_requests(lms, ranked, work, constants, requests):
    """Score the first ``requests`` entries of ``Work.requests`` with all LMs, and update the cache."""
    for number in range(requests):
        request = work.requests[number]
        if request.position == request.end:  # scored from the cache
            continue
        total = 0.0
        # the outer loop is over LMs, since the loop over the words may end early for each of them
        for n in range(len(lms.arrays)):
            state = work.joint_states[request.state, n]
            score = 0.0
            for position in range(request.position, request.end):
                prob, state = query(lms.arrays[n], state, ranked.target_words[n, position])
                work.counts[QUERIES] += 1
                score += prob
                if state == ranked.alone_state[n, position]:
                    # same state as in the empty context: the remaining words do not depend on the preceding phrases
                    score += ranked.alone_rest[n, position]
                    state = ranked.alone_state[n, request.end - 1]
                    break
            work.joint_states[work.counts[JOINT_STATES], n] = state
            total += lms.weights[n] * score
        request.total = np.float32(total / constants.lm_weight)
        request.state = number_row(work.joint_states, work.joint_slots, work.counts, JOINT_STATES)
        _remember(work, number)


@kernel(**UNCOUNTED)
def joint_end(lms, work, constants, state):
    """Return the combined LM score of ``</s>`` in a joint state."""
    total = 0.0
    for n in range(len(lms.arrays)):
        prob, _ = query(lms.arrays[n], work.joint_states[state, n], lms.ends[n])
        total += lms.weights[n] * prob
    return total / constants.lm_weight


@kernel(**UNCOUNTED)
def first_context(work):
    """Clear the joint contexts of the previous sentence, if any; return the context at the beginning of a sentence.

    It is 0 for one neural feature, and number 0 of the joint contexts, a row of zeros, for several.
    """
    work.counts[JOINT_CONTEXTS] = 0
    if work.joint_contexts.shape[0] > 0:
        work.joint_context_slots[:] = FREE
        work.joint_contexts[0] = 0
        number_row(work.joint_contexts, work.joint_context_slots, work.counts, JOINT_CONTEXTS)
    return np.int32(0)


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def context_of_feature(work, context, feature):
    """Return the context in the store of one neural feature, given the context of a hypothesis."""
    if work.joint_contexts.shape[0] == 0:
        return context
    return work.joint_contexts[context, feature]


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def context_after(work, request):
    """Return the context of a hypothesis after a request, whose ``Work.end_contexts`` are known."""
    if work.joint_contexts.shape[0] == 0:
        return work.end_contexts[0, request]
    for feature in range(work.joint_contexts.shape[1]):
        work.joint_contexts[work.counts[JOINT_CONTEXTS], feature] = work.end_contexts[feature, request]
    return number_row(work.joint_contexts, work.joint_context_slots, work.counts, JOINT_CONTEXTS)
