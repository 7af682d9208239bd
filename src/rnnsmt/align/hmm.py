"""The HMM alignment model (Vogel, Ney and Tillmann 1996) with jumps that depend on word classes (Och and Ney 2003).

With the settings of GIZA++: five EM iterations from Model 1's lexical probabilities and uniform jumps; NULL weighs 0.4
against 1 for all jumps together; a fifth of every jump distribution is uniform; maximum-likelihood estimates. Not as
there, the position of the last word has no distribution, and that of the first word does not depend on the length. A
word is linked to the given word with the highest posterior probability, unless NULL's is higher. No random numbers are
drawn.
"""

import numpy as np
import numpy.typing as npt

from rnnsmt.align import model1
from rnnsmt.align.direction import Counts, Direction, Parameters, Sentences, Statistics, no_counts
from rnnsmt.align.kernels.hmm import hmm_block
from rnnsmt.align.kernels.lexicon import relative_frequencies
from rnnsmt.align.word_classes import word_classes
from rnnsmt.kernels.fixed_point import ONE

ITERATIONS = 5

P_NULL = 0.4 / 1.4

UNIFORM = 0.2
"""Share of a uniform distribution in every jump distribution."""

LONGEST = 200
"""Sentences over so many words are aligned by Model 1: time grows with the cube of the length."""


def begin(direction: Direction) -> Parameters:
    """What Model 1 begins with, and equal weights of all jumps.

    ``jumps``: weights of the jumps -W .. W, [given classes, 2 W + 1]; ``beginnings``: of the first position, [W];
    ``log_likelihoods``: of every iteration of the HMM, natural logarithm, before its update.
    """
    classes = word_classes(direction.given)
    width = int(np.minimum(direction.given.lengths, LONGEST).max())
    return {
        **model1.begin(direction),
        "given_classes": classes,
        "jumps": np.ones((int(classes.max()) + 1, 2 * width + 1)),
        "beginnings": np.ones(width),
        "log_likelihoods": np.zeros(0),
    }


def count(sentences: Sentences, parameters: Parameters) -> Counts:
    """Expected counts of EM."""
    counts = no_counts(parameters, "t", "t_null", "jumps", "beginnings")
    return {**counts, "sums": _pass(sentences, parameters, False, *[array.ravel() for array in counts.values()])}


def align(sentences: Sentences, parameters: Parameters) -> Counts:
    """Link every generated word to the given word with the highest posterior probability, unless NULL's is higher."""
    values = _pass(sentences, parameters, True, *[np.zeros(0, np.int64)] * 4)
    return {"sums": values, "best": parameters["best"]}


def estimate(statistics: Statistics, parameters: Parameters, counts: Counts) -> None:
    """The update of EM; after the last pass the log-likelihood alone."""
    parameters["log_likelihoods"] = np.append(parameters["log_likelihoods"], sum(counts["sums"].tolist()))
    if "t" in counts:
        statistics.estimate(parameters, counts, relative_frequencies)
        # a class without jumps, and a sentence of which none was seen, still needs a distribution
        for name in ("jumps", "beginnings"):
            parameters[name] = counts[name] / ONE + 1e-9


def _pass(sentences: Sentences, parameters: Parameters, last: bool, *counts: object) -> npt.NDArray[np.float64]:
    learnt = [parameters[name] for name in ("given_classes", "t", "t_null", "jumps", "beginnings")]
    p_null = P_NULL if len(parameters["log_likelihoods"]) else 0.0
    settings = (p_null, UNIFORM, LONGEST, last)
    return sentences.over_blocks(
        lambda *block: hmm_block(*block, *sentences.corpus, *learnt, *settings, *counts, parameters["best"])
    )
