"""The k best derivations of the lattice of recombined hypotheses.

The method is lazy k-best extraction (Huang and Chiang 2005, algorithm 3), without recursion. The nodes of the lattice
are the hypotheses and the goal. The arcs into a hypothesis are its own arc and the arcs of the hypotheses that were
recombined into it. The *origin* of an arc is the node from which it comes. Every node has a heap of *candidates*; a
candidate is an arc with a derivation of its origin.

The next derivation of a node is its best candidate. This candidate is then replaced by its successor, the same arc with
the next derivation of the origin, which is extracted first. The first derivation of an origin, too, is extracted only
when it is needed, because its score is known from the search.

``duplicates.duplicate_key`` decides which derivations are omitted as duplicates. ``nbest.NBestExtractor`` limits the
space of an extraction.
"""

from typing import NamedTuple

import numpy as np

from rnnsmt.base.kernels.decorator import INNER, UNCOUNTED, kernel
from rnnsmt.base.kernels.probing import find_slot
from rnnsmt.search.kernels.duplicates import FREE, duplicate_key, text_hash
from rnnsmt.search.kernels.records import record

NODE = record("heap:i4", "extracted:i4", "first:i4", "last:i4", "opened:i4")
"""State of a node of the lattice.

``heap``: root of the heap of candidates (-1: empty); ``extracted``: the candidate that was last removed from the heap
and whose successor is not in the heap yet (-1: none); ``first`` and ``last``: its first and last derivation so far,
which are linked by ``next`` (-1: none); ``opened``: 1 if its arcs have been added to the candidates, else 0."""

CANDIDATE = record(
    "score:f8",
    "step:f8",
    "origin:i4",
    "option:i4",
    "start:i4",
    "end:i4",
    "derivation:i4",
    "left:i4",
    "right:i4",
    "distance:i4",
)
"""Candidate: an arc from ``origin`` into a node, with a ``derivation`` of ``origin`` (-1: the first derivation, not yet
extracted).

``score``: score of the derivation extended by the arc; ``step``: score of the arc alone; ``option``, ``start`` and
``end``: option and source span of the arc; ``left`` and ``right``: children in the leftist heap (-1: none);
``distance``: distance to the nearest missing child."""

DERIVATION = record("score:f8", "hash:u8", "back:i4", "option:i4", "start:i4", "end:i4", "next:i4", "slot:i4")
"""Derivation of a node.

``hash``: hash of its target string; ``back``: the derivation that it extends (-1: none); ``option``, ``start`` and
``end``: the option by which it extends ``back``, and the source span of the option (-1: none); ``next``: the next best
derivation of the same node (-1: none so far); ``slot``: its slot in ``Lattice.seen``."""

_NONE = -1

_LATER = -2
"""Result of ``_after`` for a derivation that is not extracted yet."""

CANDIDATES, DERIVATIONS, SUCCESSORS = range(3)
"""Indices into ``Lattice.counts``: number of candidates in use, number of derivations in use, and number of candidates
that were replaced by their successors."""


class Lattice(NamedTuple):
    """Scratch space of one extraction.

    Attributes:
        nodes: ``NODE`` [hypotheses + 1]; the last one is the goal, whose arcs come from the complete hypotheses.
        candidates: ``CANDIDATE`` [n], the candidates of all nodes.
        derivations: ``DERIVATION`` [n], the derivations of all nodes; number 0 is the empty derivation.
        seen: ``uint64`` [a power of two], set of the ``duplicate_key`` of all derivations; at most half full.
        stack: ``int32`` [words + 3], path of nodes from the goal to the current node.
        spine: ``int32`` [64], scratch space of ``_merge``.
        counts: ``int64`` [3], see ``CANDIDATES``, ``DERIVATIONS`` and ``SUCCESSORS``.
    """

    nodes: np.ndarray
    candidates: np.ndarray
    derivations: np.ndarray
    seen: np.ndarray
    stack: np.ndarray
    spine: np.ndarray
    counts: np.ndarray


def new_lattice(hypotheses: int, arcs: int, words: int, derivations: int) -> Lattice:
    """Allocate the scratch space of an extraction.

    Args:
        hypotheses, arcs: maximum numbers of hypotheses and of recombined arcs in the lattice.
        words: maximum number of words of the sentence.
        derivations: maximum number of derivations.
    """
    return Lattice(
        nodes=np.empty(hypotheses + 1, NODE),
        # one for each hypothesis, one for each recombined arc, and one at the goal for each complete hypothesis
        candidates=np.empty(2 * hypotheses + arcs + 2, CANDIDATE),
        derivations=np.empty(derivations, DERIVATION),
        seen=np.zeros(1 << (2 * derivations).bit_length(), np.uint64),  # ``FREE``
        stack=np.empty(words + 3, np.int32),
        spine=np.empty(64, np.int32),
        counts=np.zeros(3, np.int64),
    )


