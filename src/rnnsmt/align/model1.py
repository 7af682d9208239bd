"""IBM Model 1 (Brown et al. 1993): every given word and NULL are equally likely to generate a word.

Plain EM from uniform distributions. No random numbers are drawn.
"""

from rnnsmt.align.direction import Direction, Parameters
from rnnsmt.align.kernels.lexicon import FLOOR, relative_frequencies
from rnnsmt.align.kernels.model1 import model1_block

ITERATIONS = 5


def begin(direction: Direction) -> Parameters:
    """Uniform lexical probabilities."""
    parameters = direction.uniform(1.0 / len(direction.generated.vocabulary))
    parameters["t"][-1] = FLOOR
    return parameters


def iterate(direction: Direction, parameters: Parameters) -> None:
    """One iteration of EM; ``best`` [generated words] becomes the links before it: given positions, -1 for NULL."""
    counts = direction.lexical_counts()
    learnt = (parameters["t"], parameters["t_null"], *counts, parameters["best"])
    direction.over_blocks(lambda *block: model1_block(*block, *direction.corpus, *learnt))
    direction.estimate(parameters, *counts, relative_frequencies)
