"""IBM Model 4 (Brown et al. 1993), trained as GIZA++ does with the settings of Moses (Och and Ney 2003).

Model 1 (five iterations) gives the HMM its start, the HMM (five) Model 3, and Model 3 (three) Model 4 (three). The
first iteration of Models 3 and 4 takes its counts from alignments of the model before, so that six passes over the
corpus follow the HMM's (``PASSES``). In each, hill climbing leads from the HMM's most probable path, with the current
lexical probabilities, to an alignment of which no neighbour (one word moved, or the links of two swapped) is more
probable; fractional counts are gathered over it and its neighbours. The pass of the HMM itself counts its path and the
neighbours.

* NULL has a probability of 0.001.
* The fertility distribution of a word is smoothed with four counts of the mean distribution of the words of its length.
* Model 4's distances depend on 50 word classes a side; 0.4 of every distribution of them is uniform.
* Distortion is deficient: positions that are taken or outside the sentence have probability, too.
* The rest are maximum-likelihood estimates; none is below 1e-7.

GIZA++ takes the first better neighbour in an order of its own where this takes the best, and finds its word classes in
another way; of its links, 97 % in one direction and 98 % in the other are the same (27,000 pairs of Multi30k). No
random numbers are drawn.
"""

import numpy as np
import numpy.typing as npt

from rnnsmt.align import hmm
from rnnsmt.align.direction import Counts, Direction, Parameters, Sentences, Statistics, no_counts
from rnnsmt.align.kernels.lexicon import FLOOR, relative_frequencies
from rnnsmt.align.kernels.model3 import MAX_FERTILITY
from rnnsmt.align.kernels.model4 import HMM, MODEL3, MODEL4, Tables, distortion_row, fertility_block
from rnnsmt.align.word_classes import word_classes
from rnnsmt.kernels.fixed_point import ONE

PASSES = ((HMM, MODEL3), (MODEL3, MODEL3), (MODEL3, MODEL3), (MODEL3, MODEL4), (MODEL4, MODEL4), (MODEL4, 0))
"""The model that a pass over the corpus aligns with, and the model whose parameters it counts: none in the last."""

P_NULL = 0.001

CLIMBS = 30
"""Most steps of one hill climb."""

FERTILITY_PRIOR = 4.0
"""Weight, in words, of the mean fertility distribution of the words of equal length in that of one."""


def begin(direction: Direction) -> Parameters:
    """What the HMM begins with, and room for the parameters of Models 3 and 4, named as in ``kernels.model4.Tables``.

    ``log_probabilities``: of the alignments of every pass of Models 3 and 4.
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
    """The next one of ``PASSES``; the last one links every generated word to a given word or (-1) to none."""
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
    """The parameters of the model that was counted; after the last pass the log-probability alone."""
    parameters["log_probabilities"] = np.append(parameters["log_probabilities"], sum(counts["sums"].tolist()))
    if "t" in counts:
        statistics.estimate(parameters, counts, relative_frequencies)
        tables = Tables(*[counts[name] for name in Tables._fields])
        parameters.update(_estimate(tables, statistics.letters, tables.inner.shape[1] - 1))


def _estimate(counts: Tables, letters: npt.NDArray[np.int64], width: int) -> Parameters:
    """Parameters but the lexical ones from counts in fixed point; ``letters``: the length of every given word."""
    sizes = np.repeat(np.arange(width + 1), width)  # of the rows of the distortion table: J, for every position
    starts = np.concatenate([[0], np.cumsum(sizes)])
    distortion = np.empty(len(counts.distortion))
    relative_frequencies(starts, counts.distortion, distortion)
    # expected fertilities are differences and can be a rounding error below 0; the last column is for impossible ones
    fertility = np.maximum(counts.fertility / ONE, FLOOR)
    fertility[:, MAX_FERTILITY] = 0.0
    by_letters = np.zeros((letters.max() + 1, MAX_FERTILITY + 1))
    np.add.at(by_letters, letters, fertility)
    by_letters /= np.maximum(by_letters.sum(1, keepdims=True), FLOOR)
    fertility += FERTILITY_PRIOR * by_letters[letters]
    fertility /= fertility.sum(1, keepdims=True)
    head, inner = (
        table / ONE / np.maximum(table.sum(-1, keepdims=True) / ONE, 1e-9) for table in (counts.head, counts.inner)
    )
    return {"distortion": distortion, "fertility": fertility, "head": head, "inner": inner}
