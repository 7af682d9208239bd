"""A direction of word alignment: every generated word is linked to one given word or to NULL.

An alignment model defines the probability of the generated sentence, conditional on the given sentence. In the
direction ``forward``, source words are given and target words are generated; in the direction ``reverse``, target words
are given and source words are generated. In formulas, e is a given word and f is a generated word.

Each iteration of EM collects expected counts in a pass over the corpus, then estimates parameters. Counts are collected
over blocks of sentences, which are the same for any number of threads. Expected counts are sums of integers
(``base.kernels.numbers``), and floating-point values are added in the order of the blocks. Therefore, parameters are
bit-identical for any number of threads.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rnnsmt.align import MAX_PAIRS
from rnnsmt.align.bitext import BitextSide, Ids, Offsets
from rnnsmt.align.lexicon import Places, build_bitmaps, build_lexicon, corpus_cells, places_of_cells
from rnnsmt.base.parallel import in_threads

Parameters = dict[str, npt.NDArray[Any]]
"""Parameters of an aligner after some iterations, and the links (``best``), as arrays by name."""

Counts = npt.NDArray[np.int64]
"""Expected counts, in fixed point."""

CELLS = 50_000_000
"""Maximum number of word pairs in the sentence pairs of a corpus for which all lexicon indices are kept in memory.

Each index takes 4 bytes. For a larger corpus, every pass looks the indices up in bitmaps of the most frequent given
words, which have the same maximum size in bytes. A binary search would take ten times as long as a look-up in a bitmap,
and a third of the time of Model 4.
"""

_LEAST_BLOCK = 500
"""Minimum number of sentences of a block."""

_MOST_BLOCKS = 256
"""Maximum number of blocks. A block allocates tables of the size of the vocabulary; in a large corpus, the limit makes
blocks large compared with these tables."""


class NumberedCorpus(NamedTuple):
    """Text and lexicon, the common input of the kernels of all aligners."""

    starts: npt.NDArray[np.int64]  # [given vocabulary + 1], the rows of the lexicon
    words: npt.NDArray[np.int32]  # [pairs], the generated words of every row, ascending
    places: Places
    given_ids: Ids  # both sides of the text as in ``BitextSide``
    given_offsets: Offsets
    generated_ids: Ids
    generated_offsets: Offsets


class Direction:
    """A bitext in one alignment direction.

    Attributes:
        given, generated: the sides of the bitext.
        corpus: text and lexicon, for the kernels.
        pairs: number of word pairs in the lexicon; as an index, ``pairs`` represents all other word pairs.
    """

    def __init__(self, given: BitextSide, generated: BitextSide, threads: int = 1, max_pairs: int = MAX_PAIRS) -> None:
        """Build the lexicon, define the blocks, and prepare the look-up of lexicon indices.

        Args:
            max_pairs: as in ``build_lexicon``.
        """
        self.given, self.generated, self._threads = given, generated, threads
        lexicon = build_lexicon(given, generated, threads, max_pairs)
        self.pairs = len(lexicon.words)
        sentences = len(given.offsets) - 1
        size = max(_LEAST_BLOCK, -(-sentences // _MOST_BLOCKS))
        # [sentences + 1], number of word pairs before each sentence
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(given.lengths * generated.lengths)])
        bounds = pairwise([*range(0, sentences, size), sentences])
        self._blocks = [(first, end, int(before[first])) for first, end in bounds]
        text = (given.ids, given.offsets, generated.ids, generated.offsets)
        # cells are int32, and ``pairs`` itself must fit
        if int(before[-1]) <= CELLS and self.pairs < 2**31 - 1:
            cells = np.empty(int(before[-1]), np.int32)
            places = places_of_cells(cells, given)
            self.over_blocks(lambda *block: corpus_cells(*block, *lexicon, *text, cells))
        else:
            places = build_bitmaps(lexicon, given, generated, 4 * CELLS)
        self.corpus = NumberedCorpus(*lexicon, places, *text)

    def over_blocks(self, work: Callable[[int, int, int], float | None]) -> float:
        """Call ``work(first, end, at)`` for every block of sentences ``first`` <= s < ``end``, in threads.

        ``at`` is the number of word pairs in all sentence pairs before the block.

        Returns:
            The sum of the return values of ``work``; None counts as 0.
        """
        values = in_threads(lambda block: work(*block), self._blocks, self._threads)
        return float(sum(value or 0.0 for value in values))

    def uniform(self, probability: float) -> Parameters:
        """Return parameters in which all lexical probabilities are ``probability`` and all words are linked to NULL.

        Returns:
            t: p(f | e), float32 [pairs + 1]; the last element is used for pairs that are not in the lexicon.
            t_null: p(f | NULL), float64 [generated vocabulary].
            best: given position of every generated word, -1 for NULL, int16 [generated words].
        """
        return {
            "t": np.full(self.pairs + 1, probability, np.float32),
            "t_null": np.full(len(self.generated.vocabulary), probability),
            "best": np.full(len(self.generated.ids), -1, np.int16),
        }

    def lexical_counts(self) -> tuple[Counts, Counts]:
        """Return arrays of zeros for the counts of ``t`` [pairs] and ``t_null`` [generated vocabulary]."""
        return np.zeros(self.pairs, np.int64), np.zeros(len(self.generated.vocabulary), np.int64)

    def estimate(
        self, parameters: Parameters, t: Counts, t_null: Counts, estimator: Callable[..., None], *settings: float
    ) -> None:
        """Estimate ``t`` and ``t_null`` of the parameters from counts.

        Args:
            parameters: the parameters, updated.
            t, t_null: expected counts.
            estimator: ``relative_frequencies`` or ``normalise``.
            settings: further arguments of the estimator, between the counts and the output.
        """
        estimator(self.corpus.starts, t, *settings, parameters["t"])
        # p(f | NULL) is a single row over the generated vocabulary
        estimator(np.array([0, len(t_null)]), t_null, *settings, parameters["t_null"])


class Aligner(NamedTuple):
    """An aligner: the constant ``ALIGNER`` of a module; ``rnnsmt.registries.ALIGNERS`` lists the aligners.

    ``begin(direction)`` returns the initial parameters, including ``best``, int16 [generated words].
    ``iterate(direction, parameters, done)`` runs the iterations after the first ``done`` iterations, updates the
    parameters in place and yields after each iteration. The last iteration sets the links: ``best`` is the given
    position of every generated word, -1 for NULL. A checkpoint consists of the parameters after an iteration.
    """

    begin: Callable[[Direction], Parameters]
    iterate: Callable[[Direction, Parameters, int], Iterator[None]]
    iterations: int  # number of iterations
