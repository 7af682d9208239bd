"""Word classes that make the class-bigram model of a text likely, by exchange (Kneser and Ney 1993; mkcls).

Words of a class share their distortion parameters in the alignment models.
"""

import numpy as np
import numpy.typing as npt

from rnnsmt.align.bitext import BitextSide
from rnnsmt.align.kernels.word_classes import exchange_words

SENTENCES = 1_000_000
"""So many are counted together: memory grows with the number of distinct bigrams, not of all."""


def word_classes(side: BitextSide, classes: int = 50, passes: int = 5) -> npt.NDArray[np.int32]:
    """The class of every word, 0 .. ``classes`` - 1, as an array [vocabulary].

    Starts with the k-th most frequent word in class k mod ``classes`` and moves, in order of frequency, each word into
    the class that raises the likelihood most; stops after ``passes`` or when no word moves. Draws no random numbers.
    """
    words = len(side.vocabulary)
    frequency = np.bincount(side.ids, minlength=words)
    order = np.lexsort((np.arange(words), -frequency)).astype(np.int32)
    assignment = np.empty(words + 1, np.int32)
    assignment[order] = np.arange(words) % classes
    assignment[words] = classes  # sentence boundary: a class of its own
    keys, counts = _bigrams(side)
    f = _rows(keys // (words + 1), keys % (words + 1), counts, words + 1)
    turned = np.argsort(keys % (words + 1), kind="stable")
    b = _rows((keys % (words + 1))[turned], (keys // (words + 1))[turned], counts[turned], words + 1)
    exchange_words(f[0], f[1], f[2], b[0], b[1], b[2], order, classes + 1, passes, assignment)
    return assignment[:words]


def _bigrams(side: BitextSide) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """All bigrams, ascending, and how often each occurs; one is first word * (vocabulary + 1) + second word.

    A boundary, the word after the last one, stands before and after every sentence.
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
    """Sorted pairs as compressed sparse rows: starts, columns, counts."""
    starts = np.searchsorted(first, np.arange(size + 1))
    return starts.astype(np.int64), second.astype(np.int32), counts.astype(np.int64)
