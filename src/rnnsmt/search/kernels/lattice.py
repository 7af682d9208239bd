"""Distinct k-best derivations from the lattice of recombined hypotheses.

Lazy k-best extraction (Huang and Chiang 2005, algorithm 3) without recursion. The nodes of the lattice are hypotheses.
A node keeps only the best derivation of each distinct target string: the rest of a translation adds the same score to
all derivations of a node, so a worse derivation of the same string is never part of a new best string. Strings are
compared by a 64-bit hash of their words.
"""

from typing import NamedTuple

import numpy as np

from rnnsmt.base.kernels.decorator import INNER, UNCOUNTED, kernel
from rnnsmt.base.kernels.key_table import find_slot
from rnnsmt.base.kernels.numbers import GOLDEN_RATIO, scramble
from rnnsmt.search.kernels.records import record

NODE = record("heap:i4", "first:i4", "last:i4", "pending:i4", "opened:i4", "done:i4")
"""State of a hypothesis: ``heap``, root of its candidates; ``first`` and ``last`` of its derivations, which are linked
by ``next``; ``pending``, the candidate whose successor is still to be added to the heap; ``opened``, whether all its
arcs are candidates; ``done``, whether it has no further derivations."""

CANDIDATE = record(
    "score:f8",
    "step:f8",
    "node:i4",
    "option:i4",
    "start:i4",
    "end:i4",
    "derivation:i4",
    "left:i4",
    "right:i4",
    "distance:i4",
)
"""An arc from ``node`` into a hypothesis, with a ``derivation`` of ``node`` (-1: its first, not extracted yet).

``score`` is that of the derivation extended by the arc, ``step`` that of the arc alone. ``left``, ``right`` and
``distance`` belong to a leftist heap, ordered by score."""

DERIVATION = record("score:f8", "hash:u8", "back:i4", "option:i4", "start:i4", "end:i4", "next:i4", "slot:i4")
"""The derivation ``back``, extended by an option of a source span: ``score``, ``hash`` of the target string, ``next``
derivation of the same node, and ``slot`` in ``Lattice.seen``."""

_NONE = -1

MAX_DERIVATIONS = 4_000_000
"""Maximum number of derivations in the extraction of one sentence, even if fewer than n translations were found."""


class Lattice(NamedTuple):
    """Scratch space of one extraction.

    Attributes:
        nodes: ``NODE`` [hypotheses + 1]; the last one is the goal, whose arcs come from the complete hypotheses.
        candidates: ``CANDIDATE``, pool of the heaps of all nodes.
        derivations: ``DERIVATION``, pool of the derivations of all nodes; number 0 is the empty derivation.
        seen: ``uint64`` [a power of two], set of the (node, string) pairs found, 0 in free slots; at most half full.
        stack: ``int32`` [words + 3], path of nodes from the goal to the current node.
        used: ``int64`` [4], number of candidates, number of derivations, number of candidates that are successors of
            other candidates, and 1 if the space was not sufficient, else 0.
    """

    nodes: np.ndarray
    candidates: np.ndarray
    derivations: np.ndarray
    seen: np.ndarray
    stack: np.ndarray
    used: np.ndarray


class TargetStrings(NamedTuple):
    """Target phrases as hashes, from ``phrase_hashes``.

    Attributes:
        target: ``int32`` [options], target phrase of each option.
        hashes, powers: ``uint64`` [phrases].
    """

    target: np.ndarray
    hashes: np.ndarray
    powers: np.ndarray


def new_lattice(hypotheses: int, arcs: int, words: int, derivations: int) -> Lattice:
    """Allocate the scratch space of an extraction.

    Args:
        hypotheses, arcs: maximum numbers in the lattice.
        words: maximum number of words of the sentence.
        derivations: maximum number of derivations.
    """
    return Lattice(
        np.empty(hypotheses + 1, NODE),
        # one per hypothesis and per recombined arc, one per complete hypothesis at the goal, and the successors
        np.empty(2 * hypotheses + arcs + derivations + 2, CANDIDATE),
        np.empty(derivations, DERIVATION),
        np.zeros(1 << (2 * derivations).bit_length(), np.uint64),
        np.empty(words + 3, np.int32),
        np.zeros(4, np.int64),
    )


