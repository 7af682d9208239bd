"""IBM Model 4 (Brown et al. 1993), trained as by GIZA++ with the settings of Moses (Och and Ney 2003).

The models are trained in sequence, each initialised from the one before: Model 1 (five iterations), the HMM (five),
Model 3 (three) and Model 4 (three). The first iteration of Models 3 and 4 collects its counts from alignments of the
model before, so that six passes over the corpus follow those of the HMM (``PASSES``). In each pass, hill climbing
starts from the Viterbi path of the HMM with the current lexical probabilities, and ends at an alignment without a more
probable neighbour (one word linked elsewhere, or the links of two words swapped). Fractional counts are collected over
this alignment and its neighbours. The first of the six passes aligns with the HMM itself, without hill climbing, and
collects counts over the Viterbi path and its neighbours.

* The probability of NULL is 0.001.
* The fertility distribution of a word is smoothed with four counts of the mean distribution of words of its length.
* The distances of Model 4 depend on 50 word classes per side; 0.4 of each of their distributions is uniform.
* Distortion is deficient: occupied positions and positions outside the sentence also have probability.
* All other estimates are maximum-likelihood estimates of at least 1e-7.

GIZA++ moves to the first better neighbour in its own order, where this implementation moves to the best one, and it
finds its word classes in a different way. 97 % of its links in one direction and 98 % in the other are identical
(27,000 sentence pairs of Multi30k). No random numbers are drawn.
"""

import numpy as np
import numpy.typing as npt

from rnnsmt.align import hmm
from rnnsmt.align.direction import Counts, Direction, Parameters, Sentences, Statistics, no_counts
from rnnsmt.align.kernels.lexicon import FLOOR, relative_frequencies
from rnnsmt.align.kernels.model3 import MAX_FERTILITY
from rnnsmt.align.kernels.model4 import HMM, MODEL3, MODEL4, Tables, distortion_row, fertility_block
from rnnsmt.align.word_classes import word_classes
from rnnsmt.base.kernels.fixed_point import ONE

PASSES = ((HMM, MODEL3), (MODEL3, MODEL3), (MODEL3, MODEL3), (MODEL3, MODEL4), (MODEL4, MODEL4), (MODEL4, 0))
"""For each pass, the model that aligns and the model whose counts are collected; 0 for none, in the last pass."""

P_NULL = 0.001
"""Probability of NULL in Models 3 and 4."""

CLIMBS = 30
"""Maximum number of hill-climbing steps."""

FERTILITY_PRIOR = 4.0
"""Weight, in counts, of the mean fertility distribution of all words of equal length."""


def begin(direction: Direction) -> Parameters:
    """Return the initial parameters of the HMM, and zeros for those of Models 3 and 4.

    They are named as in ``kernels.model4.Tables``. ``log_probabilities``: log-probability of the alignments of every
    pass of Models 3 and 4.
    """
    parameters = hmm.begin(direction)
    given, generated = direction.given, direction.generated
    width = min(int(max(given.lengths.max(), generated.lengths.max())), hmm.LONGEST)
    parameters["generated_classes"] = word_classes(generated)
    classes = int(parameters["given_classes"].max()) + 1, int(parameters["generated_classes"].max()) + 1
    return {
        **parameters,
        "distortion": np.zeros(distortion_row(0, width + 1, width)),
        "fertility": np.zeros((len(given.vocabulary), MAX_FERTILITY + 1)),
        "head": np.zeros((classes[0] + 1, classes[1], 2 * width + 1)),
        "inner": np.zeros((classes[1], width + 1)),
        "log_probabilities": np.zeros(0),
    }


def count(sentences: Sentences, parameters: Parameters) -> Counts:
    """Run the next of ``PASSES``; the last one links every generated word to a given word or to NULL (-1)."""
    model, counted = PASSES[len(parameters["log_probabilities"])]
    tables = Tables(*[parameters[name] for name in Tables._fields])
    counts = no_counts(parameters, *Tables._fields) if counted else {}
    room = Tables(**counts) if counted else Tables(*[np.zeros([0] * table.ndim, np.int64) for table in tables])
    learnt = (parameters["jumps"], parameters["beginnings"], hmm.P_NULL, hmm.UNIFORM, tables, room, P_NULL, CLIMBS)
    classes = (parameters["given_classes"], parameters["generated_classes"])
    counts["sums"] = sentences.over_blocks(
        lambda *block: fertility_block(*block, *sentences.corpus, *classes, model, counted, *learnt, parameters["best"])
    )
    return counts if counted else {**counts, "best": parameters["best"]}


def estimate(statistics: Statistics, parameters: Parameters, counts: Counts) -> None:
    """Update the parameters of the counted model, and append the log-probability; the last pass only appends it."""
    parameters["log_probabilities"] = np.append(parameters["log_probabilities"], sum(counts["sums"].tolist()))
    if "t" in counts:
        statistics.estimate(parameters, counts, relative_frequencies)
        tables = Tables(*[counts[name] for name in Tables._fields])
        parameters.update(_estimate(tables, statistics.letters, tables.inner.shape[1] - 1))


def _estimate(counts: Tables, letters: npt.NDArray[np.int64], width: int) -> Parameters:
    """Return all parameters except the lexical ones.

    Args:
        counts: expected counts in fixed point.
        letters: number of characters of every given word.
        width: maximum sentence length W.
    """
    sizes = np.repeat(np.arange(width + 1), width)  # row lengths of the distortion table: J, for W given positions
    starts = np.concatenate([[0], np.cumsum(sizes)])
    distortion = np.empty(len(counts.distortion))
    relative_frequencies(starts, counts.distortion, distortion)
    # expected fertilities are differences and can be slightly below 0; the last column is for impossible fertilities
    fertility = np.maximum(counts.fertility / ONE, FLOOR)
    fertility[:, MAX_FERTILITY] = 0.0
    # mean distribution of the words of each length
    by_letters = np.zeros((letters.max() + 1, MAX_FERTILITY + 1))
    np.add.at(by_letters, letters, fertility)
    by_letters /= np.maximum(by_letters.sum(1, keepdims=True), FLOOR)
    fertility += FERTILITY_PRIOR * by_letters[letters]
    fertility /= fertility.sum(1, keepdims=True)
    # smoothed with a uniform distribution only when they are used, see ``kernels.model4.placement``
    head, inner = (
        table / ONE / np.maximum(table.sum(-1, keepdims=True) / ONE, 1e-9) for table in (counts.head, counts.inner)
    )
    return {"distortion": distortion, "fertility": fertility, "head": head, "inner": inner}
