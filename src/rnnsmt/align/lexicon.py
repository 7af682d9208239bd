"""The word pairs that occur together in at least one sentence pair, as compressed sparse rows.

The aligners store one parameter per pair, so that memory grows with the number of distinct pairs, and not with the
product of the vocabulary sizes or with the number of sentence positions.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rnnsmt.align.bitext import BitextSide
from rnnsmt.align.kernels.lexicon import WEAKEST, partners_of_words, sentence_frequencies, sentences_of_words
from rnnsmt.base.parallel import in_threads
from rnnsmt.base.progress import say

MAX_PAIRS = 500_000_000
"""Maximum number of pairs; each takes 16 bytes in a pass over the corpus."""

_RANGES = 64
"""Number of ranges of the given vocabulary, with about equal numbers of occurrences, that are distributed over threads.
"""


class Lexicon(NamedTuple):
    """Word pairs as compressed sparse rows.

    Row ``e`` is ``words[starts[e]:starts[e + 1]]``: the generated words seen with the given word ``e``, ascending.
    """

    starts: npt.NDArray[np.int64]  # [given vocabulary + 1]
    words: npt.NDArray[np.int32]  # [pairs]


def build_lexicon(given: BitextSide, generated: BitextSide, threads: int = 1, max_pairs: int = MAX_PAIRS) -> Lexicon:
    """Collect the pairs of a given and a generated word that share a sentence pair, in time linear in the sum of I x J.

    If there are more than ``max_pairs``, the least associated pairs are discarded: with n the number of sentences that
    contain a word or a pair, those with the smallest n(e, f)^2 / (n(e) n(f)). Pairs of about the same value (one
    ``weakness``) are kept or discarded together.
    """
    # sentences of each given word, again as compressed sparse rows, one entry per occurrence
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
        """Set ``sizes[e + 1]`` to the number of partners of e; return the number of pairs of each ``weakness``."""
        nothing = np.zeros(0, np.int32)

        def part(word_range: tuple[int, int]) -> npt.NDArray[np.int64]:
            """Count the partners of a range of given words."""
            strengths = np.zeros(WEAKEST + 1, np.int64)
            partners_of_words(*word_range, *corpus, weakest, sizes, nothing, strengths)
            return strengths

        return sum(in_threads(part, ranges, threads), np.zeros(WEAKEST + 1, np.int64))

    strengths, weakest = count(WEAKEST), WEAKEST
    if strengths.sum() > max_pairs:
        # the last step of ``weakness`` up to which all pairs together fit
        weakest = int(np.searchsorted(np.cumsum(strengths), max_pairs, side="right")) - 1
        count(weakest)
        say(f"{strengths.sum():,} word pairs co-occur; the {sizes.sum():,} with the highest association are kept")
    starts = np.cumsum(sizes)
    words = np.empty(starts[-1], np.int32)

    def fill(word_range: tuple[int, int]) -> None:
        """Write the partners of a range of given words."""
        partners_of_words(*word_range, *corpus, weakest, starts, words, strengths)

    for _ in in_threads(fill, ranges, threads):
        pass
    return Lexicon(starts, words)
