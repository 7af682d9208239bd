"""The HMM alignment model (Vogel, Ney and Tillmann 1996) with jumps that depend on word classes (Och and Ney 2003).

With the settings of GIZA++: five EM iterations from Model 1's lexical probabilities and uniform jumps; NULL weighs 0.4
against 1 for all jumps together; a fifth of every jump distribution is uniform; maximum-likelihood estimates. Not as
there, the position of the last word has no distribution, and that of the first word does not depend on the length. A
word is linked to the given word with the highest posterior probability, unless NULL's is higher. No random numbers are
drawn.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rnnsmt.align import model1
from rnnsmt.align.bitext import BitextSide
from rnnsmt.align.kernels.hmm import hmm_pass
from rnnsmt.align.kernels.lexicon import relative_frequencies
from rnnsmt.align.lexicon import AfterPass, Lexicon

ITERATIONS = 5

P_NULL = 0.4 / 1.4

UNIFORM = 0.2
"""Share of a uniform distribution in every jump distribution."""

LONGEST = 200
"""Sentences over so many words are aligned by Model 1: time grows with the cube of the length."""


class HmmModel(NamedTuple):
    """What training leaves behind, for the links and for Models 3 and 4."""

    t: npt.NDArray[np.float64]  # p(f | e), [pairs of the lexicon]
    t_null: npt.NDArray[np.float64]  # p(f | NULL), [generated vocabulary]
    jumps: npt.NDArray[np.float64]  # weights of the jumps -W .. W, [given classes, 2 W + 1]
    first: npt.NDArray[np.float64]  # weights of the first position, [W]
    best: npt.NDArray[np.int32]  # [generated words]: position in the given sentence or -1
    log_likelihoods: list[float]  # of every iteration, natural logarithm, before its update


def train_hmm(
    given: BitextSide,
    generated: BitextSide,
    lexicon: Lexicon,
    given_classes: npt.NDArray[np.int32],
    after_pass: AfterPass | None = None,
    links: bool = True,
) -> HmmModel:
    """Train one direction: every generated word takes a given word or none; ``after_pass`` as for Model 1.

    Without ``links`` the last pass is left out, and ``best`` has the links of long sentences alone.
    """
    t, t_null, best = model1.train_model1(given, generated, lexicon, after_pass)
    width = int(np.minimum(given.lengths, LONGEST).max())
    jumps, first = np.ones((int(given_classes.max()) + 1, 2 * width + 1)), np.ones(width)
    corpus = (*lexicon, given.ids, given.offsets, generated.ids, generated.offsets, given_classes)
    log_likelihoods = []
    for iteration in range(ITERATIONS + links):
        last = iteration == ITERATIONS
        counts, null_counts = np.zeros(0 if last else len(t)), np.zeros_like(t_null)
        jump_counts, first_counts = np.zeros_like(jumps), np.zeros_like(first)
        log_likelihoods.append(
            hmm_pass(
                *corpus,
                t,
                t_null,
                jumps,
                first,
                P_NULL if iteration else 0.0,
                UNIFORM,
                LONGEST,
                last,
                counts,
                null_counts,
                jump_counts,
                first_counts,
                best,
            )
        )
        if after_pass:
            after_pass()
        if not last:
            relative_frequencies(lexicon.starts, counts, t)
            relative_frequencies(np.array([0, len(t_null)]), null_counts, t_null)
            # a class without jumps, and a sentence of which none was seen, still needs a distribution
            jumps, first = jump_counts + 1e-9, first_counts + 1e-9
    return HmmModel(t, t_null, jumps, first, best, log_likelihoods)
