"""Arrays of the search kernels: data that all sentences share, and the state of the search of one sentence.

The hypotheses of a stack are divided into *groups*. The hypotheses of a group have the same coverage, the same end of
the last source phrase, and the same position at which the next phrase must end to be a swap; with a hierarchical
reordering model (Galley and Manning 2008), they also have the same blocks. The distortion and the orientation of the
next phrase therefore depend only on the group. The hypotheses of a group are contiguous and sorted by descending score.

A coverage consists of the first uncovered word (the *gap*) and a 64-bit mask, in which bit i is 1 if the word i words
after the gap is covered. The distortion limit bounds the width of the mask, so sentences of any length can be searched.
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
    and the four columns of ``forward``, are those of the orientations monotone, swap, discontinuous to the right, and
    discontinuous to the left.

    Attributes:
        first: ``int64`` [sources + 1].
        row: ``int32`` [options], row of the phrase pair in ``TranslationOptions``.
        target: ``int32`` [options], target phrase.
        estimate: ``float64`` [options], weighted scores of the pair plus LM score of the phrase in the empty context;
            the best estimate of a source phrase is used for future costs.
        known: ``float64`` [4, options], weighted scores of the pair plus its backward reordering score by orientation.
        guess: ``float64`` [4, options], ``known`` plus the LM score of the phrase in the empty context.
        reach: ``float64`` [4, options], maximum of ``guess`` over this and all following options of the source phrase.
        forward: ``float64`` [classes, 4], weighted forward reordering score by orientation of the following phrase.
        forward_class: ``int32`` [options], row in ``forward``; options with equal forward scores have the same row.
        target_bounds: ``int64`` [targets + 1]; the words of target phrase t are
            target_bounds[t]..target_bounds[t + 1] - 1 in the next three arrays.
        target_words: ``int32`` [LMs, words], LM word ids.
        alone_state: ``int32`` [LMs, words], LM state after each word, if the phrase begins in the empty context.
        alone_rest: ``float64`` [LMs, words], LM score of all words of the phrase that follow each word, if the phrase
            begins in the empty context.
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
        cslm_cells: maximum number of cells per stack that neural features score.
        by_source: 1 if a neural feature depends on the source side of a phrase, so that requests with the same target
            phrase differ by option and source position, else 0.
        neural_weight: sum of ``neural_weights``, the weight of the n-gram LM score as an estimate of neural scores.
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
"""Hypothesis of a stack.

``score``: score so far, without future cost; ``state``: LM state; ``back``: previous hypothesis (-1: none); ``option``,
``start`` and ``end``: option and source span of its last phrase (-1: none); ``arc``: first recombined arc (-1: none);
``context``: state of the neural features, which is a context number in the store of a single feature, an index into
``NeuralWork.joint_contexts`` with several features, and 0 without neural features."""

ARC = record("score:f8", "back:i4", "option:i4", "start:i4", "end:i4", "next:i4")
"""Hypothesis that was recombined into a better one, with fields of ``HYPOTHESIS``; ``next``: the next arc into the same
hypothesis (-1: none)."""

GROUP = record("end:i4", "swap:i4", "first:i4", "count:i4", "next:i4", "block_start:i4", "block_end:i4", "below:i4")
"""Group of the hypotheses first..first + count - 1.

``end``: last word of their last source phrase; ``swap``: first word of this phrase (a next phrase with end + 1 ==
``swap`` would be a swap), or -1 if there is no word before it or this word is covered; ``next``: next group of the same
coverage (-1: none).

For a hierarchical model, ``block_start`` and ``block_end``: first and last source word of the last block; ``below``:
group whose last block is the next one on the stack of blocks. All three are -1 for none."""

COVERAGE = record("mask:u8", "gap:i4", "group:i4")
"""Coverage of a stack. ``gap``: the first uncovered word; ``mask``: the covered words from the gap on; ``group``: the
first of its groups."""

STACK = record("hypothesis:i8", "coverage:i8")
"""Indices of the first hypothesis and of the first coverage of a stack."""

NEW_COVERAGE = record("mask:u8", "future:f8", "gap:i4", "group:i4")
"""Coverage of the stack that is being filled, with fields of ``COVERAGE``; ``future``: its future cost; ``group``: the
index of its first group in ``Work.new_groups`` (-1: none)."""

NEW_GROUP = record(
    "coverage:i4", "end:i4", "swap:i4", "count:i4", "next:i4", "stored:i4", "block_start:i4", "block_end:i4", "below:i4"
)
"""Group of the stack that is being filled, with fields of ``GROUP``; ``coverage``: index of its coverage in
``Work.new_coverages``; ``count``: number of its hypotheses that are not pruned; ``stored``: index of the group in
``Work.groups``, unless all of its hypotheses are pruned."""

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
"""Edge: a group of hypotheses with the options first..last - 1 of a source span (``start``, ``length``).

