"""Selection of the cells of a stack: the edges into the stack, the best cells of the edges, and their LM requests.

An *edge* combines a group of hypotheses with the translation options of one source span. It is a grid of *cells*, with
the hypotheses as rows and the options as columns, both sorted best first. The spans that may follow a group obey Moses'
rule: a phrase that does not start at the first uncovered word must end within the distortion limit of that word, so
that the later jump back is not too long.

The best ``pop_limit`` cells within a margin are selected by an estimate that contains the LM score of the phrase in the
empty context. All cells are selected before the first LM query, so that the queries can be processed together. (Cube
pruning with a heap requires the score of one cell before it can select the next, and a bad cell hides good cells behind
it.) For the selection with neural features, see ``neural_choice``.
"""

import numpy as np

from rnnsmt.base.kernels.decorator import INNER, UNCOUNTED, kernel
from rnnsmt.search.kernels.features import LEFT, MONOTONE, RIGHT, SWAP, coverage_future, orientation_of
from rnnsmt.search.kernels.hash_tables import find_item
from rnnsmt.search.kernels.lm_requests import add_request
from rnnsmt.search.kernels.records import BINS

_ONE = np.uint64(1)

_NONE = -1


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def find_coverage(work, gap, mask, known, stamp):
    """Find a coverage among those of the stack that is being filled; add it if it is new.

    Args:
        gap, mask: the coverage.
        known: number of coverages so far.
        stamp: stamp of the current pass, from ``next_stamp``.

    Returns:
        (index in ``Work.new_coverages``, number of coverages).
    """
    number = find_item(work.scratch.coverage_table, stamp, mask, np.uint64(gap), known)
    if number != known:
        return number, known
    work.new_coverages[known].gap = gap
    work.new_coverages[known].mask = mask
    work.new_coverages[known].future = coverage_future(work, gap, mask)
    work.new_coverages[known].group = _NONE
    return known, known + 1


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def _is_covered(gap, mask, position):
    """Return whether a source word is covered, given the gap and the mask of a coverage."""
    return position < gap or (mask >> np.uint64(position - gap)) & _ONE != np.uint64(0)


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def _orientations(work, constants, group, gap, mask, start, length):
    """Return two orientations of a phrase: for its backward score, and for the forward score of the preceding phrase.

    They differ only in hierarchical models, where the forward orientation is estimated as in
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
    """Collect all edges into stack ``k`` in ``Work.edges``, with the estimates of their first cells.

    Args:
        k: number of covered words.
        spans: ``int32`` [words, longest], source phrase by first word and length - 1, or -1.
        stamp: stamp of the current pass, from ``next_stamp``.

    Returns:
        The number of edges.
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
                result, known = find_coverage(work, new_gap, new_mask, known, stamp)
                future = work.new_coverages[result].future
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
                    edge.coverage = result
                    edge.start = start
                    edge.length = length
                    edge.first = first
                    edge.last = last
                    edge.base = base
                    edge.backward = backward
                    edge.forward = forward
                    edge.new_group = _NONE
                    edge.estimate = estimate
                    edges += 1
                    group = work.groups[group].next
    return edges


