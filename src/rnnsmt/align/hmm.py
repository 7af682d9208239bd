"""The HMM alignment model (Vogel, Ney and Tillmann 1996) with jumps that depend on word classes (Och and Ney 2003).

The lexical probabilities start from fast_align's, the jump probabilities from a preference for the next word; five EM
iterations with the same Dirichlet prior on the lexical distributions. A word is linked to the given word with the
highest posterior probability, unless NULL's is higher. No random numbers are drawn.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rnnsmt.align import fast_align
from rnnsmt.align.bitext import BitextSide
from rnnsmt.align.kernels.hmm import hmm_pass
from rnnsmt.align.kernels.lexicon import normalise
from rnnsmt.align.lexicon import AfterPass, Lexicon

ITERATIONS = 5

P_NULL = 0.05

ALPHA = 0.01

WIDTH = 8
"""Longer jumps share the probability of this one."""

UNIFORM = 0.05
"""Share of a uniform distribution in every jump distribution."""

CLASS_PRIOR = 10.0
"""Weight, in jumps, of the distribution over all classes in that of one class."""

LONGEST = 200
"""Sentences over so many words are aligned by fast_align: time grows with the cube of the length."""

CANDIDATES = 4
"""Most probable positions that are kept for a word."""


class HmmModel(NamedTuple):
    """What training leaves behind, for the links and for Model 4."""

    t: npt.NDArray[np.float64]  # p(f | e), [pairs of the lexicon]
    t_null: npt.NDArray[np.float64]  # p(f | NULL), [generated vocabulary]
    candidates: npt.NDArray[np.int16]  # [generated words, CANDIDATES] given positions, best first, -1 behind them
    best: npt.NDArray[np.int32]  # [generated words]: position in the given sentence or -1
    log_likelihoods: list[float]  # of every iteration, natural logarithm, before its update


def train_hmm(
    given: BitextSide,
    generated: BitextSide,
    lexicon: Lexicon,
    given_classes: npt.NDArray[np.int32],
    after_pass: AfterPass | None = None,
) -> HmmModel:
    """Train one direction: every generated word takes a given word or none; ``after_pass`` as for fast_align."""
    start = fast_align.train_fast_align(given, generated, lexicon, after_pass)
    t, t_null = start.t, start.t_null
    classes = int(given_classes.max()) + 1
    jumps = np.tile(np.exp(-0.7 * np.abs(np.arange(-WIDTH, WIDTH + 1) - 1.0)), (classes, 1))
    first = np.exp(-0.5 * np.arange(WIDTH))
    candidates = np.full((len(generated.ids), CANDIDATES), -1, np.int16)
    nulls = np.zeros(len(generated.ids), np.bool_)
    everything = np.array([0, len(t_null)])
    corpus = (*lexicon, given.ids, given.offsets, generated.ids, generated.offsets, given_classes)
    log_likelihoods = []
    for iteration in range(ITERATIONS + 1):
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
                P_NULL,
                UNIFORM,
                LONGEST,
                last,
                counts,
                null_counts,
                jump_counts,
                first_counts,
                candidates,
                nulls,
            )
        )
        if after_pass:
            after_pass()
        if not last:
            normalise(lexicon.starts, counts, ALPHA, t)
            normalise(everything, null_counts, ALPHA, t_null)
            overall = jump_counts.sum(0) / max(jump_counts.sum(), 1e-9)
            jumps = jump_counts + CLASS_PRIOR * overall + 1e-3
            first = first_counts + 1e-3
    found = candidates[:, 0] >= 0
    best = np.where(found, np.where(nulls, -1, candidates[:, 0]), start.best).astype(np.int32)
    return HmmModel(t, t_null, candidates, best, log_likelihoods)
