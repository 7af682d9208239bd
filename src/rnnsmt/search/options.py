"""Limits of the search and of its memory, and their command-line options."""

import math
from dataclasses import dataclass
from typing import Annotated, Any

from rnnsmt.base.fields import Field, described
from rnnsmt.config.sections import PopLimit, Search, StackSize
from rnnsmt.formats.ini import POP_LIMIT, STACK, MosesIni

MAX_WINDOW = 62
"""Largest distortion limit that the 64-bit mask of a coverage allows; it replaces larger limits and "no limit"."""

MAX_ENTRIES = 7 << 22
"""Number of n-grams in the store (score cache) of a neural feature above which no further sentences are started until
the store has been emptied: 7/8 of 2^25. The n-grams that the sentences in progress still add fit into the last eighth,
so the store, whose size is a power of two, is not doubled again."""

CELLS_TOGETHER = 12_800
"""Maximum number of cells per stack, summed over all sentences that are decoded together (but see
``LEAST_TOGETHER``)."""

LEAST_TOGETHER = 32
"""Number of sentences that are decoded together even if they have more cells than ``CELLS_TOGETHER``, so that all
threads have work."""

ENTRY_BYTES = 60
"""Size in bytes of a store per n-gram of its capacity, which is a power of two."""

MOST_NEURAL_MEGABYTES = 1500 + 1.5 * (1 << MAX_ENTRIES.bit_length()) * ENTRY_BYTES / 1e6
"""Peak memory of a search for a CSLM, in MB: PyTorch, the precomputed first layer of the network, and the store while
it is copied from half of the maximum capacity to the maximum. The workflow requests this memory from the scheduler."""


@dataclass(frozen=True)
class SearchOptions:
    """Limits of the search.

    With tuned weights of Moses, scores are about a tenth of log-probabilities. Limits that are probabilities or numbers
    of nats are therefore scaled by ``score_scale``: a search does not change if all weights are multiplied by the same
    number.

    Attributes:
        pop_limit: maximum number of cells (pairs of hypothesis and translation option) scored for one stack.
        stack_size: maximum number of hypotheses kept in a stack (histogram pruning).
        beam_threshold: hypotheses worse than this factor times the best of the stack are discarded. None: 1e-5, Moses'
            default, or 1e-7 for n-best lists, whose lower entries would otherwise be missing.
        threads: number of sentences decoded in parallel.
        nbest: number of distinct translations per sentence to extract; 0 for none.
        margin: cells whose estimate is more than this number of nats below the best estimate of the stack are not
            scored.
        cslm_cells: maximum number of cells of a stack scored by neural features; the other cells are discarded. Half of
            the scored cells are the best cells by all other scores. The other half are selected from the best cells of
            each group that the search without neural features would recombine.
        in_flight: maximum number of sentences of up to 40 words decoded together if there are neural features; a longer
            sentence counts as several sentences.
    """

    pop_limit: int = Search.pop_limit
    stack_size: int = Search.stack
    beam_threshold: float | None = None
    threads: int = 1
    nbest: int = 0
    margin: float = 20.0
    cslm_cells: int = Search.cslm_cells
    in_flight: int = 128

    @property
    def together(self) -> int:
        """Return the number of sentences of up to 40 words to decode together: less than ``in_flight`` with many cells.

        With more sentences, the n-grams that they add to the store of a network might not fit into its last eighth
        (``MAX_ENTRIES``).
        """
        return max(min(self.in_flight, max(CELLS_TOGETHER // self.cslm_cells, LEAST_TOGETHER)), 1)

    def log_beam(self) -> float:
        """Return the natural logarithm of the beam threshold."""
        if self.beam_threshold is None:
            return math.log(1e-7 if self.nbest else 1e-5)
        return math.log(self.beam_threshold) if self.beam_threshold > 0 else -math.inf


def _or_of_ini(kind: Any, key: str, default: int) -> Field:
    """Return the field of a limit that moses.ini may set."""
    return Field(f"{described(kind)[1].description} (default: the value of [{key}] in moses.ini, else {default})")


PopLimitOrIni = Annotated[PopLimit | None, _or_of_ini(PopLimit, POP_LIMIT, Search.pop_limit)]

StackOrIni = Annotated[StackSize | None, _or_of_ini(StackSize, STACK, Search.stack)]


def options_for(
    ini: MosesIni, pop_limit: int | None, stack: int | None, cslm_cells: int, nbest: int, threads: int
) -> SearchOptions:
    """Return the options of a search; if ``pop_limit`` or ``stack`` is None, the ini determines it."""
    return SearchOptions(
        pop_limit=pop_limit or ini.number(POP_LIMIT) or SearchOptions.pop_limit,
        stack_size=stack or ini.number(STACK) or SearchOptions.stack_size,
        threads=threads,
        nbest=nbest,
        cslm_cells=cslm_cells,
    )