@kernel(**INNER, **UNCOUNTED)
def _merge(pool, spine, a, b):
    """Merge two leftist heaps, maximum first, and return the root.

    Args:
        pool: ``CANDIDATE``, the nodes of the heaps.
        spine: ``int32`` [64], scratch space: the right spines of both heaps are of logarithmic length.
        a, b: the roots; -1 for an empty heap.
    """
    depth = 0
    while a != _NONE and b != _NONE:  # noqa: PLR1714
        if pool[b].score > pool[a].score:
            a, b = b, a
        spine[depth] = a
        depth += 1
        a = pool[a].right
    root = b if a == _NONE else a
    # on the way back, exchange subtrees so that the right one has the smaller distance to a missing child
    while depth > 0:
        depth -= 1
        above = spine[depth]
        pool[above].right = root
        left = pool[above].left
        left_distance = 0 if left == _NONE else pool[left].distance
        right_distance = 0 if root == _NONE else pool[root].distance
        if left_distance < right_distance:
            pool[above].left, pool[above].right = root, left
            left_distance, right_distance = right_distance, left_distance
        pool[above].distance = right_distance + 1
        root = above
    return root


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def _push(lattice, node, number, score, derivation):
    """Add a candidate to the heap of a node.

    Args:
        number: number of the candidate, whose arc is already set.
        score: score of ``derivation`` extended by the arc of the candidate.
        derivation: derivation of the origin; -1 for its first derivation.
    """
    entry = lattice.candidates[number]
    entry.score = score
    entry.derivation = derivation
    entry.left = _NONE
    entry.right = _NONE
    entry.distance = 1
    lattice.nodes[node].heap = _merge(lattice.candidates, lattice.spine, lattice.nodes[node].heap, number)


@kernel(**INNER, **UNCOUNTED)
def _push_arc(lattice, node, origin, origin_score, score, option, start, end):
    """Add a candidate to the heap of a node: an arc with the first derivation of its origin.

    Args:
        origin_score: score of the first derivation of ``origin``, computed by the search.
        score: score of this derivation extended by the arc.
        option, start, end: option and source span of the arc; -1 for an arc into the goal.
    """
    number = np.int32(lattice.counts[CANDIDATES])
    lattice.counts[CANDIDATES] = number + 1
    entry = lattice.candidates[number]
    entry.step = score - origin_score
    entry.origin = origin
    entry.option = option
    entry.start = start
    entry.end = end
    _push(lattice, node, number, score, _NONE)


@kernel(**INNER, **UNCOUNTED)
def _open(lattice, hypotheses, arcs, node):
    """Add all arcs into a hypothesis to its candidates: its own arc, and the recombined arcs."""
    best = hypotheses[node]
    score = hypotheses[best.back].score
    _push_arc(lattice, node, best.back, score, best.score, best.option, best.start, best.end)
    number = best.arc
    while number != _NONE:
        arc = arcs[number]
        score = hypotheses[arc.back].score
        _push_arc(lattice, node, arc.back, score, arc.score, arc.option, arc.start, arc.end)
        number = arc.next
    lattice.nodes[node].opened = 1


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def _after(lattice, node, derivation):
    """Find the derivation of a node that follows ``derivation``, or its first derivation if ``derivation`` is -1.

    Returns:
        The number of the derivation; -1 if the node has no more derivations; ``_LATER`` if it is not extracted yet.
    """
    state = lattice.nodes[node]
    following = state.first if derivation == _NONE else lattice.derivations[derivation].next
    if following == _NONE and (state.opened == 0 or state.heap != _NONE or state.extracted != _NONE):
        return np.int32(_LATER)
    return following


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def _derive(lattice, node, candidate, strings):
    """Add the derivation of a candidate to those of a node, unless it is a duplicate; return whether it was added."""
    number = lattice.counts[DERIVATIONS]
    new = lattice.derivations[number]
    new.score = candidate.score
    new.hash = text_hash(strings, lattice.derivations[candidate.derivation].hash, candidate.option)
    new.back = candidate.derivation
    new.option = candidate.option
    new.start = candidate.start
    new.end = candidate.end
    new.next = _NONE
    key = duplicate_key(node, new)
    slot = find_slot(lattice.seen, key, FREE)
    if lattice.seen[slot] == key:
        return False
    lattice.seen[slot] = key
    new.slot = slot
    lattice.counts[DERIVATIONS] = number + 1
    state = lattice.nodes[node]
    if state.last == _NONE:
        state.first = number
    else:
        lattice.derivations[state.last].next = number
    state.last = number
    return True


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def _try_best(lattice, hypotheses, arcs, strings, node):
    """Try to extract a derivation of a node from its best candidate.

    Returns:
        -1 if the node has a new derivation or no more derivations; the node itself if its next candidate must be tried;
        another node if the next derivation of that node is needed first.
    """
    state = lattice.nodes[node]
    if state.opened == 0:
        _open(lattice, hypotheses, arcs, node)
    if state.extracted != _NONE:
        last = lattice.candidates[state.extracted]
        following = _after(lattice, last.origin, last.derivation)
        if following == _LATER:
            return last.origin
        if following != _NONE:
            lattice.counts[SUCCESSORS] += 1
            _push(lattice, node, state.extracted, last.step + lattice.derivations[following].score, following)
        state.extracted = _NONE
    top = state.heap
    if top == _NONE:
        return np.int32(_NONE)
    best = lattice.candidates[top]
    if best.derivation == _NONE:
        first = _after(lattice, best.origin, _NONE)
        if first == _LATER:
            return best.origin
        best.derivation = first
    state.heap = _merge(lattice.candidates, lattice.spine, best.left, best.right)
    if best.derivation == _NONE:  # all derivations of the origin are duplicates
        return node
    state.extracted = top
    return np.int32(_NONE) if _derive(lattice, node, best, strings) else node


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def _extract_next(lattice, hypotheses, arcs, strings, goal):
    """Extract the next derivation of the goal, if there is one; return False if the space is not sufficient.

    A node that needs the next derivation of another node waits on the stack until that derivation is extracted.
    """
    depth = 1
    lattice.stack[0] = goal
    while depth > 0:
        if max(lattice.counts[DERIVATIONS], lattice.counts[SUCCESSORS]) >= lattice.derivations.shape[0]:
            return False
        node = lattice.stack[depth - 1]
        needed = _try_best(lattice, hypotheses, arcs, strings, node)
        if needed == _NONE:
            depth -= 1
        elif needed != node:
            lattice.stack[depth] = needed
            depth += 1
    return True


