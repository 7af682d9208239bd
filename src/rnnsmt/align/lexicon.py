"""The word pairs that occur together in some sentence pair, as compressed sparse rows.

The aligners keep one parameter for each of them, so their memory grows with the number of distinct pairs and not with
the number of words squared or of sentence positions.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rnnsmt.align.bitext import BitextSide
from rnnsmt.align.kernels.lexicon import corpus_cells, partners_of_words, transpose

AfterPass = Callable[[], None]
"""Called after every pass over the corpus; may raise to end a training."""


CELLS = 50_000_000
"""Word pairs of the corpus, from its beginning, of which memory (4 bytes each) says where the lexicon keeps them.

Without it every pass would look them up again: a third of the time that Model 4 takes.
"""


class Lexicon(NamedTuple):
    """Row ``e`` is ``words[starts[e]:starts[e + 1]]``: the generated words seen with the given word e, ascending."""

    starts: npt.NDArray[np.int64]  # [given vocabulary + 1]
    words: npt.NDArray[np.int32]  # [pairs]
    cells: npt.NDArray[np.int32]  # [at most CELLS] see ``kernels.lexicon.look_up``


def build_lexicon(given: BitextSide, generated: BitextSide) -> Lexicon:
    """All pairs of a given and a generated word that share a sentence pair; time linear in the sum of I x J."""
    sentence_starts, sentences = _sentences_of_words(given)
    vocabulary = len(generated.vocabulary)
    sizes = np.zeros(len(given.vocabulary) + 1, np.int64)
    nothing = np.zeros(0, np.int32)
    partners_of_words(sentence_starts, sentences, generated.ids, generated.offsets, vocabulary, sizes, nothing)
    starts = np.cumsum(sizes)
    unsorted = np.empty(starts[-1], np.int32)
    partners_of_words(sentence_starts, sentences, generated.ids, generated.offsets, vocabulary, starts, unsorted)
    # transposing twice sorts the rows in linear time
    by_generated = transpose(starts, unsorted, vocabulary)
    starts, words = transpose(by_generated[0], by_generated[1], len(given.vocabulary))
    known = min(int((given.lengths * generated.lengths).sum()), CELLS if len(words) < 2**31 else 0)
    cells = np.empty(known, np.int32)
    corpus_cells(starts, words, given.ids, given.offsets, generated.ids, generated.offsets, cells)
    return Lexicon(starts, words, cells)


def _sentences_of_words(side: BitextSide) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """For every word the sentences it is in (once for each occurrence), as starts [vocabulary + 1] and sentences."""
    sentence = np.repeat(np.arange(len(side.offsets) - 1, dtype=np.int32), np.diff(side.offsets))
    order = np.argsort(side.ids, kind="stable")
    sizes = np.bincount(side.ids, minlength=len(side.vocabulary))
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]), sentence[order]
