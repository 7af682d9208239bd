"""One direction of an alignment: every generated word takes a given word or none.

A pass over the corpus goes over fixed blocks of sentences, which threads share. Expected counts are sums of integers
(``rnnsmt.kernels.fixed_point``), so that neither the number of threads nor their order changes a bit of what is learnt.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from rnnsmt.align.bitext import BitextSide
from rnnsmt.align.kernels.lexicon import corpus_cells
from rnnsmt.align.lexicon import MAX_PAIRS, build_lexicon
from rnnsmt.parallel import in_threads

Parameters = dict[str, npt.NDArray[Any]]
"""All that an aligner has learnt so far: arrays by name."""

CELLS = 50_000_000
"""Word pairs of the corpus, from its beginning, of which memory (4 bytes each) says where the lexicon keeps them.

Without it every pass would look them up again: a third of the time that Model 4 takes.
"""

_LEAST_BLOCK = 500
"""Sentences of a block in a small corpus."""

_MOST_BLOCKS = 256
"""In a large one a block has tables of its own, as large as the vocabulary, which are then small beside its text."""


class Direction:
    """A bitext as one direction of an aligner sees it.

    Attributes:
        lexicon: the pairs of words that have parameters; ``pairs`` of them. Index ``pairs`` stands for all others.
        corpus: what every kernel takes: the lexicon, where the pairs of the corpus lie in it, both sides.
    """

    def __init__(self, given: BitextSide, generated: BitextSide, threads: int = 1, max_pairs: int = MAX_PAIRS) -> None:
        self.given, self.generated, self.threads = given, generated, threads
        self.lexicon = build_lexicon(given, generated, threads, max_pairs)
        self.pairs = len(self.lexicon.words)
        sentences = len(given.offsets) - 1
        size = max(_LEAST_BLOCK, -(-sentences // _MOST_BLOCKS))
        bounds = [*range(0, sentences, size), sentences]
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(given.lengths * generated.lengths)])
        self._blocks = [(first, behind, int(before[first])) for first, behind in pairwise(bounds)]
        self._all_generated = np.array([0, len(generated.vocabulary)])
        cells = np.empty(min(int(before[-1]), CELLS if self.pairs < 2**31 - 1 else 0), np.int32)
        text = (given.ids, given.offsets, generated.ids, generated.offsets)
        self.over_blocks(lambda *block: corpus_cells(*block, *self.lexicon, *text, cells))
        self.corpus = (*self.lexicon, cells, *text)

    def over_blocks(self, work: Callable[[int, int, int], float | None]) -> float:
        """Call ``work`` for every block, with its first sentence, that behind it, and the word pairs before it.

        Returns:
            The sum of what it returns, in the order of the corpus.
        """
        return sum((value or 0.0 for value in in_threads(lambda block: work(*block), self._blocks, self.threads)), 0.0)

    def uniform(self, probability: float) -> Parameters:
        """The lexical probabilities before the first pass: t [pairs + 1] = p(f | e), t_null = p(f | NULL); no links."""
        return {
            "t": np.full(self.pairs + 1, probability, np.float32),
            "t_null": np.full(len(self.generated.vocabulary), probability),
            "best": np.full(len(self.generated.ids), -1, np.int16),
        }

    def lexical_counts(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Zeros for the counts of ``t`` and ``t_null``."""
        return np.zeros(self.pairs, np.int64), np.zeros(len(self.generated.vocabulary), np.int64)

    def estimate(
        self,
        parameters: Parameters,
        counts: npt.NDArray[np.int64],
        null_counts: npt.NDArray[np.int64],
        estimator: Callable[..., None],
        *settings: float,
    ) -> None:
        """Set ``t`` and ``t_null`` by ``relative_frequencies`` or ``normalise`` from their counts."""
        estimator(self.lexicon.starts, counts, *settings, parameters["t"])
        estimator(self._all_generated, null_counts, *settings, parameters["t_null"])