``base``: future cost minus weighted distortion, the same for all cells of the edge; ``estimate``: estimate of its first
cell; ``coverage``: index in ``Work.new_coverages`` of the coverage after the options; ``new_group``: index in
``Work.new_groups`` of the group of the new hypotheses, -1 until it is determined; ``backward``: orientation of the
options for their backward scores; ``forward``: orientation of the options for the forward score of the preceding phrase
(different from ``backward`` only in hierarchical models)."""

CELL = record("total:f8", "edge:i4", "hypothesis:i4", "option:i4", "lm_request:i4")
"""Cell: a hypothesis extended by an option of an edge.

``total``: future cost plus the scores computed so far. The module ``cells`` computes it without LM scores,
``stack.propose`` adds the scores of n-gram LMs, and ``stack.add_cells`` those of neural features. ``lm_request``: index
into ``Work.lm_requests``."""

NEURAL_REQUEST = record("total:f8", "context:i4", "target:i4", "option:i4", "start:i4", "first:i4", "end_context:i4")
"""Request for the scores of a target phrase in a context by all neural features.

``first``: index of its first entry in every row of ``NeuralWork.entries`` (there is one entry per word, and one for
``</s>`` in the last stack); ``total``: weighted sum of the scores of its entries; ``end_context``: the context after
the phrase; ``option`` and ``start``: option and first source word of the cell for which the request was added. If
``SearchConstants.by_source`` is 0, other cells with the same context and target phrase share the request."""

LM_REQUEST = record("total:f4", "state:i4", "position:i4", "end:i4", "slot:i4", "hit:i4", "cached:i4")
"""Request for the n-gram LM score of a target phrase in a state.

``total`` and ``state``: sum of the scores so far, and state after them; ``position`` and ``end``: next word and end of
the phrase in ``RankedOptions.target_words``; ``slot`` and ``hit``: result of ``begin_look_up`` in the current round;
``cached``: slot of ``Work.cache`` for the result."""

NEW_HYPOTHESIS = record("total:f8", "state:i4", "back:i4", "option:i4", "edge:i4", "group:i4", "arc:i4", "context:i4")
"""Hypothesis of the stack that is being filled, with fields of ``HYPOTHESIS``; ``total``: score plus future cost;
``edge``: its edge; ``group``: index in ``Work.new_groups``, -1 if the hypothesis is pruned."""

LM_SCORE = record("key:i8", "prob:f4", "state:i4", "request:i4", "stamp:i4")
"""Cached LM score (``prob``) of a target phrase in a state, and the ``state`` after it.

