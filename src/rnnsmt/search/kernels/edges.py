"""Edges into the stack that is being filled, compiled.

An *edge* joins a group of hypotheses with the options of one source span: a grid of *cells*, hypotheses downwards and
options to the right, both best first. Which spans may follow is Moses' rule: a phrase that does not start at the first
gap must end within the distortion limit of it, so that the way back is not too far, and have no wall in between.
"""

import numpy as np

from rnnsmt.kernels.decorator import INNER, kernel
from rnnsmt.kernels.hashing import mix
from rnnsmt.search.kernels.future_cost import coverage_future

_ONE = np.uint64(1)

_NONE = -1

MONOTONE, SWAP, RIGHT, LEFT = 0, 1, 2, 3


@kernel(forceinline=True, **INNER)
def orientation_of(last_start, last_end, start, end):
    """Monotone, swap, or discontinuous to the right or to the left; ``last_end`` -1 is the start of the sentence."""
    if last_end + 1 == start:
        return MONOTONE
    if last_end >= 0 and end + 1 == last_start:
        return SWAP
    return RIGHT if last_end < start else LEFT


@kernel(forceinline=True, **INNER)
def target_coverage(work, gap, mask, known, stamp):
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


@kernel(forceinline=True, **INNER)
def _is_covered(gap, mask, position):
    """Whether a source word is covered, of a coverage by its first gap and what is covered behind it."""
    return position < gap or (mask >> np.uint64(position - gap)) & _ONE != np.uint64(0)


@kernel(forceinline=True, **INNER)
def _orientations(work, constants, group, gap, mask, start, length):
    """The orientations of a phrase to what is before it: that of its backward score, and of the forward score there."""
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


@kernel()
def collect_edges(k, spans, ranked, work, constants, stamp):
    """All edges into stack ``k`` with the estimates of their best cells; returns how many."""
    count, longest = spans.shape
    edges = 0
    known = np.int64(0)
    limit = np.int64(constants.distortion_limit)
    for length in range(1, min(longest, k) + 1):
        bits = (_ONE << np.uint64(length)) - _ONE
        for coverage in range(work.stacks[k - length].coverage, work.stacks[k - length + 1].coverage):
            gap = np.int64(work.coverages[coverage].gap)
            mask = work.coverages[coverage].mask
            last_start = gap + limit - length if limit > length else gap
            for start in range(gap, min(count - length, last_start) + 1):
                source = spans[start, length - 1]
                behind_wall = start != gap and work.walls[start + length - 1] != work.walls[gap]
                if source < 0 or behind_wall:
                    continue
                first, last = ranked.first[source], ranked.first[source + 1]
                place = bits << np.uint64(start - gap)
                if mask & place != np.uint64(0) or first == last:
                    continue
                new_mask, new_gap = mask | place, gap
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
                    best = work.groups[group].first
                    estimate = work.hypotheses[best].score + base + ranked.guess[first, backward]
                    if work.hypotheses[best].option >= 0:
                        estimate += ranked.forward[work.hypotheses[best].option, forward]
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


@kernel(**INNER)
def _last_block(work, group, start, end):
    """The last block after a phrase that follows a group, and the group whose last block is below it.

    The phrase is put on the stack of blocks and merged with what it touches, as in Moses (Galley and Manning 2008).
    """
    if work.groups[group].block_end == _NONE:
        return start, end, np.int64(_NONE)
    turn = orientation_of(work.groups[group].block_start, work.groups[group].block_end, start, end)
    below = np.int64(group)
    while below != _NONE and turn <= SWAP:
        start = min(start, np.int64(work.groups[below].block_start))
        end = max(end, np.int64(work.groups[below].block_end))
        below = np.int64(work.groups[below].below)
        if below != _NONE:
            turn = orientation_of(work.groups[below].block_start, work.groups[below].block_end, start, end)
    return start, end, below


@kernel(**INNER)
def _are_same_blocks(work, one, other):
    """Whether the stacks of blocks from two groups on are equal."""
    while one != other:
        if one == _NONE or other == _NONE:  # noqa: PLR1714
            return False
        if work.groups[one].block_start != work.groups[other].block_start:
            return False
        if work.groups[one].block_end != work.groups[other].block_end:
            return False
        one = np.int64(work.groups[one].below)
        other = np.int64(work.groups[other].below)
    return True


@kernel(forceinline=True, **INNER)
def target_group(work, constants, edge, groups):
    """The group that the cells of an edge belong to; (group, how many groups)."""
    if work.edges[edge].target != _NONE:
        return np.int64(work.edges[edge].target), groups
    coverage = work.edges[edge].coverage
    start = np.int64(work.edges[edge].start)
    end = start + work.edges[edge].length - 1
    gap = np.int64(work.targets[coverage].gap)
    swap = np.int64(start)  # a phrase that ends right before it would be a swap: only where that word is still open
    if start <= gap or (work.targets[coverage].mask >> np.uint64(start - 1 - gap)) & _ONE != np.uint64(0):
        swap = np.int64(_NONE)
    first, last, below = np.int64(_NONE), np.int64(_NONE), np.int64(_NONE)
    if constants.hierarchical != 0:
        first, last, below = _last_block(work, np.int64(work.edges[edge].group), start, end)
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
