"""IBM Model 4 (Brown et al. 1993) after the HMM, with the settings that Moses trains GIZA++ with where they matter.

As there, NULL has a probability of 0.001, placements depend on 50 word classes a side, and the counts of lexical
translations and fertilities are gathered over the neighbourhood (moves and swaps) of the alignment that hill climbing
from the HMM's best one ends at. Not as there, the counts of placements come from that alignment alone, and those of
fertilities take all neighbours for moves; a word may only move to the few positions that the HMM finds likely, the
lexical distributions keep a Dirichlet prior, and rare classes and words lean on the distributions of all. No random
numbers are drawn.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rnnsmt.align import hmm
from rnnsmt.align.bitext import BitextSide
from rnnsmt.align.kernels.lexicon import normalise
from rnnsmt.align.kernels.model4 import MAX_FERTILITY, model4_pass
from rnnsmt.align.lexicon import AfterPass, Lexicon

ITERATIONS = 4

P_NULL = 0.001

CLIMBS = 20
"""Most steps of one hill climb."""

WIDTH = 20
"""Larger distances between cepts count as this one."""

REACH = 12
"""The same inside a cept."""

UNIFORM = 0.1
"""Share of a uniform distribution in every distribution of distances."""

CLASS_PRIOR = 50.0
"""Weight, in words, of the distance distribution of fewer conditions in that of more."""

FERTILITY_PRIOR = 4.0
"""Weight, in words, of the fertility distribution of all words in that of one."""


class Model4(NamedTuple):
    """The links and how training went."""

    best: npt.NDArray[np.int32]  # [generated words]: position in the given sentence or -1
    log_probabilities: list[float]  # of the alignments after every pass; the first is before any parameter


def train_model4(
    given: BitextSide,
    generated: BitextSide,
    lexicon: Lexicon,
    given_classes: npt.NDArray[np.int32],
    generated_classes: npt.NDArray[np.int32],
    after_pass: AfterPass | None = None,
) -> Model4:
    """Train one direction: every generated word takes a given word or none; ``after_pass`` as for fast_align."""
    start = hmm.train_hmm(given, generated, lexicon, given_classes, after_pass)
    t, t_null = start.t, start.t_null
    nothing = np.repeat(given.lengths, generated.lengths)
    found = start.candidates[:, 0] >= 0
    links = np.where(found, start.candidates[:, 0], nothing).astype(np.int64)
    classes = int(given_classes.max()) + 1, int(generated_classes.max()) + 1
    head = np.zeros((classes[0] + 1, classes[1], 2 * WIDTH + 1))
    inner = np.zeros((classes[1], REACH + 1))
    fertility = np.zeros((len(given.vocabulary), MAX_FERTILITY + 1))
    corpus = (*lexicon, given.ids, given.offsets, generated.ids, generated.offsets, given_classes, generated_classes)
    everything = np.array([0, len(t_null)])
    log_probabilities = []
    for iteration in range(ITERATIONS + 1):
        counts, null_counts = np.zeros_like(t), np.zeros_like(t_null)
        sums = np.zeros_like(fertility), np.zeros_like(head), np.zeros_like(inner)
        log_probabilities.append(
            model4_pass(
                *corpus,
                t,
                t_null,
                fertility,
                head,
                inner,
                P_NULL,
                start.candidates,
                hmm.LONGEST,
                CLIMBS if iteration else 0,
                links,
                counts,
                null_counts,
                *sums,
            )
        )
        if after_pass:
            after_pass()
        fertility, head, inner = _estimate(*sums)
        if iteration:
            normalise(lexicon.starts, counts, hmm.ALPHA, t)
            normalise(everything, null_counts, hmm.ALPHA, t_null)
    linked = np.where(links < nothing, links, -1)
    return Model4(np.where(found, linked, start.best).astype(np.int32), log_probabilities)


def _estimate(fertility, head, inner):
    """Log-distributions from counts, smoothed; shapes as the kernels take them."""
    overall = head.sum((0, 1)) + 0.5
    by_class = head.sum(0) + CLASS_PRIOR * overall / overall.sum()
    by_class /= by_class.sum(-1, keepdims=True)
    head = head + CLASS_PRIOR * by_class
    overall = inner.sum(0) + 0.5
    inner = inner + CLASS_PRIOR * overall / overall.sum()
    overall = fertility.sum(0) + 0.1
    # expected counts are differences and can be a rounding error below 0
    fertility = np.maximum(fertility + FERTILITY_PRIOR * overall / overall.sum(), 1e-9)
    smoothed = [
        (1.0 - UNIFORM) * counts / counts.sum(-1, keepdims=True) + UNIFORM / counts.shape[-1]
        for counts in (head, inner)
    ]
    return np.log(fertility / fertility.sum(-1, keepdims=True)), np.log(smoothed[0]), np.log(smoothed[1])
