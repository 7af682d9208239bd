"""Affiliation: the source position with which every target word is affiliated (Devlin et al. 2014, section 2.1).

* A target word with several links is affiliated with the middle one of its n source positions, in ascending order
  that with index (n - 1) // 2.
* A word without a link has the affiliation of the nearest target word with a link, of the right one if two are equally
  near.
* ``</s>`` is affiliated with ``</s>`` of the source.

Training affiliates the words of whole sentences; the search affiliates those of a phrase pair by the links within it,
as Moses does.
"""

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.kernels.decorator import kernel

NO_LINK = -1
"""Affiliation of the words of a sentence pair without any link."""


def affiliations(
    link_offsets: NDArray[np.int64],
    source: NDArray[np.int32],
    target: NDArray[np.int32],
    target_offsets: NDArray[np.int64],
) -> NDArray[np.int32]:
    """Return the affiliation of every target word of S sentence or phrase pairs, one after the other.

    Args:
        link_offsets: [S + 1], where the links of each pair begin.
        source, target: [L], source and target positions of the links, distinct, in ascending order of target, then
            source position within a pair.
        target_offsets: [S + 1], where the target words of each pair begin.

    Returns:
        [target words], source positions from 0 within the pair; ``NO_LINK`` for all words of a pair without links.
    """
    found = np.empty(int(target_offsets[-1]), np.int32)
    affiliate(link_offsets, source, target, target_offsets, found)
    return found


@kernel()
def _fill(out, begin, end):
    """Give the words without a link, in out[begin:end], the affiliation of the nearest word that has one."""
    before = -1  # the last word with a link
    place = begin
    while place < end:
        if out[place] != NO_LINK:
            before = place
            place += 1
            continue
        after = place
        while after < end and out[after] == NO_LINK:
            after += 1
        # the words place..after - 1 have no link; the linked word ``after``, if there is one, becomes ``before`` next
        for word in range(place, after):
            right = after < end and (before < 0 or after - word <= word - before)
            out[word] = out[after] if right else out[before]
        place = after


@kernel()
def affiliate(link_offsets, source, target, target_offsets, out):
    """Compute ``affiliations`` into ``out``, an array of integers."""
    for pair in range(link_offsets.shape[0] - 1):
        begin, end = target_offsets[pair], target_offsets[pair + 1]
        for place in range(begin, end):
            out[place] = NO_LINK
        # links are in ascending order: those of a target word follow one another
        first = link_offsets[pair]
        while first < link_offsets[pair + 1]:
            last = first
            while last + 1 < link_offsets[pair + 1] and target[last + 1] == target[first]:
                last += 1
            out[begin + target[first]] = source[first + (last - first) // 2]
            first = last + 1
        if link_offsets[pair] < link_offsets[pair + 1]:
            _fill(out, begin, end)


def windows_at(
    words: NDArray[np.int32],
    begin: NDArray[np.int64] | int,
    end: NDArray[np.int64] | int,
    places: NDArray[np.int64],
    window: int,
    padding: int,
) -> NDArray[np.int32]:
    """Return the source words around places of sentences, [B, 2 window + 1], from left to right.

    Args:
        words: source words of all sentences, each ending in ``</s>``, which stands behind the sentence, too.
        begin, end: [B] or numbers, range in ``words`` of the sentence of each place.
        places: [B], positions in ``words``.
        window: number of words on each side of a place.
        padding: the word before the beginning of a sentence.
    """
    around = places[:, None] + np.arange(-window, window + 1)
    first, last = np.reshape(begin, (-1, 1)), np.reshape(end, (-1, 1)) - 1
    found = words[np.minimum(np.maximum(around, first), last)]
    found[around < first] = padding
    return found
