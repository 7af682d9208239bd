"""Distinct k-best derivations from the lattice of recombined hypotheses, compiled.

Lazy extraction as Huang and Chiang (2005, algorithm 3), without recursion. A node (a hypothesis) keeps only the best
derivation of every distinct target string: what follows a node scores the same for all its derivations, so a worse one
of the same string can never be part of a new best string. Strings are compared by a 64-bit hash of their words.
"""

from typing import NamedTuple

import numpy as np

from rnnsmt.kernels.decorator import INNER, kernel
from rnnsmt.kernels.hashing import GOLDEN_RATIO, scramble

NODE = np.dtype(
    [
        ("heap", np.int32),
        ("first", np.int32),
        ("last", np.int32),
        ("pending", np.int32),
        ("opened", np.int32),
        ("done", np.int32),
    ]
)

CANDIDATE = np.dtype(
    [
        ("score", np.float64),
        ("step", np.float64),
        ("node", np.int32),
        ("option", np.int32),
        ("start", np.int32),
        ("end", np.int32),
        ("derivation", np.int32),
        ("left", np.int32),
        ("right", np.int32),
        ("distance", np.int32),
    ]
)
"""An arc into a node with a derivation of the arc's origin (-1: its first); part of a leftist heap."""

DERIVATION = np.dtype(
    [
        ("score", np.float64),
        ("hash", np.uint64),
        ("back", np.int32),
        ("option", np.int32),
        ("start", np.int32),
        ("end", np.int32),
        ("next", np.int32),
        ("slot", np.int32),
    ],
    align=True,
)

_NONE = -1

MAX_DERIVATIONS = 4_000_000
"""Where one sentence's extraction ends even if fewer than n translations were found."""


class Lattice(NamedTuple):
    """Scratch space of one extraction.

    ``used``: candidates, derivations, candidates made from derivations, and whether the space did not suffice.
    """

    nodes: np.ndarray
    candidates: np.ndarray
    derivations: np.ndarray
    seen: np.ndarray
    stack: np.ndarray
    used: np.ndarray


def new_lattice(hypotheses: int, arcs: int, words: int, derivations: int) -> Lattice:
    """Scratch space for so many hypotheses, arcs, words of a sentence and derivations."""
    return Lattice(
        np.empty(hypotheses + 1, NODE),
        np.empty(2 * hypotheses + arcs + derivations + 2, CANDIDATE),
        np.empty(derivations, DERIVATION),
        np.zeros(1 << (2 * derivations).bit_length(), np.uint64),
        np.empty(words + 3, np.int32),
        np.zeros(4, np.int64),
    )


@kernel()
def phrase_hashes(bounds, words, hashes, powers):
    """Polynomial hash of every target phrase and the factor that moves a hash over it (``uint64`` [phrases])."""
    for phrase in range(hashes.shape[0]):
        value, power = np.uint64(0), np.uint64(1)
        for k in range(bounds[phrase], bounds[phrase + 1]):
            value = value * GOLDEN_RATIO + scramble(np.uint64(words[k] + 1))
            power *= GOLDEN_RATIO
        hashes[phrase] = value
        powers[phrase] = power


@kernel(**INNER)
def _merge(pool, a, b, path):
    """Merge two leftist heaps by score; ``path`` is scratch space."""
    depth = 0
    while a != _NONE and b != _NONE:  # noqa: PLR1714
        if pool[b].score > pool[a].score:
            a, b = b, a
        path[depth] = a
        depth += 1
        a = pool[a].right
    root = b if a == _NONE else a
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


@kernel(**INNER)
def _candidate(lattice, node, score, step, origin, option, start, end, derivation, path):
    """Add a candidate to a node's heap."""
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


@kernel(**INNER)
def _open(lattice, hypotheses, arcs, node, path):
    """Enter all arcs into a hypothesis as candidates."""
    own = hypotheses[node]
    back = hypotheses[own.back]
    _candidate(lattice, node, own.score, own.score - back.score, own.back, own.option, own.start, own.end, _NONE, path)
    number = own.arc
    while number != _NONE:
        arc = arcs[number]
        step = arc.score - hypotheses[arc.back].score
        _candidate(lattice, node, arc.score, step, arc.back, arc.option, arc.start, arc.end, _NONE, path)
        number = arc.next
    lattice.nodes[node].opened = 1


@kernel()
def string_key(node, value):
    """What a string, given by its hash, is known by at a node; not 0. Small numbers must not cancel each other out."""
    return scramble(value ^ scramble(~np.uint64(node))) | np.uint64(1)


@kernel(**INNER)
def _enter(lattice, node, value):
    """Enter (node, string) in the set of what was seen; its slot, or -1 if it was there."""
    key = string_key(node, value)
    mask = np.uint64(lattice.seen.shape[0] - 1)
    slot = np.int64((key >> np.uint64(1)) & mask)
    while lattice.seen[slot] != np.uint64(0):
        if lattice.seen[slot] == key:
            return np.int64(_NONE)
        slot = (slot + 1) & np.int64(mask)
    lattice.seen[slot] = key
    return slot


@kernel(**INNER)
def _one_more(lattice, hypotheses, arcs, target, hashes, powers, goal, path):  # noqa: PLR0912, PLR0915
    """Make ``goal`` produce its next derivation, or find that it has no more or that the space does not suffice."""
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
        if best.derivation == _NONE:
            first = lattice.nodes[best.node].first
            if first == _NONE and lattice.nodes[best.node].done == 0:
                lattice.stack[depth] = best.node
                depth += 1
                continue
            if first == _NONE:  # its only string was taken for one seen before
                node.heap = _merge(lattice.candidates, best.left, best.right, path)
                continue
            best.derivation = first
        node.heap = _merge(lattice.candidates, best.left, best.right, path)
        node.pending = top
        value = lattice.derivations[best.derivation].hash
        if best.option >= 0:
            phrase = target[best.option]
            value = value * powers[phrase] + hashes[phrase]
        slot = _enter(lattice, at, value)
        if slot == _NONE:
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
def extract(hypotheses, arcs, count, first_final, n, lattice, target, hashes, powers, offsets, options, starts, ends):
    """The n best distinct derivations of the hypotheses ``first_final`` .. ``count`` - 1.

    Fills ``options``, ``starts``, ``ends`` (``int32``) with their phrases one derivation after another and ``offsets``
    [n + 1]; returns how many there are. ``lattice.used[3]`` tells whether the space ended before the derivations.
    """
    path = np.empty(64, np.int32)
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
    found = 0
    offsets[0] = 0
    while found < n:
        before = lattice.nodes[goal].last
        _one_more(lattice, hypotheses, arcs, target, hashes, powers, goal, path)
        number = lattice.nodes[goal].last
        if number == before:
            break
        length = 0
        at = number
        while at > 0:
            if lattice.derivations[at].option >= 0:
                length += 1
            at = lattice.derivations[at].back
        if offsets[found] + length > options.shape[0]:
            break
        place = offsets[found] + length
        found += 1
        offsets[found] = place
        at = number
        while at > 0:
            step = lattice.derivations[at]
            if step.option >= 0:
                place -= 1
                options[place] = step.option
                starts[place] = step.start
                ends[place] = step.end
            at = step.back
    return found
