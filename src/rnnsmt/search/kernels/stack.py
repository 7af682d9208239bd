"""Search of a sentence with one stack of hypotheses for each number of covered words (Koehn 2010, chapter 6).

``begin`` sets up the state of a sentence. A stack is filled in two steps: ``propose`` collects the edges from stacks
with fewer covered words, selects the cells and scores their LM requests; ``add_cells`` converts the cells to
hypotheses. All state is in ``Work``. Therefore, many sentences can be searched in lockstep, one stack at a time, and
neural features can score the cells of all sentences between the two steps.
"""

import numpy as np

from rnnsmt.base.kernels.decorator import INNER, UNCOUNTED, kernel
from rnnsmt.lm.automaton import query
from rnnsmt.search.kernels.cells import choose_cells, collect_edges, find_group
from rnnsmt.search.kernels.features import future_costs
from rnnsmt.search.kernels.hash_tables import find_item, pair
from rnnsmt.search.kernels.lm_requests import answer_joint_requests, answer_requests, first_joint_state, joint_end
from rnnsmt.search.kernels.neural_store import first_context
from rnnsmt.search.kernels.records import (
    ARCS,
    CELLS,
    COVERAGES,
    EDGES,
    GROUPS,
    HYPOTHESES,
    REQUESTS,
    Extension,
    next_stamp,
)
from rnnsmt.search.kernels.selection import last_place

_NONE = -1


@kernel(**UNCOUNTED)
def begin(spans, lms, several, ranked, work, constants):
    """Set up the state of a sentence: future costs, and the empty hypothesis in stack 0.

    Args:
        spans: ``int32`` [words, longest], source phrase by first word and length - 1, or -1.
        lms: ``LanguageModels``.
        several: None if there is one LM, so that numba compiles no code for several LMs; otherwise True.
        ranked: ``RankedOptions``.
        work: ``Work``, overwritten.
        constants: ``SearchConstants``.
    """
    future_costs(spans, ranked, work, min(np.int64(constants.distortion_limit), spans.shape[0]))
    work.hypotheses[0].score = 0.0
    if several is None:
        work.hypotheses[0].state = lms.starts[0]
    else:
        work.hypotheses[0].state = first_joint_state(lms, work)
    work.hypotheses[0].back = _NONE
    work.hypotheses[0].option = _NONE
    work.hypotheses[0].start = _NONE
    work.hypotheses[0].end = _NONE
    work.hypotheses[0].arc = _NONE
    work.hypotheses[0].context = first_context(work)
    work.groups[0].end = -1
    work.groups[0].swap = _NONE
    work.groups[0].block_start = _NONE
    work.groups[0].block_end = _NONE
    work.groups[0].below = _NONE
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


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def keep_arc(work, total, back, option, edge, following):
    """Store a recombined hypothesis as an arc; return its index.

    Args:
        total: score plus future cost.
        back, option, edge: indices of previous hypothesis, option and edge.
        following: next arc into the same hypothesis, or -1.
    """
    arc = work.counts[ARCS]
    work.arcs[arc].score = total - work.new_coverages[work.edges[edge].coverage].future
    work.arcs[arc].back = back
    work.arcs[arc].option = option
    work.arcs[arc].start = work.edges[edge].start
    work.arcs[arc].end = work.edges[edge].start + work.edges[edge].length - 1
    work.arcs[arc].next = following
    work.counts[ARCS] = arc + 1
    return arc


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def recombination_key(group, forward, state, context):
    """Return the key by which hypotheses are recombined: everything on which the scores of further words depend."""
    return pair(group, forward), pair(state, context)


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def add_hypothesis(ranked, work, constants, extension, fresh, stamp):
    """Add a hypothesis to the new stack, or recombine it with an equal one.

    Hypotheses are equal if they have the same group, LM state, context of the neural features, and forward reordering
    scores of the last option; the better one represents both.

    Args:
        extension: ``Extension``, the hypothesis.
        fresh: number of hypotheses in the new stack so far.
        stamp: stamp of the current pass, from ``next_stamp``.

    Returns:
        The number of hypotheses in the stack.
    """
    # unpacked into local variables, which numba keeps in registers without constructing the record
    total, edge, back, option, state, context, group = extension
    forward = ranked.forward_class[option]
    high, low = recombination_key(group, forward, state, context)
    number = find_item(work.scratch.recombination_table, stamp, high, low, fresh)
    if number != fresh:
        known = work.scratch.new_hypotheses[number]
        if total > known.total:  # exchange the two hypotheses: the worse one becomes an arc into the better one
            if constants.keep_arcs:
                known.arc = keep_arc(work, known.total, known.back, known.option, known.edge, known.arc)
            known.total = total
            known.back = back
            known.option = option
            known.edge = edge
        elif constants.keep_arcs:
            known.arc = keep_arc(work, total, back, option, edge, known.arc)
        return fresh
    new = work.scratch.new_hypotheses[fresh]
    new.total = total
    new.state = state
    new.context = context
    new.back = back
    new.option = option
    new.edge = edge
    new.group = group
    new.arc = _NONE
    return fresh + 1


