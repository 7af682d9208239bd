"""Word classes that maximise the likelihood of a class-bigram model, by exchange (Kneser and Ney 1993; mkcls).

The alignment models tie the distortion parameters of the words of a class.
"""

import numpy as np
import numpy.typing as npt

from rnnsmt.align.bitext import BitextSide
from rnnsmt.align.kernels.word_classes import exchange_words

SENTENCES = 1_000_000
"""Number of sentences whose bigrams are counted at a time, so that memory grows with the number of distinct bigrams,
not of all bigrams."""


def word_classes(side: BitextSide, classes: int = 50, passes: int = 5) -> npt.NDArray[np.int32]:
    """Return the class of every word, 0 .. ``classes`` - 1, as an int32 array [vocabulary].

    The k-th most frequent word starts in class k mod ``classes``. In order of descending frequency, each word is moved
    into the class that increases the likelihood most. The algorithm stops after ``passes`` iterations over the
    vocabulary, or when no word moves. It draws no random numbers.
    """
    words = len(side.vocabulary)
    frequency = np.bincount(side.ids, minlength=words)
    order = np.lexsort((np.arange(words), -frequency)).astype(np.int32)
    assignment = np.empty(words + 1, np.int32)
    assignment[order] = np.arange(words) % classes
    assignment[words] = classes  # sentence boundary: a class of its own
    keys, counts = _bigrams(side)
    # f: successors of each word, b: its predecessors, both as (starts, words, counts)
    f = _rows(keys // (words + 1), keys % (words + 1), counts, words + 1)
    turned = np.argsort(keys % (words + 1), kind="stable")
    b = _rows((keys % (words + 1))[turned], (keys // (words + 1))[turned], counts[turned], words + 1)
    exchange_words(f[0], f[1], f[2], b[0], b[1], b[2], order, classes + 1, passes, assignment)
    return assignment[:words]


def _bigrams(side: BitextSide) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the keys of all distinct bigrams, ascending, and their counts.

    The key of a bigram is first word * (vocabulary + 1) + second word. The sentence boundary, whose id follows those of
    all words, precedes and follows every sentence.
    """
    boundary = len(side.vocabulary)
    keys, counts = np.zeros(0, np.int64), np.zeros(0, np.int64)
    for first in range(0, len(side.offsets) - 1, SENTENCES):
        offsets = side.offsets[first : first + SENTENCES + 1]
        ids = side.ids[offsets[0] : offsets[-1]].astype(np.int64)
        text = np.insert(ids, offsets - offsets[0], boundary)
        found, times = np.unique(text[:-1] * (boundary + 1) + text[1:], return_counts=True)
        everything, place = np.unique(np.concatenate([keys, found]), return_inverse=True)
        counts = np.bincount(place, np.concatenate([counts, times]), len(everything)).astype(np.int64)
        keys = everything
    return keys, counts


def _rows(first, second, counts, size):
    """Return pairs that are sorted by ``first`` as compressed sparse rows: starts, columns, counts."""
    starts = np.searchsorted(first, np.arange(size + 1))
    return starts.astype(np.int64), second.astype(np.int32), counts.astype(np.int64)
