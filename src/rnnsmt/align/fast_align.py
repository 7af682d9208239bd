"""fast_align (Dyer, Chahuneau and Smith 2013), as ``fast_align -d -o -v`` and, for the reverse direction, ``-r``.

IBM Model 2 with p(a_j = i) proportional to exp(-tension |i/I - j/J|), a NULL probability of 0.08, and a symmetric
Dirichlet prior of 0.01 on the lexical distributions (mean-field variational Bayes). There are five iterations, the last
of which only aligns. The tension is fitted by gradient steps between iterations. No random numbers are drawn.
"""

import numpy as np

from rnnsmt.align.direction import Counts, Direction, Parameters, Sentences, Statistics, no_counts
from rnnsmt.align.kernels.fast_align import fast_align_block, fit_tension
from rnnsmt.align.kernels.lexicon import normalise

ITERATIONS = 5
"""Number of passes over the corpus, including the last one, which only aligns."""

ALPHA = 0.01
"""Parameter of the symmetric Dirichlet prior."""

TENSION = 4.0
"""Initial tension."""


def begin(direction: Direction) -> Parameters:
    """Return the initial parameters: lexical probabilities of 1e-9, and the initial tension."""
    return {**direction.uniform(1e-9), "tension": np.array([TENSION]), "passes": np.array([0])}


def count(sentences: Sentences, parameters: Parameters) -> Counts:
    """Compute expected counts, or, in the last iteration, link every generated word to a given word or to NULL (-1)."""
    last = int(parameters["passes"][0]) == ITERATIONS - 1
    counts = {} if last else no_counts(parameters, "t", "t_null")
    lexical = counts.values() if counts else (np.zeros(0, np.int64), np.zeros(0, np.int64))
    tension = parameters["tension"][0]
    learnt = (parameters["t"], parameters["t_null"], tension, last, *lexical, parameters["best"])
    features = sentences.over_blocks(lambda *block: fast_align_block(*block, *sentences.corpus, *learnt))
    return {"best": parameters["best"]} if last else {**counts, "sums": features}


def estimate(statistics: Statistics, parameters: Parameters, counts: Counts) -> None:
    """Update the lexical probabilities and, from the second iteration on, the tension.

    The last iteration updates nothing.
    """
    number = int(parameters["passes"][0])
    parameters["passes"] = np.array([number + 1])
    if "t" not in counts:
        return
    if number > 0:
        lengths, times = statistics.lengths, statistics.length_counts
        feature = sum(counts["sums"].tolist()) / int((lengths[:, 0] * times).sum())
        both = lengths.all(1)  # sentence pairs with words on both sides
        parameters["tension"][0] = fit_tension(lengths[both], times[both], feature, parameters["tension"][0])
    statistics.estimate(parameters, counts, normalise, ALPHA)
