"""The affiliation of target words with source words."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rnnsmt.align.affiliation import NO_LINK, affiliations


def by_definition(links: set[tuple[int, int]], words: int) -> list[int]:
    """Return affiliations by the definition, word by word."""
    own = [sorted(i for i, j in links if j == word) for word in range(words)]
    if not links:
        return [NO_LINK] * words
    found = []
    for word in range(words):
        near = min((w for w in range(words) if own[w]), key=lambda w: (abs(w - word), w < word))
        positions = own[near]
        found.append(positions[(len(positions) - 1) // 2])
    return found


def computed(pairs: list[tuple[set[tuple[int, int]], int]]) -> list[list[int]]:
    """Return the affiliations of several pairs by ``affiliations``."""
    ordered = [sorted(links, key=lambda link: (link[1], link[0])) for links, _ in pairs]
    flat = np.array([link for links in ordered for link in links], np.int32).reshape(-1, 2)
    offsets = np.concatenate([[0], np.cumsum([len(links) for links in ordered])]).astype(np.int64)
    bounds = np.concatenate([[0], np.cumsum([words for _, words in pairs])]).astype(np.int64)
    found = affiliations(offsets, flat[:, 0].copy(), flat[:, 1].copy(), bounds)
    return [found[begin:end].tolist() for begin, end in pairwise(bounds)]


@pytest.mark.parametrize(
    ("links", "words", "expected"),
    [
        ({(0, 0), (1, 1)}, 2, [0, 1]),
        ({(0, 0), (2, 0), (5, 0), (7, 0)}, 1, [2]),  # the middle, rounded down
        ({(0, 0), (2, 0), (5, 0)}, 1, [2]),
        ({(3, 0), (4, 2)}, 3, [3, 4, 4]),  # the right neighbour if both are equally near
        ({(3, 0), (4, 4)}, 5, [3, 3, 4, 4, 4]),
        ({(6, 2)}, 4, [6, 6, 6, 6]),
        (set(), 2, [NO_LINK, NO_LINK]),
    ],
)
def test_examples(links, words, expected):
    assert by_definition(links, words) == expected
    assert computed([(links, words)]) == [expected]


PAIRS = st.integers(1, 8).flatmap(
    lambda words: st.tuples(st.sets(st.tuples(st.integers(0, 7), st.integers(0, words - 1))), st.just(words))
)


@given(st.lists(PAIRS, max_size=5))
def test_definition(pairs):
    assert computed(pairs) == [by_definition(links, words) for links, words in pairs]
