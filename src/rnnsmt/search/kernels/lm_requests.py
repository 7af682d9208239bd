"""N-gram LM scores of the selected cells. A request asks for the score of a target phrase in an LM state.

With several n-gram LMs, their states are combined into one integer, so that the rest of the search is the same as with
one LM: a *joint state* is the index of a row of ``Work.joint_states``, which contains the state of each LM. Rows are
numbered in the order of their first appearance within a sentence. The LM scores of a phrase are also combined into one
number, their weighted sum divided by ``SearchConstants.lm_weight``.
"""

import numpy as np

from rnnsmt.base.kernels.decorator import INNER, UNCOUNTED, kernel
from rnnsmt.base.kernels.numbers import mix
from rnnsmt.lm.automaton import begin_look_up, end_look_up, query
from rnnsmt.search.kernels.hash_tables import FREE, number_row
from rnnsmt.search.kernels.records import JOINT_STATES, QUERIES


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def add_request(ranked, work, state, target, requests, stamp):
    """Find the LM request for a target phrase in a state, or add it; return its index, and the number of requests."""
    key = (np.int64(state) << np.int64(32)) | np.int64(target)
    slot = np.int64(mix(np.uint64(key)) & np.uint64(work.cache.shape[0] - 1))
    known = work.cache[slot]
    # if this overwrites the entry of another key of this stack, the only consequence may be a duplicate request
    same = known.key == key
    if same and known.stamp == stamp:
        return np.int64(known.request), requests
    request = work.lm_requests[requests]
    position = ranked.target_bounds[target]
    request.cached = slot
    request.end = ranked.target_bounds[target + 1]
    if same:  # scored for an earlier stack, so the request is complete
        request.total = known.prob
        request.state = known.state
        request.position = request.end
    else:
        request.total = 0.0
        request.state = state
        request.position = position
        known.prob = 0.0  # correct for a phrase without words, which is never scored
        known.state = state
    known.key = key
    known.request = requests
    known.stamp = stamp
    return requests, requests + 1


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def _remember(work, number):
    """Store the result of a request in the cache, unless another request has taken its slot in the meantime."""
    request = work.lm_requests[number]
    known = work.cache[request.cached]
    if known.request == number:
        known.prob = request.total
        known.state = request.state


@kernel(**UNCOUNTED)
def answer_requests(lm, ranked, work, requests):
    """Score all requests to a single LM together, word by word, and update ``Work.cache``.

    Each round first begins one look-up for every request, then ends all of these look-ups. The processor's cache misses
    of different requests thus overlap, which saves time because the LM is much larger than the processor's caches.

    Args:
        lm: ``LmArrays``.
        work: ``Work``; ``waiting`` contains the indices of the requests that still have words to score.
        requests: number of requests.
    """
    waiting, count = work.scratch.waiting, 0
    for number in range(requests):
        request = work.lm_requests[number]
        if request.position < request.end:
            waiting[count] = number
            count += 1
    words, alone_state, alone_rest = ranked.target_words[0], ranked.alone_state[0], ranked.alone_rest[0]
    while count > 0:
        work.counts[QUERIES] += count
        for k in range(count):
            request = work.lm_requests[waiting[k]]
            request.total, request.state, request.slot, request.hit = begin_look_up(
                lm, request.total, request.state, words[request.position]
            )
        # incomplete requests are moved to the front of ``waiting``
        left = 0
        for k in range(count):
            number = waiting[k]
            request = work.lm_requests[number]
            position = request.position
            request.total, request.state, found = end_look_up(
                lm, request.total, request.state, words[position], np.int64(request.slot), request.hit != 0
            )
            if found:
                request.position = position + 1
                if request.state == alone_state[position]:
                    # same state as in the phrase alone: the preceding phrases do not affect the remaining words
                    request.total += alone_rest[position]
                    request.state = alone_state[request.end - 1]
                    request.position = request.end
            if request.position < request.end:
                waiting[left] = number
                left += 1
            else:
                _remember(work, number)
        count = left


@kernel(**UNCOUNTED)
def first_joint_state(lms, work):
    """Clear the joint states of the previous sentence and their cached scores; return the joint state after ``<s>``."""
    work.counts[JOINT_STATES] = 0
    work.joint_slots[:] = FREE
    # the keys of the cache contain joint states, which are renumbered
    for slot in range(work.cache.shape[0]):
        work.cache[slot].key = -1
    for n in range(len(lms.arrays)):
        work.joint_states[0, n] = lms.starts[n]
    return number_row(work.joint_states, work.joint_slots, work.counts, JOINT_STATES)


@kernel(**UNCOUNTED)
def answer_joint_requests(lms, ranked, work, constants, requests):
    """Score the first ``requests`` entries of ``Work.lm_requests`` with all LMs, and update ``Work.cache``."""
    for number in range(requests):
        request = work.lm_requests[number]
        if request.position == request.end:  # scored from the cache
            continue
        total = 0.0
        # the outer loop is over LMs, since the loop over the words may end at a different word for each LM
        for n in range(len(lms.arrays)):
            state = work.joint_states[request.state, n]
            score = 0.0
            for position in range(request.position, request.end):
                prob, state = query(lms.arrays[n], state, ranked.target_words[n, position])
                work.counts[QUERIES] += 1
                score += prob
                if state == ranked.alone_state[n, position]:
                    # same state as in the phrase alone: the preceding phrases do not affect the remaining words
                    score += ranked.alone_rest[n, position]
                    state = ranked.alone_state[n, request.end - 1]
                    break
            work.joint_states[work.counts[JOINT_STATES], n] = state
            total += lms.weights[n] * score
        request.total = np.float32(total / constants.lm_weight)
        request.state = number_row(work.joint_states, work.joint_slots, work.counts, JOINT_STATES)
        _remember(work, number)


@kernel(**UNCOUNTED)
def joint_end(lms, work, constants, state):
    """Return the combined LM score of ``</s>`` in a joint state."""
    total = 0.0
    for n in range(len(lms.arrays)):
        prob, _ = query(lms.arrays[n], work.joint_states[state, n], lms.ends[n])
        total += lms.weights[n] * prob
    return total / constants.lm_weight
