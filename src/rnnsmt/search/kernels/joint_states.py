"""Several n-gram LMs, or several neural features, in one search: their states are combined into one integer.

A *joint state* is the index of a row of ``Work.joint_states``; rows are numbered in order of appearance within a
sentence. The LM scores of a phrase are also combined into one number, the weighted sum divided by
``SearchConstants.lm_weight``, so the rest of the search is the same as with one LM. A *joint context* is likewise the
index of a row of ``Work.joint_contexts``, with the contexts of several neural features.
"""

import numpy as np

from rnnsmt.base.kernels.decorator import INNER, kernel
from rnnsmt.base.kernels.hashing import mix
from rnnsmt.lm.automaton import query
from rnnsmt.search.kernels.records import JOINT_CONTEXTS, JOINT_STATES, QUERIES

_FREE = -1


@kernel(**INNER)
def _number(rows, slots, counts, used, values):
    """Return the index of a row with these values, which is added if it is new.

    Args:
        rows: ``int32`` [size, n].
        slots: ``int32`` [a power of two], hash table of the rows, -1 in free slots.
        counts: ``Work.counts``.
        used: ``JOINT_STATES`` or ``JOINT_CONTEXTS``, index of the number of rows in use.
        values: ``int32`` [n].
    """
    last = slots.shape[0] - 1
    key = np.uint64(0)
    for n in range(values.shape[0]):
        key = mix(key ^ np.uint64(values[n]))
    slot = np.int64(key & np.uint64(last))
    while slots[slot] != _FREE:
        known = np.int64(slots[slot])
        same = True
        for n in range(values.shape[0]):
            same = same and rows[known, n] == values[n]
        if same:
            return np.int32(known)
        slot = (slot + 1) & last
    number = np.int32(counts[used])
    counts[used] = number + 1
    slots[slot] = number
    rows[number] = values
    return number


@kernel()
def first_joint_state(lms, work):
    """Clear the joint states of the previous sentence and their cached scores; return the joint state after ``<s>``."""
    work.counts[JOINT_STATES] = 0
    work.joint_slots[:] = _FREE
    # the keys of the cache contain joint states, which are renumbered
    for slot in range(work.cache.shape[0]):
        work.cache[slot].key = -1
    return _number(work.joint_states, work.joint_slots, work.counts, JOINT_STATES, lms.starts)


@kernel()
def answer_joint_requests(lms, ranked, work, constants, requests):
    """Score the first ``requests`` entries of ``Work.requests`` with all LMs, and update the cache."""
    states = np.empty(len(lms.arrays), np.int32)
    for number in range(requests):
        request = work.requests[number]
        if request.position == request.end:  # answered from the cache
            continue
        total = 0.0
        # LM by LM, since each may leave its loop over the words early
        for n in range(len(lms.arrays)):
            state = work.joint_states[request.state, n]
            score = 0.0
            for position in range(request.position, request.end):
                prob, state = query(lms.arrays[n], state, ranked.target_words[n, position])
                work.counts[QUERIES] += 1
                score += prob
                if state == ranked.alone_state[n, position]:
                    # same state as in the empty context: the remaining words do not depend on the preceding phrases
                    score += ranked.alone_rest[n, position]
                    state = ranked.alone_state[n, request.end - 1]
                    break
            states[n] = state
            total += lms.weights[n] * score
        request.total = np.float32(total / constants.lm_weight)
        request.state = _number(work.joint_states, work.joint_slots, work.counts, JOINT_STATES, states)
        request.position = request.end
        key = (np.int64(request.from_state) << np.int64(32)) | np.int64(request.target)
        known = work.cache[np.int64(mix(np.uint64(key)) & np.uint64(work.cache.shape[0] - 1))]
        if known.key == key:
            known.prob = request.total
            known.state = request.state


@kernel()
def joint_end(lms, work, constants, state):
    """Return the combined LM score of ``</s>`` in a joint state."""
    total = 0.0
    for n in range(len(lms.arrays)):
        prob, _ = query(lms.arrays[n], work.joint_states[state, n], lms.ends[n])
        total += lms.weights[n] * prob
    return total / constants.lm_weight


@kernel()
def first_context(work):
    """Clear the joint contexts of the previous sentence, if any; return the context at the beginning of a sentence.

    It is 0 for one neural feature, and number 0 of the joint contexts, a row of zeros, for several.
    """
    work.counts[JOINT_CONTEXTS] = 0
    if work.joint_contexts.shape[0] > 0:
        work.joint_context_slots[:] = _FREE
        work.joint_contexts[0] = 0
        _number(work.joint_contexts, work.joint_context_slots, work.counts, JOINT_CONTEXTS, work.joint_contexts[0])
    return np.int32(0)


@kernel(forceinline=True, **INNER)
def context_of_feature(work, context, feature):
    """Return the context in the store of one neural feature, given that of a hypothesis."""
    if work.joint_contexts.shape[0] == 0:
        return context
    return work.joint_contexts[context, feature]


@kernel(forceinline=True, **INNER)
def context_after(work, request):
    """Return the context of a hypothesis after a request, whose ``Work.end_contexts`` are known."""
    if work.joint_contexts.shape[0] == 0:
        return work.end_contexts[0, request]
    return _number(
        work.joint_contexts, work.joint_context_slots, work.counts, JOINT_CONTEXTS, work.end_contexts[:, request]
    )
