"""Prefix trees (tries) of sequences, level by level, so that a network computes each distinct prefix once."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rnnsmt.networks.batches import Index


class Level(NamedTuple):
    """The n nodes of level d of a trie, one for each distinct prefix of d words below each root; level 0: the roots.

    The nodes are sorted by parent, then by word.

    Attributes:
        parents: [n], the parent of each node, as an index in the previous level.
        words: [n], the last word of the prefix of each node.
        phrases: [k], indices of the phrases with at least d words.
        nodes: [k], the node of each of these phrases.
    """

    parents: Index
    words: Index
    phrases: Index
    nodes: Index


def prefix_levels(words: NDArray[np.integer], lengths: Index, roots: Index) -> list[Level]:
    """Build the levels 0, 1, ... of the trie of P phrases.

    Args:
        words: the ids of all phrases one after the other.
        lengths: [P], number of words of each phrase; a phrase of length 0 ends at its root.
        roots: [P], the root of each phrase, from 0 to the number of roots - 1.
    """
    begins = np.cumsum(lengths) - lengths
    number = int(roots.max(initial=-1)) + 1
    classes = int(words.max(initial=0)) + 1
    alive = np.arange(len(lengths))
    where = roots.astype(np.int64)
    parents, last = np.arange(number), np.zeros(number, np.int64)
    levels = []
    for depth in range(int(lengths.max(initial=0)) + 1):
        levels.append(Level(parents, last, alive, where))
        going = lengths[alive] > depth
        alive, where = alive[going], where[going]
        # the key (parent, word) as one integer; np.unique sorts the nodes by it
        keys, where = np.unique(where * classes + words[begins[alive] + depth], return_inverse=True)
        parents, last = keys // classes, keys % classes
    return levels
