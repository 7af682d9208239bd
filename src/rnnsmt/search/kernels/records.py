"""Arrays of the search kernels: those that all sentences share, and the state of one sentence between two stacks.

The hypotheses of a stack are divided into *groups*: same coverage, same end of the last source phrase, and same
position at which the next phrase must end to be a swap; with a hierarchical reordering model (Galley and Manning 2008)
also the same blocks. Distortion and the orientation of the next phrase therefore depend only on the group. The
hypotheses of a group are contiguous, sorted by descending score.

A coverage consists of the first uncovered word (the *gap*) and a 64-bit mask of the words from there on, bit 0 for the
gap itself. The distortion limit bounds the width of the mask, so sentences of any length can be searched.
"""

from typing import NamedTuple

import numpy as np

from rnnsmt.base.kernels.decorator import INNER, UNCOUNTED, kernel
from rnnsmt.lm.automaton import LmArrays
from rnnsmt.search.kernels.hash_tables import new_table, power_of_two

CACHE_SLOTS = 1 << 12
"""Size of ``Work.cache``, a power of two."""


class RankedOptions(NamedTuple):
    """Translation options under one set of weights, sorted by source phrase, then by descending estimate.

    The options of source phrase s are first[s]..first[s + 1] - 1. The four rows of ``known``, ``guess`` and ``reach``,
    and columns of ``forward``, are the orientations monotone, swap, discontinuous to the right and to the left.

    Attributes:
        first: ``int64`` [sources + 1].
        row: ``int32`` [options], row of the phrase pair in ``TranslationOptions``.
        target: ``int32`` [options], target phrase.
        estimate: ``float64`` [options], weighted scores of the pair plus LM score of the phrase in the empty context;
            the best one of a source phrase is its future cost.
        known: ``float64`` [4, options], weighted scores of the pair plus its backward reordering score by orientation.
        guess: ``float64`` [4, options], ``known`` plus the LM score of the phrase in the empty context.
        reach: ``float64`` [4, options], maximum of ``guess`` over this and all following options of the source phrase.
        forward: ``float64`` [classes, 4], weighted forward reordering score by orientation of the following phrase.
        forward_class: ``int32`` [options], row in ``forward``, equal for options with equal forward scores.
        target_bounds: ``int64`` [targets + 1]; the words of target phrase t are
            target_bounds[t]..target_bounds[t + 1] - 1 in the next three arrays.
        target_words: ``int32`` [LMs, words], LM word ids.
        alone_state: ``int32`` [LMs, words], LM state after each word, from the empty context.
        alone_rest: ``float64`` [LMs, words], LM score of the words of the phrase after each word, from the empty
            context.
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
        arrays: one ``LmArrays`` per LM.
        starts: ``int32`` [LMs], states after ``<s>``.
        ends: ``int32`` [LMs], word ids of ``</s>``.
        weights: ``float64`` [LMs].
    """

    arrays: tuple[LmArrays, ...]
    starts: np.ndarray
    ends: np.ndarray
    weights: np.ndarray


class SearchConstants(NamedTuple):
    """Weights and limits, shared by all sentences of a search.

    Attributes:
        lm_weight: weight of the n-gram LM; for several LMs, the sum of the absolute values of their weights.
        distortion_weight: weight of the distance-based distortion.
        distortion_limit: in source words, at most ``MAX_WINDOW``.
        pop_limit: maximum number of cells to score per stack.
        stack_size: maximum number of hypotheses per stack.
        beam: logarithm of the beam threshold on the scale of the scores, at most 0.
        margin: distance from the best estimate of a stack beyond which cells are not scored.
        forward_bound: upper bound of the weighted forward reordering scores, at least 0.
        hierarchical: 1 if the reordering model is hierarchical, else 0.
        keep_arcs: 1 if recombined hypotheses are stored, for n-best lists, else 0.
        cslm_cells: maximum number of cells per stack for the neural features.
        by_source: 1 if a neural feature depends on the source side of a phrase, so requests with the same target
            phrase differ by option and source position, else 0.
        neural_weight: sum of ``neural_weights``, the weight of the scores that are estimated by the n-gram LM.
        neural_weights: ``float64`` [neural features].
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
    cslm_cells: int
    by_source: int
    neural_weight: float
    neural_weights: np.ndarray


def record(*fields: str) -> np.dtype:
    """Return the aligned record type with the fields ``name:type`` (f8, i4 and so on)."""
    return np.dtype([tuple(field.split(":")) for field in fields], align=True)


HYPOTHESIS = record("score:f8", "state:i4", "back:i4", "option:i4", "start:i4", "end:i4", "arc:i4", "context:i4")
"""Score so far, LM state, previous hypothesis (-1: none), option and source span of its phrase, first recombined arc
(-1: none), and ``context``, the state of the neural features: with one feature, a context number in its store; with
several, an index into ``NeuralWork.joint_contexts``; 0 without neural features and at the beginning of a sentence."""

ARC = record("score:f8", "back:i4", "option:i4", "start:i4", "end:i4", "next:i4")
"""A hypothesis that was recombined into a better one; ``next`` is the next arc into the same hypothesis, or -1."""

GROUP = record("end:i4", "swap:i4", "first:i4", "count:i4", "next:i4", "block_start:i4", "block_end:i4", "below:i4")
"""Hypotheses first..first + count - 1; ``end`` of their last source phrase; ``swap``: the first word of that phrase
(a phrase with end + 1 == ``swap`` would be a swap), or -1 if there is no uncovered word before it; ``next`` group of
the coverage.

