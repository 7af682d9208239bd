"""One direction of an alignment: every generated word takes a given word or none.

A pass over the corpus counts, then estimates. It counts block by block of the sentences, in blocks that are the same
for any number of threads and of parts of the corpus. Expected counts are sums of integers
(``rnnsmt.kernels.fixed_point``), and what is a sum of fractions is kept by block, so that neither threads nor parts
change a bit of what is learnt.
"""

from collections.abc import Callable
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rnnsmt.align.bitext import BitextSide, Ids, Offsets
from rnnsmt.align.kernels.lexicon import corpus_cells
from rnnsmt.align.lexicon import MAX_PAIRS, Lexicon, build_lexicon
from rnnsmt.align.pharaoh import MAX_POSITION
from rnnsmt.parallel import in_threads

Parameters = dict[str, npt.NDArray[Any]]
"""All that an aligner has learnt so far: arrays by name."""

Counts = dict[str, npt.NDArray[Any]]
"""What a pass has found in some sentences, by name.

``t`` [pairs], ``t_null`` and others: expected counts of parameters, in fixed point; none in the pass that is the last.
``sums`` [blocks]: one over the sentences of every block. ``best`` [generated words]: links, where the pass sets them.
"""

Text = tuple[Ids, Offsets, Ids, Offsets]
"""Ids and offsets, as of a ``BitextSide``, of the given and of the generated side."""

CELLS = 50_000_000
"""Word pairs of the corpus, from its beginning, of which memory (4 bytes each) says where the lexicon keeps them.

Without it every pass would look them up again: a third of the time that Model 4 takes.
"""

_LEAST_BLOCK = 500
"""Sentences of a block in a small corpus."""

_MOST_BLOCKS = 256
"""In a large one a block has tables of its own, as large as the vocabulary, which are then small beside its text."""


class Statistics(NamedTuple):
    """What the estimates need to know of the corpus."""

    starts: npt.NDArray[np.int64]  # [given vocabulary + 1], the rows of the lexicon
    letters: npt.NDArray[np.int64]  # [given vocabulary], the length of every word
    lengths: npt.NDArray[np.int64]  # [n, 2], distinct lengths of a generated and its given sentence, ascending
    length_counts: npt.NDArray[np.int64]  # [n], how often they occur

    def estimate(
        self, parameters: Parameters, counts: Counts, estimator: Callable[..., None], *settings: float
    ) -> None:
        """Set ``t`` and ``t_null`` by ``relative_frequencies`` or ``normalise`` from their counts."""
        estimator(self.starts, counts["t"], *settings, parameters["t"])
        all_generated = np.array([0, len(parameters["t_null"])])
        estimator(all_generated, counts["t_null"], *settings, parameters["t_null"])


class Sentences:
    """The sentence pairs that a job goes over: those of a corpus or of a part of it.

    Attributes:
        pairs: the word pairs of the lexicon. Index ``pairs`` stands for all others.
        bounds: the first sentence of every block, and the one behind the last.
    """

    def __init__(self, lexicon: Lexicon, text: Text, bounds: npt.NDArray[np.int64], threads: int, room: int) -> None:
        """room: as ``CELLS``; 0 where there is but one pass."""
        self.lexicon, self.text, self.bounds, self.threads = lexicon, text, bounds, threads
        self.pairs = len(lexicon.words)
        pairs_of_sentences = np.diff(text[1]) * np.diff(text[3])
        self._before = np.concatenate([np.zeros(1, np.int64), np.cumsum(pairs_of_sentences)])
        self._room = min(int(self._before[-1]), room if self.pairs < 2**31 - 1 else 0)

    @cached_property
    def corpus(self) -> tuple[npt.NDArray[Any], ...]:
        """What every kernel takes: the lexicon, where the pairs of the text lie in it, both sides."""
        cells = np.empty(self._room, np.int32)
        if self._room:
            self.over_blocks(lambda *block: corpus_cells(*block, *self.lexicon, *self.text, cells))
        return (*self.lexicon, cells, *self.text)

    def over_blocks(self, work: Callable[[int, int, int], float | None]) -> npt.NDArray[np.float64]:
        """Call ``work`` for every block, with its first sentence, that behind it, and the word pairs before it.

        Returns:
            What it returns, [blocks].
        """
        blocks = [(first, behind, int(self._before[first])) for first, behind in pairwise(self.bounds.tolist())]
        return np.array([value or 0.0 for value in in_threads(lambda block: work(*block), blocks, self.threads)])


class Direction(Sentences):
    """A bitext as one direction of an aligner sees it."""

    def __init__(self, given: BitextSide, generated: BitextSide, threads: int = 1, max_pairs: int = MAX_PAIRS) -> None:
        self.given, self.generated = given, generated
        sentences = len(given.offsets) - 1
        size = max(_LEAST_BLOCK, -(-sentences // _MOST_BLOCKS))
        text = (given.ids, given.offsets, generated.ids, generated.offsets)
        bounds = np.array([*range(0, sentences, size), sentences])
        super().__init__(build_lexicon(given, generated, threads, max_pairs), text, bounds, threads, CELLS)

    def statistics(self) -> Statistics:
        """Of the whole corpus."""
        letters = np.array([len(word) for word in self.given.vocabulary])
        sizes = self.generated.lengths * (MAX_POSITION + 1) + self.given.lengths
        distinct, times = np.unique(sizes, return_counts=True)
        lengths = np.stack(np.divmod(distinct, MAX_POSITION + 1), 1)
        return Statistics(self.lexicon.starts, letters, lengths, times)

    def uniform(self, probability: float) -> Parameters:
        """The lexical probabilities before the first pass: t [pairs + 1] = p(f | e), t_null = p(f | NULL); no links."""
        return {
            "t": np.full(self.pairs + 1, probability, np.float32),
            "t_null": np.full(len(self.generated.vocabulary), probability),
            "best": np.full(len(self.generated.ids), -1, np.int16),
        }


def no_counts(parameters: Parameters, *names: str) -> Counts:
    """Zeros for the counts of these parameters; pairs that the lexicon does not have are not counted."""
    counts = {name: np.zeros(parameters[name].shape, np.int64) for name in names}
    return {name: array[:-1] if name == "t" else array for name, array in counts.items()}
