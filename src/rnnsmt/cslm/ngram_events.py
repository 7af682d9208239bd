"""What an n-gram LM gives the words of a text when the words outside a shortlist are one class, as for the network."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from rnnsmt.compiled import kernel
from rnnsmt.lm.automaton import Automaton, query
from rnnsmt.lm.bytescan import Interner

PRECISE = 1e-3
"""A difference to 1 below this has lost too many digits of the LM's float32."""


@kernel()
def _mass(lm, state, members):
    mass = 0.0
    for word in members:
        mass += np.exp(np.float64(query(lm, state, word)[0]))
    return mass


@kernel()
def _events(lm, start, words, known, end, inside, outside, out):
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


def event_scores(lm: Automaton, lines: Iterable[list[str]], shortlist: list[str]) -> NDArray[np.float64]:
    """ln p of every word and ``</s>`` of some sentences; words outside ``shortlist`` are one class.

    The probability of the class is the sum over all words of the LM outside the shortlist, ``<unk>`` among them. They
    stay themselves in the contexts of other words. Words of the shortlist that the LM does not know have the
    probability of ``<unk>`` each: there the sum over all events is a little above 1. ``<s>`` and ``</s>`` as words of
    a text are unknown words.
    """
    listed = Interner()
    listed.add([word.encode() for word in shortlist])
    short = np.unique(lm.word_ids(listed))
    special = Interner()
    special.add([b"<s>"])
    every = np.arange(len(lm.arrays.unigrams), dtype=np.int32)
    begin = lm.word_ids(special)
    outside = np.union1d(np.setdiff1d(every, np.concatenate([short, begin, [lm.end]])), [lm.unk]).astype(np.int32)
    inside = np.append(np.setdiff1d(short, [lm.unk]), lm.end).astype(np.int32)
    if len(outside) <= 4 * len(short):
        inside = inside[:0]
    tokens, known = Interner(), []
    ids, listed_words = [], set(shortlist)
    for line in lines:
        ids.append(tokens.add([word.encode() for word in line]))
        known += [word in listed_words for word in line] + [True]
    found = lm.word_ids(tokens)
    found[np.isin(found, [*begin, lm.end])] = lm.unk
    words = np.concatenate([np.append(found[part], lm.end) for part in ids]).astype(np.int32)
    out = np.empty(len(words))
    _events(lm.arrays, lm.start, words, np.array(known), lm.end, inside, outside, out)
    return out
