"""IBM Model 1 (Brown et al. 1993): every given word and NULL are equally likely to generate a word.

Plain EM from uniform distributions. No random numbers are drawn.
"""

from rnnsmt.align.direction import Counts, Direction, Parameters, Sentences, Statistics, no_counts
from rnnsmt.align.kernels.lexicon import FLOOR, relative_frequencies
from rnnsmt.align.kernels.model1 import model1_block

ITERATIONS = 5


def begin(direction: Direction) -> Parameters:
    """Uniform lexical probabilities."""
    parameters = direction.uniform(1.0 / len(direction.generated.vocabulary))
    parameters["t"][-1] = FLOOR
    return parameters


def count(sentences: Sentences, parameters: Parameters) -> Counts:
    """Expected counts of EM; ``best`` becomes the links before them: given positions, -1 for NULL."""
    counts = no_counts(parameters, "t", "t_null")
    learnt = (parameters["t"], parameters["t_null"], *counts.values(), parameters["best"])
    sentences.over_blocks(lambda *block: model1_block(*block, *sentences.corpus, *learnt))
    return {**counts, "best": parameters["best"]}


def estimate(statistics: Statistics, parameters: Parameters, counts: Counts) -> None:
    """The update of EM."""
    statistics.estimate(parameters, counts, relative_frequencies)