``key``: state before the phrase << 32 | target phrase (-1: free); ``request``: index of its request, valid only during
the pass with this ``stamp``."""

BINS = 512
"""Number of bins of the histogram that selects the cells to score."""


class NeuralWork(NamedTuple):
    """State of the neural features in the search of one sentence, see ``Work``.

    Attributes:
        requests: ``NEURAL_REQUEST`` [cslm_cells + 1], distinct requests to the features.
        request_of: ``int32`` [cslm_cells + 1], index of the request of each cell.
        entries: ``int32`` [features, n], for each feature the indices of the entries of all requests in its store, one
            request after the other.
        end_contexts: ``int32`` [features, cslm_cells + 1], context after each request in the store of each feature.
        joint_contexts: ``int32`` [joint contexts, features], context of each feature; empty with fewer than two
            features.
        joint_context_slots: ``int32`` [slots], hash table of ``joint_contexts``.
    """

    requests: np.ndarray
    request_of: np.ndarray
    entries: np.ndarray
    end_contexts: np.ndarray
    joint_contexts: np.ndarray
    joint_context_slots: np.ndarray


class Scratch(NamedTuple):
    """Arrays that the workspaces of a thread share: a kernel call needs no content of earlier calls, except stamps.

    The shapes are explained in ``Work``.

    Attributes:
        new_hypotheses: ``NEW_HYPOTHESIS`` [cells], hypotheses of the stack that is being filled, before pruning.
        waiting: ``int32`` [cells], indices of the incomplete ``Work.lm_requests``.
        histogram: ``int64`` [BINS], number of cells by estimate.
        values: ``float64`` [cells], scratch space for the selection of the n-th best value.
        coverage_table: stamped hash table of ``Work.new_coverages``.
        recombination_table: stamped hash table of ``new_hypotheses`` by ``stack.recombination_key``; in
            ``neural_choice``, of ``Work.cells``.
        request_table: stamped hash table of ``NeuralWork.requests``.
        estimates: ``float64`` [cells], estimated totals of the cells; empty without neural features.
        ranks: ``int8`` [cells], ranks of the cells, see ``neural_choice``; empty without neural features.
        leaders: ``int32`` [cells], for the first cell of each set that the n-gram search would recombine, the best cell
            of the set so far; empty without neural features.
        stamp: ``int32`` [1], stamp of the current pass, see ``next_stamp``.
    """

    new_hypotheses: np.ndarray
    waiting: np.ndarray
    histogram: np.ndarray
    values: np.ndarray
    coverage_table: np.ndarray
    recombination_table: np.ndarray
    request_table: np.ndarray
    estimates: np.ndarray
    ranks: np.ndarray
    leaders: np.ndarray
    stamp: np.ndarray


class Work(NamedTuple):
    """Search state of one sentence, and scratch space.

    In the shapes, ``capacity`` is min(pop_limit, stack_size), ``cells`` is pop_limit + 1, ``edges`` is an upper bound
    of the number of edges into a stack, and ``slots`` is a power of two for which a hash table is at most half full.

    Attributes:
        hypotheses: ``HYPOTHESIS`` [words * capacity + 1], stack by stack, and group by group within a stack.
        arcs: ``ARC`` [words * pop_limit + 1], or [1] if no n-best lists are needed.
        groups: ``GROUP`` [words * capacity + 1], stack by stack.
        coverages: ``COVERAGE`` [words * capacity + 1], stack by stack.
        stacks: ``STACK`` [words + 2]; stack k has the hypotheses stacks[k].hypothesis..stacks[k + 1].hypothesis - 1 and
            the coverages stacks[k].coverage..stacks[k + 1].coverage - 1.
        new_coverages: ``NEW_COVERAGE`` [edges], distinct coverages of the stack that is being filled.
        new_groups: ``NEW_GROUP`` [cells], groups of the stack that is being filled.
        edges: ``EDGE`` [edges], edges into the stack that is being filled.
        cells: ``CELL`` [cells], selected cells of these edges.
        lm_requests: ``LM_REQUEST`` [cells], distinct requests of these cells.
        cache: ``LM_SCORE`` [CACHE_SLOTS], a direct-mapped cache: a new entry overwrites the previous entry of its slot.
            It is kept for the lifetime of the workspace; with several LMs, it is cleared for each sentence.
        joint_states: ``int32`` [joint states, LMs], state of each LM; empty with one LM.
        joint_slots: ``int32`` [slots], hash table of ``joint_states``.
        neural: state of the neural features.
        span_future: ``float64`` [words + 1, 64], future cost of a span by first word and length.
        tail_future: ``float64`` [words + 1], future cost of the suffix of the sentence that begins at a word.
        counts: ``int64`` [10], see ``HYPOTHESES`` to ``QUERIES``.
        scratch: scratch space, which other workspaces may share.
    """

    hypotheses: np.ndarray
    arcs: np.ndarray
    groups: np.ndarray
    coverages: np.ndarray
    stacks: np.ndarray
    new_coverages: np.ndarray
    new_groups: np.ndarray
    edges: np.ndarray
    cells: np.ndarray
    lm_requests: np.ndarray
    cache: np.ndarray
    joint_states: np.ndarray
    joint_slots: np.ndarray
    neural: NeuralWork
    span_future: np.ndarray
    tail_future: np.ndarray
    counts: np.ndarray
    scratch: Scratch


HYPOTHESES, ARCS, GROUPS, COVERAGES, JOINT_STATES, JOINT_CONTEXTS, CELLS, REQUESTS, EDGES, QUERIES = range(10)
"""Indices into ``Work.counts``: numbers of hypotheses, arcs, groups and coverages in use; numbers of joint states and
joint contexts in use; and, as statistics of the search, numbers of cells, LM requests, edges and LM queries."""


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def next_stamp(work):
    """Begin a pass over the stack that is being filled; return the stamp of the pass, which empties stamped tables."""
    work.scratch.stamp[0] += np.int32(1)
    return work.scratch.stamp[0]


class Extension(NamedTuple):
    """A hypothesis extended by an option, before recombination: the arguments of ``stack.add_hypothesis``.

    Attributes:
        total: score plus future cost.
        edge, back, option: indices of edge, previous hypothesis and option.
        state: LM state after the option.
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
        """Allocate ``n`` derivations with up to ``phrases`` phrases in total, which kernels fill."""
        return cls(np.zeros(n + 1, np.int64), *np.zeros((3, phrases), np.int32))

    def is_first_of(self, others: "Derivations") -> bool:
        """Return whether the only derivation is the same as the first one of ``others``."""
        used = others.offsets[1] if len(others.offsets) > 1 else -1
        return used == self.offsets[-1] and all(
            np.array_equal(own[:used], other[:used]) for own, other in zip(self[1:], others[1:], strict=True)
        )


