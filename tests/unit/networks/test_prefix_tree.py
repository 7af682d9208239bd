"""Prefix trees are right."""

import numpy as np

from rnnsmt.networks.prefix_tree import prefix_levels


def test_prefix_levels_by_hand():
    """Prefix levels of phrases 1 2, 1 2, 1 3 4 and () of root 0, and 1 of root 1, are computed by hand."""
    words = np.array([1, 2, 1, 2, 1, 3, 4, 1])
    levels = prefix_levels(words, np.array([2, 2, 3, 0, 1]), np.array([0, 0, 0, 0, 1]))
    found = [tuple(part.tolist() for part in level) for level in levels]
    assert found == [
        ([0, 1], [0, 0], [0, 1, 2, 3, 4], [0, 0, 0, 0, 1]),
        ([0, 1], [1, 1], [0, 1, 2, 4], [0, 0, 0, 1]),
        ([0, 0], [2, 3], [0, 1, 2], [0, 0, 1]),
        ([1], [4], [2], [0]),
    ]