@kernel(**INNER, **UNCOUNTED)
def _reset(lattice, hypotheses, first_final, goal):
    """Clear the state of the previous extraction, and add the complete hypotheses to the candidates of the goal."""
    # clear only the slots of the previous extraction: the set is large, and usually few slots are occupied
    for number in range(1, lattice.counts[DERIVATIONS]):
        lattice.seen[lattice.derivations[number].slot] = FREE
    lattice.counts[CANDIDATES] = 0
    lattice.counts[DERIVATIONS] = 1
    lattice.counts[SUCCESSORS] = 0
    for k in range(goal + 1):
        node = lattice.nodes[k]
        node.heap = _NONE
        node.extracted = _NONE
        node.first = _NONE
        node.last = _NONE
        node.opened = 0
    root = lattice.derivations[0]
    root.score, root.hash, root.back, root.option, root.next = 0.0, np.uint64(0), _NONE, _NONE, _NONE
    start = lattice.nodes[0]
    start.first, start.last, start.opened = 0, 0, 1
    lattice.nodes[goal].opened = 1
    for k in range(first_final, goal):
        score = hypotheses[k].score
        _push_arc(lattice, goal, k, score, score, _NONE, _NONE, _NONE)


@kernel(**INNER, **UNCOUNTED)
def _write(derivations, last, out, number):
    """Write the phrases of a derivation of the goal, ``derivations[last]``, as derivation ``number`` of ``out``."""
    first = derivations[last].back  # skip the arc into the goal, which has no phrase
    length = 0
    at = first
    while at > 0:
        length += 1
        at = derivations[at].back
    index = out.offsets[number] + length
    out.offsets[number + 1] = index
    at = first
    while at > 0:
        index -= 1
        out.options[index] = derivations[at].option
        out.starts[index] = derivations[at].start
        out.ends[index] = derivations[at].end
        at = derivations[at].back


@kernel()
def extract(hypotheses, arcs, count, first_final, n, lattice, strings, out):
    """Extract the n best derivations of the complete hypotheses, without duplicates.

    Args:
        hypotheses: ``HYPOTHESIS``.
        arcs: ``ARC``, recombined hypotheses.
        count: number of hypotheses; also the index of the goal node.
        first_final: the complete hypotheses are ``first_final``..``count`` - 1.
        n: maximum number of derivations.
        lattice: ``Lattice``, overwritten.
        strings: ``TargetStrings``.
        out: ``Derivations`` with room for n derivations, filled, best first.

    Returns:
        The number of derivations, and whether the space was exhausted before all of them were found.
    """
    goal = np.int32(count)
    _reset(lattice, hypotheses, first_final, goal)
    out.offsets[0] = 0
    last = np.int32(_NONE)
    for number in range(n):
        if not _extract_next(lattice, hypotheses, arcs, strings, goal):
            return number, True
        if lattice.nodes[goal].last == last:
            return number, False
        last = lattice.nodes[goal].last
        _write(lattice.derivations, last, out, number)
    return n, False
