"""Several n-gram LMs in one search, compiled: their states together are one integer, like the state of a single one.

Such a *joint state* is a row of ``Work.joint_states``, numbered as they come up in a sentence. What the LMs say of a
phrase is one number too, the sum of their weighted scores divided by ``SearchConstants.lm_weight``.
"""

import numpy as np

from rnnsmt.kernels.decorator import INNER, kernel
from rnnsmt.kernels.hashing import mix
from rnnsmt.lm.kernels.automaton import query
from rnnsmt.search.kernels.records import JOINT_STATES, QUERIES

_FREE = -1


@kernel(**INNER)
def _number(work, states):
    """The number of a joint state ``int32`` [LMs]."""
    last = work.joint_slots.shape[0] - 1
    key = np.uint64(0)
    for n in range(states.shape[0]):
        key = mix(key ^ np.uint64(states[n]))
    slot = np.int64(key & np.uint64(last))
    while work.joint_slots[slot] != _FREE:
        known = np.int64(work.joint_slots[slot])
        same = True
        for n in range(states.shape[0]):
            same = same and work.joint_states[known, n] == states[n]
        if same:
            return np.int32(known)
        slot = (slot + 1) & last
    number = np.int32(work.counts[JOINT_STATES])
    work.counts[JOINT_STATES] = number + 1
    work.joint_slots[slot] = number
    work.joint_states[number] = states
    return number


@kernel()
def first_joint_state(lms, work):
    """Forget the joint states of the sentence before, and what the LMs said in them; the state after ``<s>``."""
    work.counts[JOINT_STATES] = 0
    work.joint_slots[:] = _FREE
    for slot in range(work.cache.shape[0]):
        work.cache[slot].key = -1
    return _number(work, lms.starts)


@kernel()
def answer_joint_requests(lms, ranked, work, constants, requests):
    """Ask all LMs for all requests."""
    states = np.empty(len(lms.arrays), np.int32)
    for number in range(requests):
        request = work.requests[number]
        if request.position == request.end:
            continue
        total = 0.0
        for n in range(len(lms.arrays)):
            state = work.joint_states[request.state, n]
            score = 0.0
            for position in range(request.position, request.end):
                prob, state = query(lms.arrays[n], state, ranked.target_words[n, position])
                work.counts[QUERIES] += 1
                score += prob
                if state == ranked.alone_state[n, position]:
                    # from here on the words see nothing of what is before the phrase
                    score += ranked.alone_rest[n, position]
                    state = ranked.alone_state[n, request.end - 1]
                    break
            states[n] = state
            total += lms.weights[n] * score
        request.total = np.float32(total / constants.lm_weight)
        request.state = _number(work, states)
        request.position = request.end
        key = (np.int64(request.from_state) << np.int64(32)) | np.int64(request.target)
        known = work.cache[np.int64(mix(np.uint64(key)) & np.uint64(work.cache.shape[0] - 1))]
        if known.key == key:
            known.prob = request.total
            known.state = request.state


@kernel()
def joint_end(lms, work, constants, state):
    """What the LMs say of ``</s>`` in a joint state."""
    total = 0.0
    for n in range(len(lms.arrays)):
        prob, _ = query(lms.arrays[n], work.joint_states[state, n], lms.ends[n])
        total += lms.weights[n] * prob
    return total / constants.lm_weight
