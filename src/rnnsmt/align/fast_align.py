"""fast_align (Dyer, Chahuneau and Smith 2013), as ``fast_align -d -o -v`` and, for the reverse direction, ``-r``.

IBM Model 2 with p(a_j = i) proportional to exp(-tension |i/I - j/J|), a NULL probability of 0.08, a symmetric
Dirichlet prior of 0.01 on the lexical distributions (mean-field variational Bayes) and five iterations, the last of
which only aligns. The tension is fitted by gradient steps between the iterations. No random numbers are drawn.
"""

import numpy as np

from rnnsmt.align.direction import Counts, Direction, Parameters, Sentences, Statistics, no_counts
from rnnsmt.align.kernels.fast_align import fast_align_block, fit_tension
from rnnsmt.align.kernels.lexicon import normalise

ITERATIONS = 5

ALPHA = 0.01

TENSION = 4.0


def begin(direction: Direction) -> Parameters:
    """Equal lexical probabilities, of 1e-9."""
    return {**direction.uniform(1e-9), "tension": np.array([TENSION]), "passes": np.array([0])}


def count(sentences: Sentences, parameters: Parameters) -> Counts:
    """Expected counts; the last iteration aligns every generated word with a given word or (-1) with none instead."""
    last = int(parameters["passes"][0]) == ITERATIONS - 1
    counts = {} if last else no_counts(parameters, "t", "t_null")
    lexical = counts.values() if counts else (np.zeros(0, np.int64), np.zeros(0, np.int64))
    tension = parameters["tension"][0]
    learnt = (parameters["t"], parameters["t_null"], tension, last, *lexical, parameters["best"])
    features = sentences.over_blocks(lambda *block: fast_align_block(*block, *sentences.corpus, *learnt))
    return {"best": parameters["best"]} if last else {**counts, "sums": features}


def estimate(statistics: Statistics, parameters: Parameters, counts: Counts) -> None:
    """From the second iteration on also the tension; nothing in the last one."""
    number = int(parameters["passes"][0])
    parameters["passes"] = np.array([number + 1])
    if "t" not in counts:
        return
    if number > 0:
        lengths, times = statistics.lengths, statistics.length_counts
        feature = sum(counts["sums"].tolist()) / int((lengths[:, 0] * times).sum())
        both = lengths.all(1)  # sides have words
        parameters["tension"][0] = fit_tension(lengths[both], times[both], feature, parameters["tension"][0])
    statistics.estimate(parameters, counts, normalise, ALPHA)
