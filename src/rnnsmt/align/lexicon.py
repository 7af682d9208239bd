"""The word pairs that occur together in some sentence pair, as compressed sparse rows.

The aligners keep one parameter for each of them, so their memory grows with the number of distinct pairs and not with
the number of words squared or of sentence positions.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rnnsmt.align.bitext import BitextSide
from rnnsmt.align.kernels.lexicon import WEAKEST, partners_of_words, sentence_frequencies, sentences_of_words
from rnnsmt.parallel import in_threads
from rnnsmt.progress import say

MAX_PAIRS = 500_000_000
"""Pairs that are kept: 16 bytes each in a pass over the corpus."""

_RANGES = 64
"""Parts of the given vocabulary, of about as many occurrences, which threads share."""


class Lexicon(NamedTuple):
    """Row ``e`` is ``words[starts[e]:starts[e + 1]]``: the generated words seen with the given word e, ascending."""

    starts: npt.NDArray[np.int64]  # [given vocabulary + 1]
    words: npt.NDArray[np.int32]  # [pairs]


def build_lexicon(given: BitextSide, generated: BitextSide, threads: int = 1, max_pairs: int = MAX_PAIRS) -> Lexicon:
    """The pairs of a given and a generated word that share a sentence pair; time linear in the sum of I x J.

    Where there are more than ``max_pairs``, those go whose words have least to do with each other: with n sentences of
    a word or a pair, those for which n(e, f)^2 / (n(e) n(f)) is smallest, all of about the same value together.
    """
    occurrences = np.bincount(given.ids, minlength=len(given.vocabulary))
    sentence_starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(occurrences)])
    sentences = np.empty(len(given.ids), np.int32)
    sentences_of_words(given.ids, given.offsets, sentence_starts, sentences)
    frequencies = [np.zeros(len(side.vocabulary), np.int32) for side in (given, generated)]
    for side, numbers in zip((given, generated), frequencies, strict=True):
        sentence_frequencies(side.ids, side.offsets, numbers)
    corpus = (sentence_starts, sentences, generated.ids, generated.offsets, *frequencies)
    bounds = np.searchsorted(sentence_starts, np.linspace(0, len(given.ids), _RANGES + 1)).tolist()
    ranges = [(first, behind) for first, behind in pairwise(bounds) if first < behind]
    sizes = np.zeros(len(given.vocabulary) + 1, np.int64)

    def count(weakest: int) -> npt.NDArray[np.int64]:
        nothing = np.zeros(0, np.int32)

        def part(word_range: tuple[int, int]) -> npt.NDArray[np.int64]:
            strengths = np.zeros(WEAKEST + 1, np.int64)
            partners_of_words(*word_range, *corpus, weakest, sizes, nothing, strengths)
            return strengths

        return sum(in_threads(part, ranges, threads), np.zeros(WEAKEST + 1, np.int64))

    strengths, weakest = count(WEAKEST), WEAKEST
    if strengths.sum() > max_pairs:
        weakest = int(np.searchsorted(np.cumsum(strengths), max_pairs, side="right")) - 1  # a step is kept whole
        count(weakest)
        say(f"{strengths.sum():,} word pairs occur together; the {sizes.sum():,} that belong together most are kept")
    starts = np.cumsum(sizes)
    words = np.empty(starts[-1], np.int32)

    def fill(word_range: tuple[int, int]) -> None:
        partners_of_words(*word_range, *corpus, weakest, starts, words, strengths)

    for _ in in_threads(fill, ranges, threads):
        pass
    return Lexicon(starts, words)
