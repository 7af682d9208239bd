"""The arrays of the search: what all sentences share, and the state of one sentence between two stacks.

Hypotheses of one stack that have the same coverage, the same end of the last source phrase and the same answer to
"which phrase would be a swap" lie together, best first: a *group*; with a hierarchical reordering model (Galley and
Manning 2008) also the same blocks. A coverage is the position of the first gap and a
64-bit window of what is covered behind it, so that sentences of any length work.
"""

from typing import NamedTuple

import numpy as np

from rnnsmt.lm.kernels.automaton import LmArrays

MAX_WINDOW = 62
"""Largest distortion limit that the 64-bit window allows; a larger or no limit means this one."""

CACHE_SLOTS = 1 << 14


class RankedOptions(NamedTuple):
    """Options under one set of weights, best first; those of source phrase s are first[s]..first[s + 1].

    Attributes:
        first: ``int64`` [sources + 1].
        row: ``int32`` [options], row of the phrase pair in the model.
        target: ``int32`` [options], target phrase.
        estimate: ``float64`` [options], weighted scores of the pair and LM score of the phrase alone (future score).
        known: ``float64`` [options, 4], weighted scores of the pair and backward reordering score when its phrase is
            monotone, swapped or discontinuous.
        guess: ``float64`` [options, 4], ``known`` plus the LM score of the phrase alone.
        reach: ``float64`` [options, 4], the best guess of this and all following options of the source phrase.
        forward: ``float64`` [options, 4], weighted forward reordering scores, by the turn of the following phrase.
        forward_class: ``int32`` [options], equal where the forward scores are equal.
        target_bounds: ``int64`` [targets + 1] into the next three.
        target_words: ``int32`` [LMs, words], LM word ids.
        alone_state: ``int32`` [LMs, words], LM state after each word when the phrase stands alone.
        alone_rest: ``float64`` [LMs, words], LM score of the words after this one when the phrase stands alone.
    """

    first: np.ndarray
    row: np.ndarray
    target: np.ndarray
    estimate: np.ndarray
    known: np.ndarray
    guess: np.ndarray
    reach: np.ndarray
    forward: np.ndarray
    forward_class: np.ndarray
    target_bounds: np.ndarray
    target_words: np.ndarray
    alone_state: np.ndarray
    alone_rest: np.ndarray


class LanguageModels(NamedTuple):
    """The n-gram LMs of a search.

    Attributes:
        arrays: one ``LmArrays`` each.
        starts, ends: ``int32`` [LMs], the states after ``<s>`` and the ids of ``</s>``.
        weights: ``float64`` [LMs].
    """

    arrays: tuple[LmArrays, ...]
    starts: np.ndarray
    ends: np.ndarray
    weights: np.ndarray


class SearchConstants(NamedTuple):
    """Numbers that all sentences of a search share: weights and limits.

    lm_weight: of the LM; of several, the sum of their weights without signs.
    """

    lm_weight: float
    distortion_weight: float
    distortion_limit: int
    pop_limit: int
    stack_size: int
    beam: float
    margin: float
    forward_bound: float
    hierarchical: int
    keep_arcs: int
    neural_weight: float
    neural_cells: int


def _record(*fields: str) -> np.dtype:
    """A record of fields ``name:type`` (f8, i4 ...)."""
    return np.dtype([tuple(field.split(":")) for field in fields], align=True)


HYPOTHESIS = _record("score:f8", "state:i4", "back:i4", "option:i4", "start:i4", "end:i4", "arc:i4", "context:i4")
"""Score so far, LM state, hypothesis before (-1), option and source span of its phrase, first recombined arc (-1), and
the number of its last words in the neural LM's store (0 without one)."""

ARC = _record("score:f8", "back:i4", "option:i4", "start:i4", "end:i4", "next:i4")
"""A hypothesis that was recombined into another; ``next`` is the next arc of the same or -1."""

GROUP = _record("end:i4", "swap:i4", "first:i4", "count:i4", "next:i4", "block_start:i4", "block_end:i4", "below:i4")
"""Hypotheses first..first + count - 1; end of their last phrase; ``swap``: end + 1 of a phrase that would be a swap.

Of a hierarchical model also the last block, translated as a whole like one phrase: its first and last source word, and
the group that has the block ``below`` it on the stack as its last one, -1 where there is none."""

COVERAGE = _record("mask:u8", "gap:i4", "group:i4")
"""First open source word, what is covered from there on as bits, first group."""

STACK = _record("hypothesis:i8", "coverage:i8")
"""Where a stack's hypotheses and coverages begin."""

TARGET_COVERAGE = _record("mask:u8", "future:f8", "gap:i4", "group:i4")
"""A coverage of the stack that is being filled, with its future cost."""

TARGET_GROUP = _record(
    "coverage:i4",
    "end:i4",
    "swap:i4",
    "count:i4",
    "next:i4",
    "first:i4",
    "block_start:i4",
    "block_end:i4",
    "below:i4",
)

EDGE = _record(
    "base:f8",
    "estimate:f8",
    "group:i4",
    "coverage:i4",
    "start:i4",
    "length:i4",
    "first:i4",
    "last:i4",
    "backward:i4",
    "forward:i4",
    "target:i4",
)
"""A group of hypotheses and the options of a source span; ``base``: distortion and future cost of all its cells;
backward, forward: the orientation of the options to what is before them, and of what is before to what follows."""

