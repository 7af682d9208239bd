"""What an n-gram LM gives the words of a text when the words outside a shortlist are one class, as for the network."""

import numpy as np

from rnnsmt.kernels.decorator import kernel
from rnnsmt.lm.kernels.automaton import query

PRECISE = 1e-3
"""A difference to 1 below this has lost too many digits of the LM's float32."""


@kernel()
def _mass(lm, state, members):
    mass = 0.0
    for word in members:
        mass += np.exp(np.float64(query(lm, state, word)[0]))
    return mass


@kernel()
def event_log_p(lm, start, words, known, end, inside, outside, out):
    """ln p of every word of sentences that end in ``end`` each; of the class where ``known`` says 0.

    outside: the words of the class. inside: all others, or none where it does not pay to see what they leave.
    """
    state = start
    for i in range(len(words)):
        if not known[i]:
            mass = 1.0 - _mass(lm, state, inside) if len(inside) else 0.0
            if mass < PRECISE:
                mass = _mass(lm, state, outside)
            out[i] = np.log(max(mass, 1e-40))
        prob, state = query(lm, state, words[i])
        if known[i]:
            out[i] = prob
        if words[i] == end:
            state = start