@kernel(**INNER, **UNCOUNTED)
def _last_block(work, group, start, end):
    """Return the last block after a phrase that follows a group.

    The phrase is pushed on the stack of blocks of the group and merged with the adjacent blocks on top, as in Moses
    (Galley and Manning 2008).

    Returns:
        (first source word of the last block, its last source word, the group whose last block is the next block on the
        stack, or -1 if there is no next block).
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
def find_group(work, constants, edge, groups):
    """Find the group to which the hypotheses from the cells of an edge belong; add it if it is new.

    Args:
        edge: index of the edge.
        groups: number of groups so far.

    Returns:
        (index in ``Work.new_groups``, number of groups).
    """
    if work.edges[edge].new_group != _NONE:
        return np.int64(work.edges[edge].new_group), groups
    coverage = work.edges[edge].coverage
    start = np.int64(work.edges[edge].start)
    end = start + work.edges[edge].length - 1
    gap = np.int64(work.new_coverages[coverage].gap)
    # a later phrase that ends just before ``start`` would be a swap; impossible if the word before ``start`` is covered
    swap = np.int64(start)
    if start <= gap or (work.new_coverages[coverage].mask >> np.uint64(start - 1 - gap)) & _ONE != np.uint64(0):
        swap = np.int64(_NONE)
    first, last, below = np.int64(_NONE), np.int64(_NONE), np.int64(_NONE)
    if constants.hierarchical != 0:
        first, last, below = _last_block(work, np.int64(work.edges[edge].group), start, end)
    # the groups of a coverage are few: a linked list, newest first
    group = np.int64(work.new_coverages[coverage].group)
    while group != _NONE:
        member = work.new_groups[group]
        same = member.end == end and member.swap == swap and member.block_start == first and member.block_end == last
        if same and _are_same_blocks(work, np.int64(member.below), below):
            work.edges[edge].new_group = group
            return group, groups
        group = np.int64(work.new_groups[group].next)
    work.new_groups[groups].coverage = coverage
    work.new_groups[groups].end = end
    work.new_groups[groups].swap = swap
    work.new_groups[groups].block_start = first
    work.new_groups[groups].block_end = last
    work.new_groups[groups].below = below
    work.new_groups[groups].count = 0
    work.new_groups[groups].next = work.new_coverages[coverage].group
    work.new_coverages[coverage].group = groups
    work.edges[edge].new_group = groups
    return groups, groups + 1


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def _visit_cells(ranked, work, constants, count, top, bins, listing, stamp):
    """Count cells by estimate in ``Scratch.histogram``, or list them in ``Work.cells`` with their LM requests.

    The width of a bin is ``constants.margin`` / ``BINS``. Bin 0 begins at the estimate ``top`` and also contains all
    better cells; the following bins contain worse cells.

    Args:
        count: number of edges.
        top: upper bound of the estimates in bin 0, except for better cells.
        bins: number of bins; worse cells are ignored. Counts of the last bins may be incomplete if the bins before them
            have more than ``pop_limit`` cells.
        listing: True: list the cells, at most ``pop_limit``; False: count them. It must be a constant.
        stamp: stamp of the current pass, from ``next_stamp``.

    Returns:
        (number of cells listed, number of LM requests).
    """
    scale = BINS / constants.margin
    floor = top - bins / scale
    histogram, counted = work.scratch.histogram, np.int64(0)
    cells = np.int64(0)
    requests = np.int64(0)
    for edge in range(count):
        corner = work.edges[edge]
        first, last = np.int64(corner.first), np.int64(corner.last)
        turn, forward = np.int64(corner.backward), np.int64(corner.forward)
        known, guess, reach = ranked.known[turn], ranked.guess[turn], ranked.reach[turn]
        # upper bound of what an option of this edge can add to the score of a hypothesis
        most = corner.base + reach[first] + constants.forward_bound
        group = work.groups[corner.group]
        # The outer loop is over hypotheses, the inner loop over options, which are contiguous. Each loop ends as soon
        # as no estimate of the remaining hypotheses or options can reach the floor.
        for row in range(group.first, group.first + group.count):
            hypothesis = work.hypotheses[row]
            if hypothesis.score + most < floor:  # also true of all following hypotheses, which have lower scores
                break
            base = hypothesis.score + corner.base
            if hypothesis.option >= 0:
                base += ranked.forward[ranked.forward_class[hypothesis.option], forward]
            for option in range(first, last):
                # options are sorted by estimate without reordering scores; ``reach`` bounds all following options
                if base + reach[option] < floor:
                    break
                below = (top - (base + guess[option])) * scale
                if not below < bins:
                    continue
                if not listing:
                    histogram[max(np.int64(below), 0)] += 1
                    counted += 1
                    continue
                if cells >= constants.pop_limit:
                    return cells, requests
                cell = work.cells[cells]
                cells += 1
                cell.total = base + known[option]
                cell.edge = edge
                cell.hypothesis = row
                cell.option = option
                cell.lm_request, requests = add_request(
                    ranked, work, hypothesis.state, ranked.target[option], requests, stamp
                )
        if not listing and counted > constants.pop_limit:
            # the last bins are not needed if the others already have too many cells
            while counted - histogram[bins - 1] > constants.pop_limit:
                bins -= 1
                counted -= histogram[bins]
            floor = top - (bins + 1) / scale  # one more bin, because of rounding
    return cells, requests


@kernel(**UNCOUNTED)
def choose_cells(ranked, work, constants, count, stamp):
    """List the cells to score, which are the best by estimate, at most ``pop_limit``, and their distinct LM requests.

    Args:
        count: number of edges.
        stamp: stamp of the current pass, from ``next_stamp``.

    Returns:
        (number of cells, number of LM requests).
    """
    # A histogram instead of a sort or heap: the number of cells that are examined is many times the pop limit, and
    # the same loops can afterwards list the cells in memory order.
    top = -np.inf
    for edge in range(count):  # the best estimate of the first cells of edges; other cells may be better
        top = max(top, work.edges[edge].estimate)
    work.scratch.histogram[:] = 0
    _visit_cells(ranked, work, constants, count, top, BINS, False, stamp)
    # as many whole bins as the pop limit allows; at least one, even if not all of its cells can be listed
    cells, chosen = np.int64(0), 0
    while chosen < BINS and cells + work.scratch.histogram[chosen] <= constants.pop_limit:
        cells += work.scratch.histogram[chosen]
        chosen += 1
    return _visit_cells(ranked, work, constants, count, top, max(chosen, 1), True, stamp)
