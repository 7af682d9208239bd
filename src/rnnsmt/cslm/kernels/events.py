"""Probabilities by an n-gram LM where all words outside a shortlist are one class, as for the network; compiled."""

import numpy as np

from rnnsmt.base.kernels.decorator import kernel
from rnnsmt.lm.automaton import query

PRECISE = 1e-3
"""Smallest usable value of 1 - mass: below it, too many digits of the LM's float32 probabilities cancel."""


@kernel()
def _mass(lm, state, members):
    """Return the sum of p(word | state) over some words."""
    mass = 0.0
    for word in members:
        mass += np.exp(np.float64(query(lm, state, word)[0]))
    return mass


@kernel()
def event_log_p(lm, start, words, known, end, inside, outside, out):
    """Compute ln p of every word of a text; for a word outside the shortlist, of the class of all such words.

    Args:
        lm: the automaton, ``rnnsmt.lm.automaton.LmArrays``.
        start: the state at the beginning of a sentence.
        words: int32 [N], LM ids of all sentences one after the other, each ending in ``end``.
        known: bool [N], whether a word is in the shortlist.
        end: LM id of ``</s>``.
        inside: int32, the words outside the class, including ``</s>``; empty if the sum over ``outside`` is cheaper.
        outside: int32, the words of the class.
        out: float64 [N], filled.
    """
    state = start
    for i in range(len(words)):
        if not known[i]:
            # the complement of the shortlist, summed directly if that has cancelled or ``inside`` is empty
            mass = 1.0 - _mass(lm, state, inside) if len(inside) else 0.0
            if mass < PRECISE:
                mass = _mass(lm, state, outside)
            out[i] = np.log(max(mass, 1e-40))
        # the context holds the word itself, also if it is outside the shortlist
        prob, state = query(lm, state, words[i])
        if known[i]:
            out[i] = prob
        if words[i] == end:
            state = start
