"""What an n-gram LM gives the words of a text when the words outside a shortlist are one class, as for the network."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from rnnsmt.compiled import kernel
from rnnsmt.lm.automaton import Automaton, query
from rnnsmt.lm.bytescan import Interner


@kernel()
def _events(lm, start, words, known, end, members, inside, out):
    """ln p of every word of sentences that end in ``end`` each; of the class where ``known`` says 0.

    members: words whose probabilities are added up; inside: whether they are the class or all other words.
    """
    state = start
    for i in range(len(words)):
        if not known[i]:
            mass = 0.0
            for word in members:
                mass += np.exp(np.float64(query(lm, state, word)[0]))
            if not inside:
                mass = 1.0 - mass
            out[i] = np.log(max(mass, 1e-40))
        prob, state = query(lm, state, words[i])
        if known[i]:
            out[i] = prob
        if words[i] == end:
            state = start


def event_scores(lm: Automaton, lines: Iterable[list[str]], shortlist: list[str]) -> NDArray[np.float64]:
    """ln p of every word and ``</s>`` of some sentences; words outside ``shortlist`` are one class.

    The probability of the class is the sum over all words of the LM outside the shortlist, ``<unk>`` among them. They
    stay themselves in the contexts of other words.
    """
    listed = Interner()
    listed.add([word.encode() for word in shortlist])
    short = np.unique(lm.word_ids(listed))
    special = Interner()
    special.add([b"<s>"])
    every = np.arange(len(lm.arrays.unigrams), dtype=np.int32)
    begin = lm.word_ids(special)
    outside = np.union1d(np.setdiff1d(every, np.concatenate([short, begin, [lm.end]])), [lm.unk])
    # whichever is fewer; many words outside have so much probability that 1 minus the rest is precise
    inside = len(outside) <= 4 * len(short)
    rest = np.append(np.setdiff1d(short, [lm.unk]), lm.end)
    members = np.unique(outside if inside else rest).astype(np.int32)
    tokens, known = Interner(), []
    ids, listed_words = [], set(shortlist)
    for line in lines:
        ids.append(tokens.add([word.encode() for word in line]))
        known += [word in listed_words for word in line] + [True]
    found = lm.word_ids(tokens)
    words = np.concatenate([np.append(found[part], lm.end) for part in ids]).astype(np.int32)
    out = np.empty(len(words))
    _events(lm.arrays, lm.start, words, np.array(known), lm.end, members, inside, out)
    return out
