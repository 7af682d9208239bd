"""Phrases as a tree of their prefixes, level by level: what phrases have in common is computed once.

The state of a recurrent network after some words depends on these words (and, in the decoder, on the source phrase)
alone. Level 0 are the roots, level d the distinct (root, first d words).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Index = NDArray[np.int64]


class Level(NamedTuple):
    """The nodes of one level, in the order of (parent, word). parents, words: [n]: node of the level before, last word.

    ends: [k] the phrases (positions in the batch) whose last word is read here; nodes: [k] the node of each.
    """

    parents: Index
    words: Index
    ends: Index
    nodes: Index


def prefix_levels(words: NDArray[np.integer], lengths: Index, roots: Index) -> list[Level]:
    """The levels 0, 1, ... of P phrases.

    Args:
        words: the ids of all phrases one after the other.
        lengths: [P], words of each phrase; 0 is possible, then it ends at its root.
        roots: [P], the root of each phrase, from 0 to the number of roots less 1.
    """
    begins = np.cumsum(lengths) - lengths
    number = int(roots.max(initial=-1)) + 1
    classes = int(words.max(initial=0)) + 1
    alive = np.arange(len(lengths))
    where = roots.astype(np.int64)
    parents, last = np.arange(number), np.zeros(number, np.int64)
    levels = []
    for depth in range(int(lengths.max(initial=0)) + 1):
        ended = lengths[alive] == depth
        levels.append(Level(parents, last, alive[ended], where[ended]))
        alive, where = alive[~ended], where[~ended]
        keys, where = np.unique(where * classes + words[begins[alive] + depth], return_inverse=True)
        parents, last = keys // classes, keys % classes
    return levels
