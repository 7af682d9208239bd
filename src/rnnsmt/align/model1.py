"""IBM Model 1 (Brown et al. 1993): every given word and NULL generate a word with equal probability.

Plain EM from uniform distributions. No random numbers are drawn.
"""

import numpy as np

from rnnsmt.align.direction import Counts, Direction, Parameters, Sentences, Statistics, no_counts
from rnnsmt.align.lexicon import FLOOR, look_up, relative_frequencies
from rnnsmt.base.kernels.arrays import add_count, add_counts
from rnnsmt.base.kernels.decorator import kernel


def begin(direction: Direction) -> Parameters:
    """Return uniform lexical probabilities."""
    parameters = direction.uniform(1.0 / len(direction.generated.vocabulary))
    # the last element is the value of pairs that are not in the lexicon
    parameters["t"][-1] = FLOOR
    return parameters


def count(sentences: Sentences, parameters: Parameters) -> Counts:
    """Compute the expected counts of EM, and set ``best`` to the most probable links: given positions, -1 for NULL."""
    counts = no_counts(parameters, "t", "t_null")
    learnt = (parameters["t"], parameters["t_null"], *counts.values(), parameters["best"])
    sentences.over_blocks(lambda *block: model1_block(block, sentences.corpus, *learnt))
    return {**counts, "best": parameters["best"]}


def estimate(statistics: Statistics, parameters: Parameters, counts: Counts) -> None:
    """Update the lexical probabilities by EM."""
    statistics.estimate(parameters, counts, relative_frequencies)


@kernel()
def model1_block(block, corpus, t, t_null, counts, null_counts, best):
    """Collect expected counts over a block of sentences, and set ``best`` to the most probable links.

    Args:
        block, corpus, t, t_null: as in ``fast_align_block``.
        counts, null_counts: expected counts of ``t`` and ``t_null``, int64 in fixed point, updated.
        best: given position of every generated word, -1 for NULL, [generated words], set.
    """
    first, behind, at = block
    starts, words, cells, given_ids, given_offsets, generated_ids, generated_offsets = corpus
    longest = 0
    for s in range(first, behind):
        longest = max(longest, given_offsets[s + 1] - given_offsets[s])
    entries = np.empty(longest, np.int64)
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
            look_up(starts, words, cells, at, given, f, entries)
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
