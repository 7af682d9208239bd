"""Kernel of IBM Model 1: an EM pass over a block of sentences."""

import numpy as np

from rnnsmt.align.kernels.lexicon import look_up
from rnnsmt.base.kernels.decorator import kernel
from rnnsmt.base.kernels.fixed_point import add_count, add_counts


@kernel()
def model1_block(
    first, behind, at, starts, words, cells, given_ids, given_offsets, generated_ids, generated_offsets, t, t_null,
    counts, null_counts, best,
):  # fmt: skip
    """Collect expected counts over a block of sentences, and set ``best`` to the most probable links.

    Args:
        first, behind, at, starts, words, cells: as in ``fast_align_block``.
        given_ids, given_offsets, generated_ids, generated_offsets, t, t_null: as in ``fast_align_block``.
        counts, null_counts: expected counts of ``t`` and ``t_null``, int64 in fixed point, updated.
        best: given position of every generated word, -1 for NULL, [generated words], set.
    """
    longest = 0
    for s in range(first, behind):
        longest = max(longest, given_offsets[s + 1] - given_offsets[s])
    found = np.empty(longest, np.int64)
    # summed per block and added once: a fixed order of additions, few atomic ones
    nulls = np.zeros(len(t_null))
    for s in range(first, behind):
        given = given_ids[given_offsets[s] : given_offsets[s + 1]]
        if len(given) == 0:
            continue
        for p in range(generated_offsets[s], generated_offsets[s + 1]):
            f = generated_ids[p]
            # the uniform p(a_j = i) cancels in the posterior
            total, highest, position = t_null[f], t_null[f], -1
            look_up(starts, words, cells, at, given, f, found)
            at += len(given)
            for i in range(len(given)):
                probability = np.float64(t[found[i]])
                total += probability
                if probability > highest:
                    highest, position = probability, i
            best[p] = position
            nulls[f] += t_null[f] / total
            for i in range(len(given)):
                if found[i] < len(counts):
                    add_count(counts, found[i], t[found[i]] / total)
    add_counts(null_counts, nulls)
