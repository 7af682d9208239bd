"""Kernel of IBM Model 1: one EM pass over a corpus."""

import numpy as np

from rnnsmt.align.kernels.lexicon import look_up
from rnnsmt.kernels.decorator import kernel


@kernel()
def model1_pass(
    starts, words, cells, given_ids, given_offsets, generated_ids, generated_offsets, t, t_null, counts, null_counts,
    best,
):  # fmt: skip
    """Add up expected counts; ``best`` [generated words] gets the most probable given position or -1 for NULL."""
    longest, at = 0, 0
    for s in range(len(given_offsets) - 1):
        longest = max(longest, given_offsets[s + 1] - given_offsets[s])
    found = np.empty(longest, np.int64)
    for s in range(len(given_offsets) - 1):
        given = given_ids[given_offsets[s] : given_offsets[s + 1]]
        if len(given) == 0:
            continue
        for p in range(generated_offsets[s], generated_offsets[s + 1]):
            f = generated_ids[p]
            total, highest, position = t_null[f], t_null[f], -1
            look_up(starts, words, cells, at, given, f, found)
            at += len(given)
            for i in range(len(given)):
                probability = t[found[i]]
                total += probability
                if probability > highest:
                    highest, position = probability, i
            best[p] = position
            null_counts[f] += t_null[f] / total
            for i in range(len(given)):
                counts[found[i]] += t[found[i]] / total