CELL = _record("total:f8", "edge:i4", "hypothesis:i4", "option:i4", "request:i4")
"""A hypothesis extended by an option; ``total``: score plus future cost, the LMs' parts once they are known."""

PHRASE_REQUEST = _record("total:f8", "context:i4", "target:i4", "first:i4", "end_context:i4")
"""A target phrase to be scored by the neural LM: its entries of the store begin at ``first``; the context behind it."""

REQUEST = _record("total:f4", "state:i4", "position:i4", "end:i4", "slot:i4", "target:i4", "from_state:i4", "hit:i4")
"""A target phrase to be scored from an LM state: the sum so far, the state, the next word's place, the last + 1."""

NEW = _record("total:f8", "state:i4", "back:i4", "option:i4", "edge:i4", "group:i4", "arc:i4", "context:i4")
"""A hypothesis of the stack that is being filled; ``total``: score plus future cost."""

SLOT = _record("stamp:i4", "item:i4")
"""A slot of a hash table that is valid for the stack with number ``stamp`` only."""

CACHED = _record("key:i8", "prob:f4", "state:i4", "request:i4", "stamp:i4")
"""LM score of (state, target phrase); while its stack is being filled (``stamp``), the number of its request."""

BINS = 512
"""Resolution of the choice of the cells that are scored."""


class Work(NamedTuple):
    """The search state of one sentence and scratch space; records as above."""

    hypotheses: np.ndarray
    arcs: np.ndarray
    groups: np.ndarray
    coverages: np.ndarray
    stacks: np.ndarray
    # the stack that is being filled
    targets: np.ndarray
    members: np.ndarray
    edges: np.ndarray
    cells: np.ndarray
    fresh: np.ndarray
    requests: np.ndarray
    active: np.ndarray
    histogram: np.ndarray
    coverage_slots: np.ndarray
    recombination_slots: np.ndarray
    # LM scores of (state, target phrase), kept as long as the workspace
    cache: np.ndarray
    # the states of several LMs together: int32 [joint states, LMs], and a hash table of their numbers
    joint_states: np.ndarray
    joint_slots: np.ndarray
    # estimates of the cells that the neural LM could score
    estimates: np.ndarray
    # what the neural LM is asked: by cell, by (context, target phrase), and the n-grams of these in the store
    cell_phrase: np.ndarray
    phrases: np.ndarray
    phrase_slots: np.ndarray
    entries: np.ndarray
    values: np.ndarray
    # how many walls are behind the words before each: int32 [words + 1]
    walls: np.ndarray
    # future cost of the sentence: float64 [words + 1, 64] and [words + 1]
    span_future: np.ndarray
    tail_future: np.ndarray
    counts: np.ndarray


HYPOTHESES, ARCS, GROUPS, COVERAGES, STAMP, JOINT_STATES, CELLS, REQUESTS, EDGES, QUERIES = range(10)
"""Entries of ``Work.counts``."""


def _power_of_two(size: int) -> int:
    return 1 << max(size - 1, 1).bit_length()


def new_work(
    words: int,
    longest: int,
    starts: int,
    pop_limit: int,
    stack_size: int,
    keep_arcs: bool,
    lms: int = 1,
    neural: tuple[int, int] = (0, 0),
) -> Work:
    """Scratch space for sentences of up to ``words`` words.

    Args:
        longest: words of the longest source phrase.
        starts: how many start positions an expansion can have (distortion limit + 1).
        lms: how many n-gram LMs.
        neural: with a neural LM, how many cells of a stack it scores, and the words of the longest target phrase.
    """
    kept = min(pop_limit, stack_size)
    hypotheses = words * kept + 1
    arcs = words * pop_limit + 1 if keep_arcs else 1
    edges = longest * kept * min(starts, words) + 1
    cells = pop_limit + 1
    cache = np.empty(CACHE_SLOTS, CACHED)
    cache["key"] = -1
    joint = words * cells + 1 if lms > 1 else 0
    slots, more = _power_of_two(2 * edges), _power_of_two(4 * pop_limit)
    return Work(
        np.empty(hypotheses, HYPOTHESIS),
        np.empty(arcs, ARC),
        np.empty(hypotheses, GROUP),
        np.empty(hypotheses, COVERAGE),
        np.zeros(words + 2, STACK),
        np.empty(edges, TARGET_COVERAGE),
        np.empty(pop_limit + 1, TARGET_GROUP),
        np.empty(edges, EDGE),
        np.empty(cells, CELL),
        np.empty(pop_limit + 1, NEW),
        np.empty(cells, REQUEST),
        np.empty(cells, np.int32),
        np.empty(BINS + 1, np.int64),
        np.zeros(slots, SLOT),
        np.zeros(more, SLOT),
        cache,
        np.empty((joint, lms), np.int32),
        np.empty(_power_of_two(2 * joint) if joint else 0, np.int32),
        np.empty(cells if neural[0] else 0, np.float64),
        np.empty(neural[0] + 1, np.int32),
        np.empty(neural[0] + 1, PHRASE_REQUEST),
        np.zeros(_power_of_two(4 * neural[0]), SLOT),
        np.empty(neural[0] * (neural[1] + 1) + 1, np.int32),
        np.empty(cells, np.float64),
        np.zeros(words + 1, np.int32),
        np.empty((words + 1, 64), np.float64),
        np.empty(words + 1, np.float64),
        np.zeros(10, np.int64),
    )