@kernel(**UNCOUNTED)
def phrase_hashes(bounds, words, hashes, powers):
    """Compute the polynomial hash of every target phrase, modulo 2^64.

    The hash of a string extended by a phrase is hash * power + hash of the phrase.

    Args:
        bounds: ``int64`` [phrases + 1]; the words of phrase p are words[bounds[p]:bounds[p + 1]].
        words: ``int32`` [words], target vocabulary ids.
        hashes: ``uint64`` [phrases], filled.
        powers: ``uint64`` [phrases], filled with the factor that moves a hash to the left of the phrase.
    """
    for phrase in range(hashes.shape[0]):
        value, power = np.uint64(0), np.uint64(1)
        for k in range(bounds[phrase], bounds[phrase + 1]):
            # + 1 because scramble(0) is 0: word 0 must also change the hash
            value = value * GOLDEN_RATIO + scramble(np.uint64(words[k] + 1))
            power *= GOLDEN_RATIO
        hashes[phrase] = value
        powers[phrase] = power


@kernel(**INNER, **UNCOUNTED)
def _merge(pool, a, b, path):
    """Merge two leftist heaps, maximum first, and return the root.

    Args:
        pool: ``CANDIDATE``, the nodes of the heaps.
        a, b: the roots; -1 for an empty heap.
        path: ``int32`` [64], scratch space: the right spines of both heaps are of logarithmic length.
    """
    depth = 0
    while a != _NONE and b != _NONE:  # noqa: PLR1714
        if pool[b].score > pool[a].score:
            a, b = b, a
        path[depth] = a
        depth += 1
        a = pool[a].right
    root = b if a == _NONE else a
    # on the way back make the right subtree the one with the smaller distance to a missing child
    while depth > 0:
        depth -= 1
        above = path[depth]
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


@kernel(**INNER, **UNCOUNTED)
def _candidate(lattice, node, score, step, origin, option, start, end, derivation, path):
    """Add a candidate to the heap of a node.

    Args:
        score: score of the derivation extended by the arc.
        step: score of the arc alone.
        origin: node that the arc comes from.
        option, start, end: option and source span of the arc; -1 for an arc into the goal.
        derivation: derivation of ``origin``, -1 for its first.
        path: ``int32`` [64], scratch space.
    """
    number = np.int32(lattice.used[0])
    lattice.used[0] = number + 1
    entry = lattice.candidates[number]
    entry.score = score
    entry.step = step
    entry.node = origin
    entry.option = option
    entry.start = start
    entry.end = end
    entry.derivation = derivation
    entry.left = _NONE
    entry.right = _NONE
    entry.distance = 1
    lattice.nodes[node].heap = _merge(lattice.candidates, lattice.nodes[node].heap, number, path)


@kernel(**INNER, **UNCOUNTED)
def _open(lattice, hypotheses, arcs, node, path):
    """Add all arcs into a hypothesis to its candidates: the arc of the hypothesis, and the recombined arcs."""
    hypothesis = hypotheses[node]
    back = hypotheses[hypothesis.back]
    _candidate(
        lattice,
        node,
        hypothesis.score,
        hypothesis.score - back.score,
        hypothesis.back,
        hypothesis.option,
        hypothesis.start,
        hypothesis.end,
        _NONE,
        path,
    )
    number = hypothesis.arc
    while number != _NONE:
        arc = arcs[number]
        step = arc.score - hypotheses[arc.back].score
        _candidate(lattice, node, arc.score, step, arc.back, arc.option, arc.start, arc.end, _NONE, path)
        number = arc.next
    lattice.nodes[node].opened = 1


@kernel(**UNCOUNTED)
def string_key(node, value):
    """Return the hash of a (node, string) pair, given the hash of the string; never 0.

    Both parts are scrambled, since small numbers combined by xor alone would cancel each other out.
    """
    return scramble(value ^ scramble(~np.uint64(node))) | np.uint64(1)  # 0 marks free slots


@kernel(**INNER, **UNCOUNTED)
def _enter(lattice, node, value):
    """Add a (node, string) pair to the set of seen strings; return its slot, or -1 if it is already present."""
    key = string_key(node, value)
    slot = find_slot(lattice.seen, key, np.uint64(0))
    if lattice.seen[slot] == key:
        return np.int64(_NONE)
    lattice.seen[slot] = key
    return slot