@kernel(**INNER, **UNCOUNTED)
def prune(work, constants, fresh, best):
    """Apply threshold and histogram pruning: set the group of pruned hypotheses to -1, count the others by group.

    Args:
        fresh: number of hypotheses in the new stack.
        best: best total of these hypotheses.
    """
    threshold = best + constants.beam
    room = fresh  # number of hypotheses to keep whose total equals the threshold; the first ones are kept
    if fresh > constants.stack_size:
        for i in range(fresh):
            work.scratch.values[i] = work.scratch.new_hypotheses[i].total
        lowest, equal = last_place(work.scratch.values, fresh, constants.stack_size)
        if lowest >= threshold:
            threshold, room = lowest, equal
    for i in range(fresh):
        new = work.scratch.new_hypotheses[i]
        if new.total == threshold:
            room -= 1
        if new.total < threshold or (new.total == threshold and room < 0):
            new.group = _NONE
        else:
            work.new_groups[new.group].count += 1


@kernel(**INNER, **UNCOUNTED)
def place_groups(work, groups):
    """Assign contiguous ranges of ``Work.hypotheses`` to the groups of the new stack, coverage by coverage.

    Groups without hypotheses are omitted. ``store`` fills the ranges of the other groups. In ``Work.new_groups``,
    ``stored`` is set to the index of a group in ``Work.groups``.
    """
    hypothesis = work.counts[HYPOTHESES]
    coverages = work.counts[COVERAGES]
    number = work.counts[GROUPS]
    for group in range(groups):
        # all groups of a coverage are placed when the first of them is reached; then the list of groups is empty
        coverage = work.new_groups[group].coverage
        at = np.int64(work.new_coverages[coverage].group)
        work.new_coverages[coverage].group = _NONE
        chain = np.int64(_NONE)
        while at != _NONE:
            member = work.new_groups[at]
            if member.count > 0:
                new = work.groups[number]
                new.end = member.end
                new.swap = member.swap
                new.block_start = member.block_start
                new.block_end = member.block_end
                new.below = member.below
                new.first = hypothesis
                new.count = 0
                new.next = chain
                member.stored = number
                chain = number
                number += 1
                hypothesis += member.count
            at = np.int64(member.next)
        if chain != _NONE:
            work.coverages[coverages].gap = work.new_coverages[coverage].gap
            work.coverages[coverages].mask = work.new_coverages[coverage].mask
            work.coverages[coverages].group = chain
            coverages += 1
    work.counts[HYPOTHESES] = hypothesis
    work.counts[COVERAGES] = coverages
    work.counts[GROUPS] = number


@kernel(**INNER, **UNCOUNTED)
def store(k, work, constants, fresh, groups, best):
    """Prune the new stack, and store its hypotheses group by group, best first.

    Args:
        k: number of covered words.
        fresh: number of hypotheses before pruning.
        groups: number of groups.
        best: best total of the hypotheses.
    """
    # count the remaining hypotheses of every group, assign contiguous ranges to the groups, and fill the ranges: later
    # stacks read the hypotheses of a group sequentially, best first (``cells``)
    prune(work, constants, fresh, best)
    work.stacks[k].hypothesis = work.counts[HYPOTHESES]
    work.stacks[k].coverage = work.counts[COVERAGES]
    place_groups(work, groups)
    for i in range(fresh):
        new = work.scratch.new_hypotheses[i]
        if new.group == _NONE:
            continue
        edge = work.edges[new.edge]
        group = work.groups[work.new_groups[new.group].stored]
        score = new.total - work.new_coverages[edge.coverage].future
        index = np.int64(group.first + group.count)
        group.count += 1
        while index > group.first and work.hypotheses[index - 1].score < score:  # insertion sort within the group
            work.hypotheses[index] = work.hypotheses[index - 1]
            index -= 1
        hypothesis = work.hypotheses[index]
        hypothesis.score = score
        hypothesis.state = new.state
        hypothesis.context = new.context
        hypothesis.back = new.back
        hypothesis.option = new.option
        hypothesis.start = edge.start
        hypothesis.end = group.end
        hypothesis.arc = new.arc
    work.stacks[k + 1].hypothesis = work.counts[HYPOTHESES]
    work.stacks[k + 1].coverage = work.counts[COVERAGES]


