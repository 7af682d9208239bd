"""One alignment direction: every generated word is linked to one given word or to NULL.

Each iteration of EM collects expected counts in a pass over the corpus, then estimates parameters. Counts are collected
over blocks of sentences, which are the same for any number of threads. Expected counts are sums of integers
(``base.kernels.numbers``), and sums of fractions are added in the order of the blocks, so parameters are bit-identical
for any number of threads.
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
"""Parameters of an aligner after some iterations, and the links, in ``best``: arrays by name."""

Counts = npt.NDArray[np.int64]
"""Expected counts, in fixed point."""

CELLS = 50_000_000
"""Maximum number of word pairs of a corpus whose lexicon indices are kept in memory (4 bytes each).

In a larger corpus, every pass looks them up in bitmaps of the most frequent given words, which have the same maximum
size. A binary search takes ten times as long as that; with it, a third of the time of Model 4 would be look-ups.
"""

_LEAST_BLOCK = 500
"""Minimum number of sentences of a block."""

_MOST_BLOCKS = 256
"""Maximum number of blocks. A block allocates tables of the size of the vocabulary; blocks of a large corpus must be
large compared with them."""


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
        corpus: text and lexicon, for the kernels.
        pairs: number of word pairs in the lexicon. Index ``pairs`` represents all other pairs.
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
        """Call ``work`` for every block with its first sentence, its end, and the number of word pairs before it.

        Returns:
            The sum of the return values of ``work``; None counts as 0.
        """
        values = in_threads(lambda block: work(*block), self._blocks, self._threads)
        return float(sum(value or 0.0 for value in values))

    def uniform(self, probability: float) -> Parameters:
        """Return uniform lexical probabilities, and no links.

        ``t`` [pairs + 1], float32: p(f | e); the last element is the value of pairs that are not in the lexicon.
        ``t_null`` [generated vocabulary], float64: p(f | NULL). ``best`` [generated words], int16: given positions, -1
        for NULL.
        """
        return {
            "t": np.full(self.pairs + 1, probability, np.float32),
            "t_null": np.full(len(self.generated.vocabulary), probability),
            "best": np.full(len(self.generated.ids), -1, np.int16),
        }

    def lexical_counts(self) -> tuple[Counts, Counts]:
        """Return zero counts of ``t`` [pairs] and ``t_null``; pairs that are not in the lexicon are not counted."""
        return np.zeros(self.pairs, np.int64), np.zeros(len(self.generated.vocabulary), np.int64)

    def estimate(
        self, parameters: Parameters, t: Counts, t_null: Counts, estimator: Callable[..., None], *settings: float
    ) -> None:
        """Set ``t`` and ``t_null`` of the parameters from their counts with ``relative_frequencies`` or ``normalise``.

        Args:
            settings: further arguments of the estimator, between the counts and the output.
        """
        estimator(self.corpus.starts, t, *settings, parameters["t"])
        # p(f | NULL) is a single row over the generated vocabulary
        estimator(np.array([0, len(t_null)]), t_null, *settings, parameters["t_null"])


class Aligner(NamedTuple):
    """An aligner, ``ALIGNER`` of its module; ``rnnsmt.registries.ALIGNERS`` lists the aligners.

    ``begin(direction)`` returns the initial parameters, with ``best`` [generated words], int16. ``iterate(direction,
    parameters, done)`` runs the iterations that follow the first ``done``, updates the parameters in place and yields
    after each iteration; the last one sets the links, in ``best``: the given position of every generated word, -1 for
    NULL. The parameters are all that is kept when a job is interrupted between two iterations.
    """

    begin: Callable[[Direction], Parameters]
    iterate: Callable[[Direction, Parameters, int], Iterator[None]]
    iterations: int  # their number