For a hierarchical model also the first and last source word of the last block, which was translated as a unit, and the
group whose last block is ``below`` it on the stack of blocks; -1 for none."""

COVERAGE = record("mask:u8", "gap:i4", "group:i4")
"""First uncovered word, mask of the covered words from there on, and first group."""

STACK = record("hypothesis:i8", "coverage:i8")
"""Index of the first hypothesis and of the first coverage of a stack."""

NEW_COVERAGE = record("mask:u8", "future:f8", "gap:i4", "group:i4")
"""A coverage of the stack that is being filled, its future cost, and the first of its groups in ``Work.new_groups``."""

NEW_GROUP = record(
    "coverage:i4", "end:i4", "swap:i4", "count:i4", "next:i4", "stored:i4", "block_start:i4", "block_end:i4", "below:i4"
)
"""A group of the stack that is being filled, with fields of ``GROUP``; ``coverage`` is an index into
``Work.new_coverages``, ``count`` the number of its hypotheses that are not pruned, and ``stored`` its index in
``Work.groups`` if there are any."""

EDGE = record(
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
    "new_group:i4",
)
"""A group of hypotheses with the options first..last - 1 of a source span (``start``, ``length``).

``base``: distortion and future cost, common to all cells of the edge; ``estimate``: that of its first cell;
``coverage``: of the result, in ``Work.new_coverages``; ``new_group``: group of the result in ``Work.new_groups``, -1
until it is determined; ``backward``: orientation of the options with respect to the preceding phrases, ``forward``:
orientation that selects the forward score of the preceding phrase (different in hierarchical models only)."""

CELL = record("total:f8", "edge:i4", "hypothesis:i4", "option:i4", "lm_request:i4")
"""A hypothesis extended by an option; ``total`` is the sum of the future cost and the scores that are known so far:
without LMs in ``cells``, then with the n-gram LMs (``stack.propose``) and the neural features (``stack.add_cells``);
``lm_request`` is an index into ``Work.lm_requests``."""

NEURAL_REQUEST = record("total:f8", "context:i4", "target:i4", "option:i4", "start:i4", "first:i4", "end_context:i4")
"""A target phrase to be scored by all neural features in a context.