def _most_edges(longest: int, starts: int, pop_limit: int, stack_size: int) -> int:
    """Return an upper bound of the number of edges into a stack; the arguments are those of ``new_work``.

    The edges come from one stack for each phrase length, which has at most min(pop_limit, stack_size) groups.
    """
    return longest * min(pop_limit, stack_size) * starts + 1


def new_scratch(
    longest: int, starts: int, pop_limit: int, stack_size: int, neural: int = 0, cslm_cells: int = 0
) -> Scratch:
    """Allocate scratch space for sentences of any length; the arguments are those of ``new_work``."""
    cells = pop_limit + 1
    return Scratch(
        new_hypotheses=np.empty(cells, NEW_HYPOTHESIS),
        waiting=np.empty(cells, np.int32),
        histogram=np.empty(BINS, np.int64),
        values=np.empty(cells, np.float64),
        coverage_table=new_table(_most_edges(longest, starts, pop_limit, stack_size)),
        recombination_table=new_table(2 * cells),  # at most a quarter full, because every cell is looked up
        request_table=new_table(cslm_cells + 1),
        estimates=np.empty(cells if neural else 0, np.float64),
        ranks=np.empty(cells if neural else 0, np.int8),
        leaders=np.empty(cells if neural else 0, np.int32),
        stamp=np.zeros(1, np.int32),
    )


def new_work(
    words: int,
    scratch: Scratch,
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
        scratch: from ``new_scratch``, with the same values of the other arguments.
        longest: number of words of the longest source phrase.
        starts: maximum number of start positions of a phrase that extends a hypothesis (distortion limit + 1).
        pop_limit: maximum number of cells to score per stack.
        stack_size: maximum number of hypotheses per stack.
        keep_arcs: whether recombined hypotheses are stored, for n-best lists.
        neural: number of neural features.
        cslm_cells: maximum number of cells per stack that neural features score.
        longest_target: number of words of the longest target phrase, for neural features.
    """
    capacity = min(pop_limit, stack_size)
    hypotheses = words * capacity + 1
    arcs = words * pop_limit + 1 if keep_arcs else 1
    edges = _most_edges(longest, min(starts, words), pop_limit, stack_size)
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
        edges=np.empty(edges, EDGE),
        cells=np.empty(cells, CELL),
        lm_requests=np.empty(cells, LM_REQUEST),
        cache=cache,
        joint_states=np.empty((joint, lms), np.int32),
        joint_slots=np.empty(power_of_two(2 * joint) if joint else 0, np.int32),
        neural=NeuralWork(
            requests=np.empty(cslm_cells + 1, NEURAL_REQUEST),
            request_of=np.empty(cslm_cells + 1, np.int32),
            entries=np.empty((neural, cslm_cells * (longest_target + 1) + 1), np.int32),
            end_contexts=np.empty((neural, cslm_cells + 1), np.int32),
            joint_contexts=np.empty((contexts, neural), np.int32),
            joint_context_slots=np.empty(power_of_two(2 * contexts) if contexts else 0, np.int32),
        ),
        span_future=np.empty((words + 1, 64), np.float64),
        tail_future=np.empty(words + 1, np.float64),
        counts=np.zeros(10, np.int64),
        scratch=scratch,
    )
