"""IBM Model 1 (Brown et al. 1993): every given word and NULL are equally likely to generate a word.

Plain EM from uniform distributions. No random numbers are drawn.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rnnsmt.align.bitext import BitextSide
from rnnsmt.align.kernels.lexicon import relative_frequencies
from rnnsmt.align.kernels.model1 import model1_pass
from rnnsmt.align.lexicon import AfterPass, Lexicon

ITERATIONS = 5


class Model1(NamedTuple):
    """What training leaves behind: p(f | e) for every pair of the lexicon, p(f | NULL), and the best links."""

    t: npt.NDArray[np.float64]  # [pairs]
    t_null: npt.NDArray[np.float64]  # [generated vocabulary]
    best: npt.NDArray[np.int32]  # [generated words]: position in the given sentence or -1


def train_model1(
    given: BitextSide, generated: BitextSide, lexicon: Lexicon, after_pass: AfterPass | None = None
) -> Model1:
    """Train one direction; ``after_pass`` is called after every pass over the corpus and may raise to end the training.

    The links are those before the last update.
    """
    corpus = (*lexicon, given.ids, given.offsets, generated.ids, generated.offsets)
    vocabulary = len(generated.vocabulary)
    t, t_null = np.full(len(lexicon.words), 1.0 / vocabulary), np.full(vocabulary, 1.0 / vocabulary)
    best = np.full(len(generated.ids), -1, np.int32)
    for _ in range(ITERATIONS):
        counts, null_counts = np.zeros_like(t), np.zeros_like(t_null)
        model1_pass(*corpus, t, t_null, counts, null_counts, best)
        relative_frequencies(lexicon.starts, counts, t)
        relative_frequencies(np.array([0, vocabulary]), null_counts, t_null)
        if after_pass:
            after_pass()
    return Model1(t, t_null, best)