Its entries (one per word, and one for ``</s>`` in the last stack) begin at ``first`` in every row of
``NeuralWork.entries``; ``total`` is the weighted sum of their scores, ``end_context`` the context after the phrase.
``option`` and ``start``, the first word of the source span, are those of the cell that made the request; without
``SearchConstants.by_source`` other cells with the same context and target share it."""

LM_REQUEST = record("total:f4", "state:i4", "position:i4", "end:i4", "slot:i4", "hit:i4", "cached:i4")
"""A target phrase to be scored by the n-gram LM: sum and state so far, next word (``position``) and end of the phrase
in ``RankedOptions.target_words``; ``slot`` and ``hit`` hold the first probe of the current round; ``cached`` is the
slot of ``Work.cache`` for the answer."""

NEW_HYPOTHESIS = record("total:f8", "state:i4", "back:i4", "option:i4", "edge:i4", "group:i4", "arc:i4", "context:i4")
"""A hypothesis of the stack that is being filled; ``total`` is score plus future cost, ``group`` is -1 if pruned."""

LM_SCORE = record("key:i8", "prob:f4", "state:i4", "request:i4", "stamp:i4")
"""LM score of a target phrase in a state (``key``: state << 32 | target phrase, -1 if free) and state after it.
``request`` is the index of its request, valid only during the pass with this ``stamp``."""

BINS = 512
"""Number of bins of the histogram that selects the cells to score."""


class NeuralWork(NamedTuple):
    """Scratch space for the neural features of a search, see ``Work``.

    Attributes:
        estimates: ``float64`` [cells], estimated totals of the cells; empty without neural features.
        ranks: ``int8`` [cells], ranks of the cells, see ``neural_choice``; empty without neural features.
        leaders: ``int32`` [cells], leader of the cells that are recombined with a cell; empty without neural features.
        requests: ``NEURAL_REQUEST`` [cslm_cells + 1], distinct requests to the features.
        request_of: ``int32`` [cslm_cells + 1], index of the request of each cell.
        request_table: finds ``requests``.
        entries: ``int32`` [features, n], for each feature the indices into its store of the n-grams of all requests,
            one request after the other.
        end_contexts: ``int32`` [features, cslm_cells + 1], context after each request in the store of each feature.
        joint_contexts: ``int32`` [joint contexts, features], contexts of several features; empty with fewer than two.
        joint_context_slots: ``int32`` [slots], hash table of ``joint_contexts``.
    """

    estimates: np.ndarray
    ranks: np.ndarray
    leaders: np.ndarray
    requests: np.ndarray
    request_of: np.ndarray
    request_table: np.ndarray
    entries: np.ndarray
    end_contexts: np.ndarray
    joint_contexts: np.ndarray
    joint_context_slots: np.ndarray


class Work(NamedTuple):
    """Search state of one sentence, and scratch space.

    In the shapes, ``capacity`` is min(pop_limit, stack_size), ``cells`` is pop_limit + 1, ``edges`` is a bound on the
    number of edges into a stack, and ``slots`` is a power of two that keeps a hash table at most half full.

    Attributes:
        hypotheses: ``HYPOTHESIS`` [words * capacity + 1], stack by stack, and group by group within a stack.
        arcs: ``ARC`` [words * pop_limit + 1], or [1] if no n-best lists are needed.
        groups: ``GROUP`` [words * capacity + 1], stack by stack.
        coverages: ``COVERAGE`` [words * capacity + 1], stack by stack.
        stacks: ``STACK`` [words + 2]; stack k has the hypotheses stacks[k].hypothesis..stacks[k + 1].hypothesis - 1,
            likewise for coverages.
        new_coverages: ``NEW_COVERAGE`` [edges], distinct coverages of the stack that is being filled.
        new_groups: ``NEW_GROUP`` [cells], its groups.
        new_hypotheses: ``NEW_HYPOTHESIS`` [cells], its hypotheses before pruning.
        edges: ``EDGE`` [edges].
        cells: ``CELL`` [cells].
        lm_requests: ``LM_REQUEST`` [cells].
        waiting: ``int32`` [cells], indices of the incomplete ``lm_requests``.
        histogram: ``int64`` [BINS], number of cells by estimate.
        coverage_table: finds ``new_coverages`` by coverage.
        recombination_table: finds hypotheses that are recombined in ``new_hypotheses``, and in ``cells`` in
            ``neural_choice``.
        cache: ``LM_SCORE`` [CACHE_SLOTS]; direct-mapped: a new entry overwrites the old one of the same slot. Kept for
            the lifetime of the workspace; with several LMs, cleared for each sentence.
        joint_states: ``int32`` [joint states, LMs], states of several LMs; empty with one LM.
        joint_slots: ``int32`` [slots], hash table of ``joint_states``.
        neural: what only the neural features need.
        values: ``float64`` [cells], scratch space for the selection of the n-th best.
        span_future: ``float64`` [words + 1, 64], future cost of a span by first word and length.
        tail_future: ``float64`` [words + 1], future cost of all words from one on.
        counts: ``int64`` [11], see ``HYPOTHESES`` and following.
    """

    hypotheses: np.ndarray
    arcs: np.ndarray
    groups: np.ndarray
    coverages: np.ndarray
    stacks: np.ndarray
    new_coverages: np.ndarray
    new_groups: np.ndarray
    new_hypotheses: np.ndarray
    edges: np.ndarray
    cells: np.ndarray
    lm_requests: np.ndarray
    waiting: np.ndarray
    histogram: np.ndarray
    coverage_table: np.ndarray
    recombination_table: np.ndarray
    cache: np.ndarray
    joint_states: np.ndarray
    joint_slots: np.ndarray
    neural: NeuralWork
    values: np.ndarray
    span_future: np.ndarray
    tail_future: np.ndarray
    counts: np.ndarray


HYPOTHESES, ARCS, GROUPS, COVERAGES, STAMP, JOINT_STATES, JOINT_CONTEXTS, CELLS, REQUESTS, EDGES, QUERIES = range(11)
"""Indices into ``Work.counts``: numbers of hypotheses, arcs, groups and coverages in use, stamp of the current pass
over a stack (see ``next_stamp``), numbers of joint states and joint contexts in use; then statistics of the search:
cells, LM requests, edges and LM queries."""


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def next_stamp(work):
    """Begin a pass over the stack that is being filled; return its stamp, under which all stamped tables are empty."""
    stamp = np.int32(work.counts[STAMP] + 1)
    work.counts[STAMP] = stamp
    return stamp


class Extension(NamedTuple):
    """A hypothesis extended by an option, before recombination: the arguments of ``stack.add_hypothesis``.

    Attributes:
        total: score plus future cost.
        edge, back, option: edge, previous hypothesis and option.
        state: LM state.
        context: as in ``HYPOTHESIS``.
        group: index in ``Work.new_groups``.
    """

    total: float
    edge: int
    back: int
    option: int
    state: int
    context: np.int32
    group: int


class Derivations(NamedTuple):
    """Derivations of one or several sentences, one after the other.

    Attributes:
        offsets: ``int64`` [n + 1]; the phrases of derivation d are offsets[d]..offsets[d + 1] - 1.
        options, starts, ends: ``int32``, option and source span of each phrase.
    """

    offsets: np.ndarray
    options: np.ndarray
    starts: np.ndarray
    ends: np.ndarray

    @classmethod
    def empty(cls, n: int, phrases: int) -> "Derivations":
        """Allocate ``n`` derivations with so many phrases in total, to be filled by kernels."""
        return cls(np.zeros(n + 1, np.int64), *np.zeros((3, phrases), np.int32))

    def is_first_of(self, others: "Derivations") -> bool:
        """Return whether the only derivation here is the first of others."""
        used = others.offsets[1] if len(others.offsets) > 1 else -1
        return used == self.offsets[-1] and all(
            np.array_equal(own[:used], other[:used]) for own, other in zip(self[1:], others[1:], strict=True)
        )


def new_work(
    words: int,
    longest: int,
    starts: int,
    pop_limit: int,
    stack_size: int,
    keep_arcs: bool,
    lms: int = 1,
    neural: int = 0,
    cslm_cells: int = 0,
    longest_target: int = 0,
) -> Work:
    """Allocate the workspace for sentences of up to ``words`` words.

    Args:
        longest: number of words of the longest source phrase.
        starts: maximum number of start positions of a phrase that extends a hypothesis (distortion limit + 1).
        pop_limit: maximum number of cells to score per stack.
        stack_size: maximum number of hypotheses per stack.
        keep_arcs: whether recombined hypotheses are stored, for n-best lists.
        neural: number of neural features.
        cslm_cells: maximum number of cells that they score per stack.
        longest_target: number of words of the longest target phrase, for neural features.
    """
    capacity = min(pop_limit, stack_size)
    hypotheses = words * capacity + 1
    arcs = words * pop_limit + 1 if keep_arcs else 1
    # stack k is reached from one stack per phrase length; each of these has at most ``capacity`` groups
    edges = longest * capacity * min(starts, words) + 1
    cells = pop_limit + 1
    cache = np.empty(CACHE_SLOTS, LM_SCORE)
    cache["key"] = -1
    joint = words * cells + 1 if lms > 1 else 0  # at most one new joint state per request
    contexts = words * cslm_cells + 1 if neural > 1 else 0  # at most one new joint context per request
    return Work(
        hypotheses=np.empty(hypotheses, HYPOTHESIS),
        arcs=np.empty(arcs, ARC),
        groups=np.empty(hypotheses, GROUP),
        coverages=np.empty(hypotheses, COVERAGE),
        stacks=np.zeros(words + 2, STACK),
        new_coverages=np.empty(edges, NEW_COVERAGE),
        new_groups=np.empty(cells, NEW_GROUP),
        new_hypotheses=np.empty(cells, NEW_HYPOTHESIS),
        edges=np.empty(edges, EDGE),
        cells=np.empty(cells, CELL),
        lm_requests=np.empty(cells, LM_REQUEST),
        waiting=np.empty(cells, np.int32),
        histogram=np.empty(BINS, np.int64),
        coverage_table=new_table(edges),
        recombination_table=new_table(2 * cells),  # at most a quarter full, because every cell is looked up
        cache=cache,
        joint_states=np.empty((joint, lms), np.int32),
        joint_slots=np.empty(power_of_two(2 * joint) if joint else 0, np.int32),
        neural=NeuralWork(
            estimates=np.empty(cells if neural else 0, np.float64),
            ranks=np.empty(cells if neural else 0, np.int8),
            leaders=np.empty(cells if neural else 0, np.int32),
            requests=np.empty(cslm_cells + 1, NEURAL_REQUEST),
            request_of=np.empty(cslm_cells + 1, np.int32),
            request_table=new_table(cslm_cells + 1),
            entries=np.empty((neural, cslm_cells * (longest_target + 1) + 1), np.int32),
            end_contexts=np.empty((neural, cslm_cells + 1), np.int32),
            joint_contexts=np.empty((contexts, neural), np.int32),
            joint_context_slots=np.empty(power_of_two(2 * contexts) if contexts else 0, np.int32),
        ),
        values=np.empty(cells, np.float64),
        span_future=np.empty((words + 1, 64), np.float64),
        tail_future=np.empty(words + 1, np.float64),
        counts=np.zeros(11, np.int64),
    )
