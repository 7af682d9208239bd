"""HMM alignment model (Vogel, Ney and Tillmann 1996) with jumps that depend on word classes (Och and Ney 2003).

The settings are those of GIZA++: five EM iterations from Model 1's lexical probabilities and uniform jumps; NULL has
weight 0.4, against 1 for all jumps together; a fifth of every jump distribution is uniform; maximum-likelihood
estimates. Unlike in GIZA++, there is no distribution of the position of the last word, and the distribution of the
position of the first word does not depend on the sentence length. A word is linked to the given word with the highest
posterior probability, unless that of NULL is higher. No random numbers are drawn.
"""

import numpy as np
import numpy.typing as npt

from rnnsmt.align import model1
from rnnsmt.align.direction import Counts, Direction, Parameters, Sentences, Statistics, no_counts
from rnnsmt.align.kernels.hmm import hmm_block
from rnnsmt.align.kernels.lexicon import relative_frequencies
from rnnsmt.align.word_classes import word_classes
from rnnsmt.base.kernels.fixed_point import ONE

ITERATIONS = 5
"""Number of EM iterations."""

P_NULL = 0.4 / 1.4
"""Probability of NULL, for every generated word."""

UNIFORM = 0.2
"""Share of the uniform distribution in every jump distribution."""

LONGEST = 200
"""Maximum sentence length; longer sentences keep Model 1's links, as time grows with the cube of the length."""


def begin(direction: Direction) -> Parameters:
    """Return the initial parameters: those of Model 1, and equal weights of all jumps.

    ``jumps`` [given classes, 2 W + 1]: weights of the jumps -W .. W. ``beginnings`` [W]: weights of the first position.
    ``log_likelihoods``: natural log-likelihood of every iteration of the HMM, before its update.
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
    """Compute the expected counts of EM."""
    counts = no_counts(parameters, "t", "t_null", "jumps", "beginnings")
    return {**counts, "sums": _pass(sentences, parameters, False, *[array.ravel() for array in counts.values()])}


def align(sentences: Sentences, parameters: Parameters) -> Counts:
    """Link every generated word to the given word with the highest posterior probability.

    A word is linked to NULL (-1) if the posterior probability of NULL is higher.
    """
    values = _pass(sentences, parameters, True, *[np.zeros(0, np.int64)] * 4)
    return {"sums": values, "best": parameters["best"]}


def estimate(statistics: Statistics, parameters: Parameters, counts: Counts) -> None:
    """Update the parameters by EM, and append the log-likelihood; the last pass only appends the log-likelihood."""
    parameters["log_likelihoods"] = np.append(parameters["log_likelihoods"], sum(counts["sums"].tolist()))
    if "t" in counts:
        statistics.estimate(parameters, counts, relative_frequencies)
        # 1e-9: a class without jumps, or a sentence all of whose jumps are unseen, still has a distribution
        for name in ("jumps", "beginnings"):
            parameters[name] = counts[name] / ONE + 1e-9


def _pass(sentences: Sentences, parameters: Parameters, last: bool, *counts: object) -> npt.NDArray[np.float64]:
    """Run the kernel over all blocks; return the log-likelihood of every block.

    Args:
        sentences: the text.
        parameters: the parameters; ``best`` is set if ``last``.
        last: link words instead of counting.
        counts: counts of ``t``, ``t_null``, ``jumps`` and ``beginnings``, flat, updated in place.
    """
    learnt = [parameters[name] for name in ("given_classes", "t", "t_null", "jumps", "beginnings")]
    # 0 in the first iteration: NULL is as probable as each given word, as in Model 1
    p_null = P_NULL if len(parameters["log_likelihoods"]) else 0.0
    settings = (p_null, UNIFORM, LONGEST, last)
    return sentences.over_blocks(
        lambda *block: hmm_block(*block, *sentences.corpus, *learnt, *settings, *counts, parameters["best"])
    )
