"""One alignment direction: every generated word is linked to one given word or to NULL.

Each pass over the corpus collects counts, then estimates parameters. Counts are collected over blocks of sentences,
which are the same for any number of threads. Expected counts are sums of integers (``base.kernels.numbers``), and sums
of fractions are stored per block, so parameters are bit-identical for any number of threads.
"""

from collections.abc import Callable
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rnnsmt.align import MAX_PAIRS
from rnnsmt.align.bitext import BitextSide, Ids, Offsets
from rnnsmt.align.lexicon import build_lexicon, corpus_cells
from rnnsmt.align.pharaoh import MAX_POSITION
from rnnsmt.base.parallel import in_threads

Parameters = dict[str, npt.NDArray[Any]]
"""Parameters of an aligner after some passes: arrays by name."""

Counts = dict[str, npt.NDArray[Any]]
"""Results of a pass, by name.

``t`` [pairs], ``t_null`` and others: expected counts of parameters, in fixed point; absent in the last pass.
``sums`` [blocks]: a sum over the sentences of every block. A pass that sets links writes them to ``best`` of the
parameters.
"""

CELLS = 50_000_000
"""Number of word pairs of the corpus, from its beginning, whose lexicon indices are cached in memory (4 bytes each).

Without the cache, every pass would look them up again, which takes a third of the time of Model 4.
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
    cells: npt.NDArray[np.int32]  # cached lexicon indices of the first word pairs of the text, see ``look_up``
    given_ids: Ids  # both sides of the text as in ``BitextSide``
    given_offsets: Offsets
    generated_ids: Ids
    generated_offsets: Offsets


class Statistics(NamedTuple):
    """Corpus statistics for the estimation steps."""

    starts: npt.NDArray[np.int64]  # [given vocabulary + 1], the rows of the lexicon
    letters: npt.NDArray[np.int64]  # [given vocabulary], the length of every word
    lengths: npt.NDArray[np.int64]  # [n, 2], distinct lengths of a generated and its given sentence, ascending
    length_counts: npt.NDArray[np.int64]  # [n], number of sentence pairs of these lengths

    def estimate(
        self, parameters: Parameters, counts: Counts, estimator: Callable[..., None], *settings: float
    ) -> None:
        """Set ``t`` and ``t_null`` from their counts with ``relative_frequencies`` or ``normalise``.

        Args:
            parameters: updated in place.
            counts: counts with ``t`` and ``t_null``, in fixed point.
            settings: further arguments of the estimator, between the counts and the output.
        """
        estimator(self.starts, counts["t"], *settings, parameters["t"])
        # p(f | NULL) is a single row over the generated vocabulary
        all_generated = np.array([0, len(parameters["t_null"])])
        estimator(all_generated, counts["t_null"], *settings, parameters["t_null"])


class Direction:
    """A bitext in one alignment direction.

    Attributes:
        pairs: number of word pairs in the lexicon. Index ``pairs`` represents all other pairs.
    """

    def __init__(self, given: BitextSide, generated: BitextSide, threads: int = 1, max_pairs: int = MAX_PAIRS) -> None:
        """Build the lexicon and define the blocks.

        Args:
            max_pairs: as in ``build_lexicon``.
        """
        self.given, self.generated, self.threads = given, generated, threads
        self.lexicon = build_lexicon(given, generated, threads, max_pairs)
        self.pairs = len(self.lexicon.words)
        self._text = (given.ids, given.offsets, generated.ids, generated.offsets)
        sentences = len(given.offsets) - 1
        size = max(_LEAST_BLOCK, -(-sentences // _MOST_BLOCKS))
        # the first sentence of every block, and the end of the last block
        self._bounds = [*range(0, sentences, size), sentences]
        # [sentences + 1], number of word pairs before each sentence
        self._before = np.concatenate([np.zeros(1, np.int64), np.cumsum(given.lengths * generated.lengths)])
        # cells are int32, and ``pairs`` itself must fit
        self._cells = min(int(self._before[-1]), CELLS if self.pairs < 2**31 - 1 else 0)

    @cached_property
    def corpus(self) -> NumberedCorpus:
        """Return the lexicon, the cached lexicon indices, and both sides of the text."""
        cells = np.empty(self._cells, np.int32)
        if self._cells:
            self.over_blocks(lambda *block: corpus_cells(*block, *self.lexicon, *self._text, cells))
        return NumberedCorpus(*self.lexicon, cells, *self._text)

    def over_blocks(self, work: Callable[[int, int, int], float | None]) -> npt.NDArray[np.float64]:
        """Call ``work`` for every block with its first sentence, its end, and the number of word pairs before it.

        Returns:
            The return values of ``work``, float64 [blocks]; 0 for None.
        """
        blocks = [(first, end, int(self._before[first])) for first, end in pairwise(self._bounds)]
        return np.array([value or 0.0 for value in in_threads(lambda block: work(*block), blocks, self.threads)])

    def statistics(self) -> Statistics:
        """Return the statistics of the whole corpus."""
        letters = np.array([len(word) for word in self.given.vocabulary])
        # both lengths in one integer, so np.unique counts distinct pairs
        sizes = self.generated.lengths * (MAX_POSITION + 1) + self.given.lengths
        distinct, times = np.unique(sizes, return_counts=True)
        lengths = np.stack(np.divmod(distinct, MAX_POSITION + 1), 1)
        return Statistics(self.lexicon.starts, letters, lengths, times)

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


def no_counts(parameters: Parameters, *names: str) -> Counts:
    """Return zero counts, int64, for the parameters of these names.

    The counts of ``t`` have one element less than ``t``: pairs that the lexicon does not contain are not counted.
    """
    counts = {name: np.zeros(parameters[name].shape, np.int64) for name in names}
    return {name: array[:-1] if name == "t" else array for name, array in counts.items()}
