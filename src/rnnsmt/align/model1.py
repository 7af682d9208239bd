"""IBM Model 1 (Brown et al. 1993), in which every given word and NULL generate a word with equal probability.

It is trained by EM from uniform lexical probabilities, and used to initialise the HMM and Model 4.
"""

from collections.abc import Iterator

import numpy as np

from rnnsmt.align import MODEL1_ITERATIONS
from rnnsmt.align.direction import Direction, Parameters
from rnnsmt.align.lexicon import FLOOR, look_up, relative_frequencies
from rnnsmt.base.kernels.decorator import kernel
from rnnsmt.base.kernels.numbers import add_count, add_counts


def begin(direction: Direction) -> Parameters:
    """Return uniform lexical probabilities."""
    parameters = direction.uniform(1.0 / len(direction.generated.vocabulary))
    # the last element is the value of pairs that are not in the lexicon
    parameters["t"][-1] = FLOOR
    return parameters


def iterate(direction: Direction, parameters: Parameters, done: int) -> Iterator[None]:
    """Run the iterations after the first ``done`` iterations; yield after each. Each iteration also sets the links."""
    for _ in range(done, MODEL1_ITERATIONS):
        counts = direction.lexical_counts()
        learnt = (parameters["t"], parameters["t_null"], *counts, parameters["best"])
        direction.over_blocks(lambda *block, learnt=learnt: model1_block(block, direction.corpus, *learnt))
        direction.estimate(parameters, *counts, relative_frequencies)
        yield


@kernel()
def model1_block(block, corpus, t, t_null, counts, null_counts, best):
    """Collect expected counts over a block of sentences, and set ``best`` to the most probable links.

    Args:
        block, corpus, t, t_null: as in ``fast_align_block``.
        counts, null_counts: expected counts of ``t`` and ``t_null``, int64 in fixed point, updated.
        best: given position of every generated word, -1 for NULL, [generated words], set.
    """
    first, end, at = block
    starts, words, places, given_ids, given_offsets, generated_ids, generated_offsets = corpus
    longest = 0
    for s in range(first, end):
        longest = max(longest, given_offsets[s + 1] - given_offsets[s])
    entries = np.empty(longest, np.int64)
    # NULL counts are summed per block and added to the totals once: in a fixed order, with few atomic additions
    nulls = np.zeros(len(t_null))
    for s in range(first, end):
        given = given_ids[given_offsets[s] : given_offsets[s + 1]]
        if len(given) == 0:
            continue
        for p in range(generated_offsets[s], generated_offsets[s + 1]):
            f = generated_ids[p]
            # the uniform p(a_j = i) cancels in the posterior
            total, highest, position = t_null[f], t_null[f], -1
            look_up(starts, words, places, at, given, f, entries)
            at += len(given)
            for i in range(len(given)):
                probability = np.float64(t[entries[i]])
                total += probability
                if probability > highest:
                    highest, position = probability, i
            best[p] = position
            nulls[f] += t_null[f] / total
            for i in range(len(given)):
                if entries[i] < len(counts):
                    add_count(counts, entries[i], t[entries[i]] / total)
    add_counts(null_counts, nulls)