@kernel(**UNCOUNTED)
def propose(k, spans, lms, several, ranked, work, constants):
    """Select the cells of stack ``k``, and compute their totals without the neural features.

    Args:
        k: number of covered words of the stack.
        spans: ``int32`` [words, longest], source phrase by first word and length - 1, or -1.
        lms, several: as for ``begin``.

    Returns:
        The number of cells.
    """
    stamp = next_stamp(work)
    edges = collect_edges(k, spans, ranked, work, constants, stamp)
    cells, requests = choose_cells(ranked, work, constants, edges, stamp)
    if several is None:
        answer_requests(lms.arrays[0], ranked, work, requests)
    else:
        answer_joint_requests(lms, ranked, work, constants, requests)
    work.counts[EDGES] += edges
    work.counts[CELLS] += cells
    work.counts[REQUESTS] += requests
    for number in range(cells):
        cell = work.cells[number]
        request = work.lm_requests[cell.lm_request]
        cell.total += constants.lm_weight * np.float64(request.total)
        if k == spans.shape[0]:  # the sentence is complete: score </s>
            if several is None:
                prob, _ = query(lms.arrays[0], request.state, lms.ends[0])
                cell.total += constants.lm_weight * np.float64(prob)
            else:
                cell.total += constants.lm_weight * joint_end(lms, work, constants, request.state)
    return cells


@kernel(**UNCOUNTED)
def add_cells(k, cells, ranked, work, constants, neural, groups):
    """Convert the scored cells to the hypotheses of stack ``k``.

    Args:
        k: number of covered words of the stack.
        cells: number of cells.
        neural: whether to add the scores of the neural features.
        groups: number of groups that ``choose_for_neural`` has already added to ``Work.new_groups``.
    """
    stamp = next_stamp(work)
    # compute the best total first: cells below the beam become neither hypotheses nor arcs
    best = -np.inf
    for number in range(cells):
        cell = work.cells[number]
        if neural:
            cell.total += work.neural.requests[work.neural.request_of[number]].total
        best = max(best, cell.total)
    fresh = np.int64(0)
    context = np.int32(0)
    for number in range(cells):
        cell = work.cells[number]
        if cell.total < best + constants.beam:
            continue
        group, groups = find_group(work, constants, cell.edge, groups)
        state = work.lm_requests[cell.lm_request].state
        if neural:
            context = work.neural.requests[work.neural.request_of[number]].end_context
        extension = Extension(cell.total, cell.edge, cell.hypothesis, cell.option, state, context, group)
        fresh = add_hypothesis(ranked, work, constants, extension, fresh, stamp)
    store(k, work, constants, fresh, groups, best)


@kernel(**UNCOUNTED)
def best_complete(work, count):
    """Return the index of the best hypothesis that covers all ``count`` words; -1 if there is none."""
    best = -1
    for hypothesis in range(work.stacks[count].hypothesis, work.stacks[count + 1].hypothesis):
        if best < 0 or work.hypotheses[hypothesis].score > work.hypotheses[best].score:
            best = hypothesis
    return best


@kernel(**UNCOUNTED)
def search_sentence(spans, lms, several, ranked, work, constants):
    """Search a sentence without neural features; the arguments are those of ``begin``.

    Returns:
        The index of the best complete hypothesis.
    """
    begin(spans, lms, several, ranked, work, constants)
    count = spans.shape[0]
    for k in range(1, count + 1):
        cells = propose(k, spans, lms, several, ranked, work, constants)
        add_cells(k, cells, ranked, work, constants, False, np.int64(0))
    return best_complete(work, count)


@kernel(**UNCOUNTED)
def trace(work, hypothesis, derivations, number):
    """Write the best derivation of a hypothesis to ``derivations``.

    Args:
        derivations: ``Derivations``, which already contains the derivations before ``number``.
        number: index of the derivation.
    """
    length = 0
    at = np.int64(hypothesis)
    while at > 0:
        length += 1
        at = np.int64(work.hypotheses[at].back)
    index = derivations.offsets[number] + length
    derivations.offsets[number + 1] = index
    at = np.int64(hypothesis)
    while at > 0:
        index -= 1
        derivations.options[index] = work.hypotheses[at].option
        derivations.starts[index] = work.hypotheses[at].start
        derivations.ends[index] = work.hypotheses[at].end
        at = np.int64(work.hypotheses[at].back)


@kernel(**UNCOUNTED)
def search_sentences(first, bounds, spans, lms, several, ranked, work, constants, derivations):
    """Search sentences without neural features.

    Args:
        first: index of the first sentence.
        bounds: ``int64`` [sentences + 1]; the words of sentence s are bounds[s]..bounds[s + 1] - 1 in ``spans``.
        spans: ``int32`` [words of all sentences, longest], source phrase by first word and length - 1, or -1.
        lms, several, ranked, work, constants: as for ``begin``.
        derivations: ``Derivations`` of n sentences, filled; the derivation of an empty sentence has no phrases.
    """
    for number in range(derivations.offsets.shape[0] - 1):
        begins, stops = bounds[first + number], bounds[first + number + 1]
        hypothesis = np.int64(_NONE)
        if stops > begins:
            hypothesis = np.int64(search_sentence(spans[begins:stops], lms, several, ranked, work, constants))
        trace(work, hypothesis, derivations, number)
