"""fast_align (Dyer, Chahuneau and Smith 2013), as ``fast_align -d -o -v`` and, for the reverse direction, ``-r``.

IBM Model 2 with p(a_j = i) proportional to exp(-tension |i/I - j/J|), a NULL probability of 0.08, a symmetric
Dirichlet prior of 0.01 on the lexical distributions (mean-field variational Bayes) and five iterations, the last of
which only aligns. The tension is fitted by gradient steps between the iterations. No random numbers are drawn and each
direction is computed in corpus order, so a result can be repeated to the bit.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rnnsmt.align.bitext import BitextSide
from rnnsmt.align.kernels.fast_align import fast_align_pass, fit_tension
from rnnsmt.align.kernels.lexicon import normalise
from rnnsmt.align.lexicon import AfterPass, Lexicon

ITERATIONS = 5

ALPHA = 0.01

TENSION = 4.0


class FastAlignModel(NamedTuple):
    """What training leaves behind: p(f | e) for every pair of the lexicon, p(f | NULL), and the best links."""

    t: npt.NDArray[np.float64]  # [pairs]
    t_null: npt.NDArray[np.float64]  # [generated vocabulary]
    tension: float
    best: npt.NDArray[np.int32]  # [generated words]: position in the given sentence or -1


def train_fast_align(
    given: BitextSide, generated: BitextSide, lexicon: Lexicon, after_pass: AfterPass | None = None
) -> FastAlignModel:
    """Train one direction and align every generated word with a given word or with none.

    ``after_pass`` is called after every pass over the corpus and may raise to end the training.
    """
    corpus = (*lexicon, given.ids, given.offsets, generated.ids, generated.offsets)
    lengths, size_counts = _sizes(generated.lengths, given.lengths)
    t = np.full(len(lexicon.words), 1e-9)
    t_null = np.full(len(generated.vocabulary), 1e-9)
    best = np.full(len(generated.ids), -1, np.int32)
    everything = np.array([0, len(t_null)])
    tension = TENSION
    for iteration in range(ITERATIONS):
        last = iteration == ITERATIONS - 1
        counts, null_counts = np.zeros_like(t), np.zeros_like(t_null)
        feature = fast_align_pass(*corpus, t, t_null, tension, last, counts, null_counts, best)
        if after_pass:
            after_pass()
        if not last:
            if iteration > 0:
                tension = fit_tension(lengths, size_counts, feature, tension)
            normalise(lexicon.starts, counts, ALPHA, t)
            normalise(everything, null_counts, ALPHA, t_null)
    return FastAlignModel(t, t_null, tension, best)


def _sizes(generated, given):
    """Distinct pairs of lengths [n, 2] and how often each occurs [n], of pairs without an empty side."""
    both = (generated > 0) & (given > 0)
    return np.unique(np.stack([generated[both], given[both]], 1), axis=0, return_counts=True)
