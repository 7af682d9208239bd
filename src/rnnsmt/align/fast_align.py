"""fast_align (Dyer, Chahuneau and Smith 2013), as ``fast_align -d -o -v`` and, for the reverse direction, ``-r``.

IBM Model 2 with p(a_j = i) proportional to exp(-tension |i/I - j/J|), a NULL probability of 0.08, a symmetric
Dirichlet prior of 0.01 on the lexical distributions (mean-field variational Bayes) and five iterations, the last of
which only aligns. The tension is fitted by gradient steps between the iterations. No random numbers are drawn.
"""

import numpy as np

from rnnsmt.align.direction import Direction, Parameters
from rnnsmt.align.kernels.fast_align import fast_align_block, fit_tension
from rnnsmt.align.kernels.lexicon import normalise

ITERATIONS = 5

ALPHA = 0.01

TENSION = 4.0


def begin(direction: Direction) -> Parameters:
    """Equal lexical probabilities, of 1e-9."""
    return {**direction.uniform(1e-9), "tension": np.array([TENSION]), "passes": np.array([0])}


def iterate(direction: Direction, parameters: Parameters) -> None:
    """One iteration; the last one aligns every generated word with a given word or (-1) with none."""
    number = int(parameters["passes"][0])
    last = number == ITERATIONS - 1
    counts = direction.lexical_counts() if not last else (np.zeros(0, np.int64), np.zeros(0, np.int64))
    tension = parameters["tension"][0]
    learnt = (parameters["t"], parameters["t_null"], tension, last, *counts, parameters["best"])
    feature = direction.over_blocks(lambda *block: fast_align_block(*block, *direction.corpus, *learnt))
    parameters["passes"] = np.array([number + 1])
    if last:
        return
    if number > 0:
        sizes = _sizes(direction.generated.lengths, direction.given.lengths)
        parameters["tension"][0] = fit_tension(*sizes, feature / len(direction.generated.ids), tension)
    direction.estimate(parameters, *counts, normalise, ALPHA)


def _sizes(generated, given):
    """Distinct pairs of lengths [n, 2] and how often each occurs [n], of pairs without an empty side."""
    both = (generated > 0) & (given > 0)
    return np.unique(np.stack([generated[both], given[both]], 1), axis=0, return_counts=True)