@kernel(**INNER, **UNCOUNTED)
def _one_more(lattice, hypotheses, arcs, strings, goal, path):  # noqa: PLR0912, PLR0915
    """Extract the next derivation of ``goal``, unless there are no more or the space is not sufficient.

    A node that needs the next derivation of another node is deferred: the other node is pushed on the stack, and the
    node is resumed when the other one has a new derivation or is done. Arguments as of ``extract``; ``goal`` is the
    goal node, and ``path`` ``int32`` [64] scratch space.
    """
    depth = 1
    lattice.stack[0] = goal
    while depth > 0:
        if max(lattice.used[1], lattice.used[2]) >= lattice.derivations.shape[0]:
            lattice.used[3] = 1
            return
        at = lattice.stack[depth - 1]
        node = lattice.nodes[at]
        if node.opened == 0:
            _open(lattice, hypotheses, arcs, at, path)
        # the candidate popped last is followed by the same arc with the next derivation of its origin
        if node.pending != _NONE:
            last = lattice.candidates[node.pending]
            following = lattice.derivations[last.derivation].next
            if following == _NONE and lattice.nodes[last.node].done == 0:
                lattice.stack[depth] = last.node
                depth += 1
                continue
            if following != _NONE:
                score = last.step + lattice.derivations[following].score
                _candidate(lattice, at, score, last.step, last.node, last.option, last.start, last.end, following, path)
                lattice.used[2] += 1
            node.pending = _NONE
        top = node.heap
        if top == _NONE:
            node.done = 1
            depth -= 1
            continue
        best = lattice.candidates[top]
        # the score of an arc with the first derivation of its origin is known before that derivation is extracted
        if best.derivation == _NONE:
            first = lattice.nodes[best.node].first
            if first == _NONE and lattice.nodes[best.node].done == 0:
                lattice.stack[depth] = best.node
                depth += 1
                continue
            if first == _NONE:  # no derivation: a hash collision with a string seen before
                node.heap = _merge(lattice.candidates, best.left, best.right, path)
                continue
            best.derivation = first
        node.heap = _merge(lattice.candidates, best.left, best.right, path)
        node.pending = top
        value = lattice.derivations[best.derivation].hash
        if best.option >= 0:
            phrase = strings.target[best.option]
            value = value * strings.powers[phrase] + strings.hashes[phrase]
        slot = _enter(lattice, at, value)
        if slot == _NONE:  # not a new string: try the next candidate of the same node
            continue
        number = lattice.used[1]
        lattice.used[1] = number + 1
        new = lattice.derivations[number]
        new.score = best.score
        new.hash = value
        new.back = best.derivation
        new.option = best.option
        new.start = best.start
        new.end = best.end
        new.next = _NONE
        new.slot = slot
        if node.last == _NONE:
            node.first = number
        else:
            lattice.derivations[node.last].next = number
        node.last = number
        depth -= 1


@kernel()
def extract(hypotheses, arcs, count, first_final, n, lattice, strings, out):
    """Extract the n best distinct derivations of the complete hypotheses.

    Args:
        hypotheses: ``HYPOTHESIS``.
        arcs: ``ARC``, recombined hypotheses.
        count: number of hypotheses; also the index of the goal node.
        first_final: the complete hypotheses are ``first_final``..``count`` - 1.
        n: maximum number of derivations.
        lattice: ``Lattice``; its state after a previous extraction is cleared.
        strings: ``TargetStrings``.
        out: ``Derivations``, filled, the best first.

    Returns:
        The number of derivations. ``lattice.used[3]`` is 1 if the space was exhausted before all were found.
    """
    path = np.empty(64, np.int32)
    # clear the slots of the previous extraction only: the set is large, and usually few of its slots are occupied
    for number in range(1, lattice.used[1]):
        lattice.seen[lattice.derivations[number].slot] = np.uint64(0)
    lattice.used[0] = 0
    lattice.used[1] = 1
    lattice.used[2] = 0
    lattice.used[3] = 0
    for k in range(count + 1):
        node = lattice.nodes[k]
        node.heap = _NONE
        node.first = _NONE
        node.last = _NONE
        node.pending = _NONE
        node.opened = 0
        node.done = 0
    root = lattice.derivations[0]
    root.score, root.hash, root.back, root.option, root.next = 0.0, np.uint64(0), _NONE, _NONE, _NONE
    start = lattice.nodes[0]
    start.first, start.last, start.opened, start.done = 0, 0, 1, 1
    goal = np.int32(count)
    lattice.nodes[goal].opened = 1
    for k in range(first_final, count):
        _candidate(lattice, goal, hypotheses[k].score, 0.0, k, _NONE, _NONE, _NONE, _NONE, path)
    derivations = 0
    out.offsets[0] = 0
    while derivations < n:
        before = lattice.nodes[goal].last
        _one_more(lattice, hypotheses, arcs, strings, goal, path)
        number = lattice.nodes[goal].last
        if number == before:
            break
        # first count the phrases, then fill them in from the last to the first
        length = 0
        at = number
        while at > 0:
            if lattice.derivations[at].option >= 0:
                length += 1
            at = lattice.derivations[at].back
        if out.offsets[derivations] + length > out.options.shape[0]:
            break
        index = out.offsets[derivations] + length
        derivations += 1
        out.offsets[derivations] = index
        at = number
        while at > 0:
            step = lattice.derivations[at]
            if step.option >= 0:
                index -= 1
                out.options[index] = step.option
                out.starts[index] = step.start
                out.ends[index] = step.end
            at = step.back
    return derivations
