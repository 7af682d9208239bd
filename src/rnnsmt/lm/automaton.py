"""N-gram LM as an automaton over flat arrays, for the queries of the decoder.

A state is an integer: the longest known context that can be extended or that has a back-off weight. One hash look-up of
(state, word) gives the natural-log probability and the next state. If there is no entry, the state's back-off weight is
added and the look-up is repeated for the next shorter context. Results are those of KenLM's query interface: the state
after a word is KenLM's minimised state, so that states with equal futures compare equal (Heafield 2011, section 4.1).
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rnnsmt.base.io import InputError
from rnnsmt.base.kernels.strings import Interner
from rnnsmt.lm.arpa import Arpa, read_arpa
from rnnsmt.lm.kernels.automaton import ROW, STATE, UNIGRAM, LmArrays, finish, insert, score_sequence

LN10 = float(np.log(10.0))

MISSING_UNK_LOG10 = -100.0
"""Log10 probability of unknown words if the ARPA file does not contain ``<unk>``, as in KenLM."""


@dataclass
class Automaton:
    """An n-gram LM for queries.

    Attributes:
        arrays: the automaton.
        words: vocabulary.
        order: maximum n-gram length.
        start: state after ``<s>``.
        unk: id of ``<unk>``.
        end: id of ``</s>``.
    """

    arrays: LmArrays
    words: Interner
    order: int
    start: int
    unk: int
    end: int

    def word_ids(self, words: Interner) -> np.ndarray:
        """Return the LM's ids of another vocabulary's words, int32 [n]; unknown words become ``<unk>``."""
        ids = self.words.ids_of(words)
        return np.where(ids < 0, self.unk, ids).astype(np.int32)

    def score_words(self, text: str, begin: bool = True, end: bool = True) -> float:
        """Return the natural-log probability of a tokenised sentence (for tests and single queries).

        Args:
            text: words, separated by white space.
            begin: whether the sentence begins in the state after ``<s>``.
            end: whether ``</s>`` is included.
        """
        tokens = Interner()
        order = tokens.add([word.encode("utf-8") for word in text.split()])
        ids = self.word_ids(tokens)[order] if len(tokens) else np.zeros(0, np.int32)
        if end:
            ids = np.append(ids, np.int32(self.end)).astype(np.int32)
        return float(score_sequence(self.arrays, self.start if begin else 0, ids)[0])


def build_automaton(arpa: Arpa, where: str = "the LM") -> Automaton:
    """Build the automaton of an LM.

    Args:
        arpa: the LM.
        where: name of the LM in error messages.

    Raises:
        InputError: ``<s>`` or ``</s>`` is missing, an n-gram occurs twice, or its context is not in the model.
    """
    words = arpa.words
    known = {name: int(i) for name, i in zip((b"<s>", b"</s>", b"<unk>", b"<UNK>"), _lookup(words), strict=True)}
    if known[b"<s>"] < 0 or known[b"</s>"] < 0:
        raise InputError(f"{where}: <s> and </s> must be among the 1-grams")
    unk = max(known[b"<unk>"], known[b"<UNK>"])
    probs = [p * np.float32(LN10) for p in arpa.log10_probs]
    backoffs = [b * np.float32(LN10) for b in arpa.log10_backoffs]
    if unk < 0:
        unk = len(probs[0])
        probs[0] = np.append(probs[0], np.float32(MISSING_UNK_LOG10 * LN10)).astype(np.float32)
        backoffs[0] = np.append(backoffs[0], np.float32(0)).astype(np.float32)
    counts = [len(p) for p in probs]
    if sum(counts) + 1 >= 1 << 31:
        raise InputError(f"{where}: more than 2^31 n-grams")
    # hash table with at most two thirds of the slots in use
    rows = np.zeros(1 << max(int(sum(counts[1:]) * 1.5), 8).bit_length(), ROW)
    rows["key"] = -1
    # Nodes are n-grams: 0 is the empty one, then those of each order. node_links: node of the longest proper suffix;
    # extends: 1 if the n-gram is the context of another one.
    node_links = np.zeros(1 + sum(counts), np.int32)
    extends = np.zeros(1 + sum(counts), np.uint8)
    first = 1 + counts[0]
    for order in range(2, arpa.order + 1):
        bad = int(insert(rows, arpa.ngrams[order - 1], probs[order - 1], first, extends, node_links))
        if bad != -1:
            index, what = (bad, "has a context that is not in the model") if bad >= 0 else (-2 - bad, "is there twice")
            raise InputError(f"{where}, line {arpa.lines[order - 1] + index}: the n-gram {what}")
        first += counts[order - 1]
    # n-grams of the highest order are not contexts, and therefore not states
    size = 1 + (sum(counts[:-1]) if arpa.order > 1 else counts[0])
    weights = np.concatenate([np.zeros(1, np.float32), *backoffs])
    is_state = (extends > 0) | (weights != 0)
    is_state[0], is_state[size:] = True, False
    states, unigrams = np.zeros(size, STATE), np.zeros(counts[0], UNIGRAM)
    states["backoff"] = weights[:size]
    unigrams["prob"] = probs[0]
    finish(rows, is_state, node_links, np.zeros(len(node_links), np.int32), states, unigrams)
    start = int(unigrams["next"][known[b"<s>"]])
    return Automaton(LmArrays(rows, states, unigrams), words, arpa.order, start, unk, known[b"</s>"])


def _lookup(words: Interner) -> np.ndarray:
    """Return the ids of ``<s>``, ``</s>``, ``<unk>`` and ``<UNK>``, -1 if missing."""
    probe = Interner()
    probe.add([b"<s>", b"</s>", b"<unk>", b"<UNK>"])
    return words.ids_of(probe)


def load_automaton(path: str | Path) -> Automaton:
    """Read an ARPA file and build its automaton.

    Raises:
        InputError: as ``read_arpa`` and ``build_automaton``.
    """
    return build_automaton(read_arpa(path), str(path))
