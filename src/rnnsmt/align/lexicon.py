"""The word pairs that occur together in some sentence pair, as compressed sparse rows.

The aligners keep one parameter for each of them, so their memory grows with the number of distinct pairs and not with
the number of words squared or of sentence positions.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from rnnsmt.align.bitext import Bitext, Side


class Lexicon(NamedTuple):
    """Row ``e`` (a source word) is ``words[starts[e]:starts[e + 1]]``: the target words seen with it, ascending."""

    starts: npt.NDArray[np.int64]  # [source vocabulary + 1]
    words: npt.NDArray[np.int32]  # [pairs]


def build_lexicon(bitext: Bitext) -> Lexicon:
    """All pairs of a source and a target word that share a sentence pair; time linear in the cells, sum of I x J."""
    source, target = bitext
    sentence_starts, sentences = _sentences_of_words(source)
    vocabulary = len(target.vocabulary)
    sizes = np.zeros(len(source.vocabulary) + 1, np.int64)
    nothing = np.zeros(0, np.int32)
    _pairs(sentence_starts, sentences, target.ids, target.offsets, vocabulary, sizes, nothing)
    starts = np.cumsum(sizes)
    unsorted = np.empty(starts[-1], np.int32)
    _pairs(sentence_starts, sentences, target.ids, target.offsets, vocabulary, starts, unsorted)
    # transposing twice sorts the rows in linear time
    by_target = _transpose(starts, unsorted, vocabulary)
    return Lexicon(*_transpose(by_target[0], by_target[1], len(source.vocabulary)))


def _sentences_of_words(side: Side) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """For every word the sentences it is in (once for each occurrence), as starts [vocabulary + 1] and sentences."""
    sentence = np.repeat(np.arange(len(side.offsets) - 1, dtype=np.int32), np.diff(side.offsets))
    order = np.argsort(side.ids, kind="stable")
    sizes = np.bincount(side.ids, minlength=len(side.vocabulary))
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]), sentence[order]


@njit(cache=True, nogil=True)
def _pairs(sentence_starts, sentences, ids, offsets, vocabulary, sizes, words):
    """Without room in ``words``: sizes[e + 1] = distinct partners of e. With room: fill row e from sizes[e] on."""
    seen = np.full(vocabulary, -1, np.int32)
    count = len(words) == 0
    for e in range(len(sentence_starts) - 1):
        size = 0
        for k in range(sentence_starts[e], sentence_starts[e + 1]):
            s = sentences[k]
            for p in range(offsets[s], offsets[s + 1]):
                f = ids[p]
                if seen[f] != e:
                    seen[f] = e
                    if not count:
                        words[sizes[e] + size] = f
                    size += 1
        if count:
            sizes[e + 1] = size


@njit(cache=True, nogil=True)
def _transpose(starts, words, vocabulary):
    """Rows of the other side; each of them ascending."""
    other_starts = np.zeros(vocabulary + 1, np.int64)
    for f in words:
        other_starts[f + 1] += 1
    for f in range(vocabulary):
        other_starts[f + 1] += other_starts[f]
    free = other_starts[:-1].copy()
    other_words = np.empty(len(words), np.int32)
    for e in range(len(starts) - 1):
        for k in range(starts[e], starts[e + 1]):
            f = words[k]
            other_words[free[f]] = e
            free[f] += 1
    return other_starts, other_words


@njit(cache=True, nogil=True)
def locate(starts, words, source, target, cells):
    """cells [I, J] = where the lexicon keeps each pair of the words ``source`` [I] and ``target`` [J]."""
    for i in range(len(source)):
        first, behind = starts[source[i]], starts[source[i] + 1]
        for j in range(len(target)):
            word = target[j]
            low, high = first, behind - 1
            while low < high:
                middle = (low + high) >> 1
                if words[middle] < word:
                    low = middle + 1
                else:
                    high = middle
            cells[i, j] = low


@njit(cache=True, nogil=True)
def digamma(x):
    """The logarithmic derivative of the gamma function, for x > 0, to about 1e-10 (asymptotic series above 6)."""
    result = 0.0
    while x < 6.0:
        result -= 1.0 / x
        x += 1.0
    y = 1.0 / (x * x)
    series = y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y * (1 / 132)))))
    return result + np.log(x) - 0.5 / x - series
