"""Affiliation of target words: a source position for every target word of a sentence pair or phrase pair.

As in Devlin et al. (2014), section 2.1:

* A target word that is linked to n source positions is affiliated with the middle position: element (n - 1) // 2 in
  ascending order.
* A target word without a link has the same affiliation as the nearest target word with a link. If two are equally near,
  the right one is used.
"""

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.kernels.decorator import kernel

NO_LINK = -1
"""Affiliation of the words of a pair without links."""


def affiliations(
    link_offsets: NDArray[np.int64],
    source: NDArray[np.int32],
    target: NDArray[np.int32],
    target_offsets: NDArray[np.int64],
) -> NDArray[np.int32]:
    """Return the affiliation of every target word of S concatenated sentence or phrase pairs.

    Args:
        link_offsets: [S + 1], offsets of the links of each pair.
        source, target: [L], source and target positions of the distinct links, sorted by target position, then source
            position, within each pair.
        target_offsets: [S + 1], offsets of the target words of each pair.

    Returns:
        [target words], 0-based source positions within the pair; ``NO_LINK`` for all words of a pair without links.
    """
    affiliated = np.empty(int(target_offsets[-1]), np.int32)
    affiliate(link_offsets, source, target, target_offsets, affiliated)
    return affiliated


@kernel()
def _fill(out, begin, end):
    """Set the elements ``NO_LINK`` of out[begin:end] to the value of the nearest word with a link."""
    before = -1  # the last word with a link
    index = begin
    while index < end:
        if out[index] != NO_LINK:
            before = index
            index += 1
            continue
        after = index
        while after < end and out[after] == NO_LINK:
            after += 1
        # the words index..after - 1 have no link; ``after`` is the next word with a link, if there is one
        for word in range(index, after):
            right = after < end and (before < 0 or after - word <= word - before)
            out[word] = out[after] if right else out[before]
        index = after


@kernel()
def affiliate(link_offsets, source, target, target_offsets, out):
    """Write the result of ``affiliations`` to ``out``, an array of integers."""
    for pair in range(link_offsets.shape[0] - 1):
        begin, end = target_offsets[pair], target_offsets[pair + 1]
        for index in range(begin, end):
            out[index] = NO_LINK
        # the links of a target word are consecutive
        first = link_offsets[pair]
        while first < link_offsets[pair + 1]:
            last = first
            while last + 1 < link_offsets[pair + 1] and target[last + 1] == target[first]:
                last += 1
            out[begin + target[first]] = source[first + (last - first) // 2]
            first = last + 1
        if link_offsets[pair] < link_offsets[pair + 1]:
            _fill(out, begin, end)
