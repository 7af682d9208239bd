"""IBM Model 1 (Brown et al. 1993): every given word and NULL generate a word with equal probability.

Plain EM from uniform distributions. No random numbers are drawn.
"""

from rnnsmt.align.direction import Counts, Direction, Parameters, Sentences, Statistics, no_counts
from rnnsmt.align.kernels.lexicon import FLOOR, relative_frequencies
from rnnsmt.align.kernels.model1 import model1_block

ITERATIONS = 5
"""Number of EM iterations."""


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
    sentences.over_blocks(lambda *block: model1_block(*block, *sentences.corpus, *learnt))
    return {**counts, "best": parameters["best"]}


def estimate(statistics: Statistics, parameters: Parameters, counts: Counts) -> None:
    """Update the lexical probabilities by EM."""
    statistics.estimate(parameters, counts, relative_frequencies)
