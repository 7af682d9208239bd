"""N-gram LM as an automaton over flat arrays, for the queries of the decoder.

A state is an integer: the longest known context that can be extended or that has a back-off weight. One hash look-up of
(state, word) gives the natural-log probability and the next state. If there is no entry, the state's back-off weight is
added and the look-up is repeated for the next shorter context. Results are those of KenLM's query interface: the state
after a word is KenLM's minimised state, without words that cannot affect later probabilities (Heafield 2011, section
4.1).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rnnsmt.base.errors import InputError
from rnnsmt.base.kernels.decorator import INNER, UNCOUNTED, kernel
from rnnsmt.base.kernels.numbers import GOLDEN_RATIO, mix
from rnnsmt.base.kernels.strings import Interner
from rnnsmt.base.paths import StrPath
from rnnsmt.lm.arpa import Arpa, read_arpa

LN10 = float(np.log(10.0))

MISSING_UNK_LOG10 = -100.0
"""Log10 probability of unknown words if the ARPA file does not contain ``<unk>``, as in KenLM."""

ROW = np.dtype([("key", np.int64), ("prob", np.float32), ("next", np.int32)])
"""Row of the hash table: (state << 32 | word), natural-log probability and next state; 16 bytes, so that a look-up
causes one cache miss."""

STATE = np.dtype([("link", np.int32), ("backoff", np.float32), ("offset", np.uint32), ("mask", np.uint32)])
"""Next shorter context that is a state, the back-off weight (natural log) of moving to it, and the position of the
words that follow the state in ``LmArrays.followers``: ``mask`` + 1 elements, a power of two, beginning at
``offset``."""

FOLLOWERS = 4
"""Maximum number of words that follow a state per element of ``LmArrays.followers``, on average."""

UNIGRAM = np.dtype([("prob", np.float32), ("next", np.int32)])
"""Natural-log probability and next state of a word in the empty context."""


class LmArrays(NamedTuple):
    """Arrays of the automaton for kernels. State 0 is the empty context.

    Attributes:
        rows: ``ROW`` [slots], hash table with open addressing; free slots have key -1.
        states: ``STATE`` [states].
        unigrams: ``UNIGRAM`` [words], entries of the empty context, indexed directly.
        followers: ``uint64`` [n], a filter: for each state, the bits of the words that follow it in ``rows`` are set. A
            word whose bit is not set need not be looked up (``may_follow``). Most words do not follow a long context,
            and this array is smaller than ``rows``, where a look-up is a cache miss. The first element is 0, for states
            that no word follows.
    """

    rows: np.ndarray
    states: np.ndarray
    unigrams: np.ndarray
    followers: np.ndarray


@dataclass
class Automaton:
    """An n-gram LM for queries.

    Attributes:
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
        where: name of the LM in error messages.
    """
    words = arpa.words
    special, reserved = [b"<s>", b"</s>", b"<unk>", b"<UNK>"], Interner()
    reserved.add(special)
    known = {name: int(i) for name, i in zip(special, words.ids_of(reserved), strict=True)}  # -1: missing
    if known[b"<s>"] < 0 or known[b"</s>"] < 0:
        raise InputError(f"{where}: the 1-grams must include <s> and </s>")
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
    rows = np.zeros(sum(counts[1:]) * 2 + 1, ROW)  # hash table with at most half of the slots in use
    rows["key"] = -1
    # Nodes are n-grams: 0 is the empty one, then those of each order. node_links: node of the longest proper suffix;
    # extends: 1 if the n-gram is the context of another one.
    node_links = np.zeros(1 + sum(counts), np.int32)
    extends = np.zeros(1 + sum(counts), np.uint8)
    first = 1 + counts[0]
    for order in range(2, arpa.order + 1):
        bad = int(insert(rows, arpa.ngrams[order - 1], probs[order - 1], first, extends, node_links))
        if bad != -1:
            index, problem = (
                (bad, "has a context that is not in the model") if bad >= 0 else (-2 - bad, "is a duplicate")
            )
            raise InputError(f"{where}, {arpa.place_of(order, index)}: the n-gram {problem}")
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
    followers = collect_followers(rows, states)
    return Automaton(LmArrays(rows, states, unigrams, followers), words, arpa.order, start, unk, known[b"</s>"])


def load_automaton(path: StrPath) -> Automaton:
    """Read an ARPA file and build its automaton."""
    return build_automaton(read_arpa(path), str(path))


@kernel(inline="always")
def lm_slot(state, word, size):
    """Return the key of (state, word), and the slot at which the search in a hash table of this size begins."""
    key = (np.int64(state) << np.int64(32)) | np.int64(word)
    # the hash as a fraction of 2^32, times the size: the size need not be a power of two (Lemire 2019)
    return key, np.int64(((mix(np.uint64(key)) >> np.uint64(32)) * np.uint64(size)) >> np.uint64(32))


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def probe(rows, key, slot):
    """Return the first slot from ``slot`` on that has the key or is free (key -1)."""
    while rows[slot].key != key and rows[slot].key != -1:
        slot += 1
        if slot == rows.shape[0]:
            slot = 0
    return slot


@kernel(inline="always")
def word_hash(word):
    """Return the hash of a word, ``uint64``, for ``follower_bit``."""
    return np.uint64(word) * GOLDEN_RATIO


@kernel(inline="always")
def follower_bit(state, word):
    """Return the element of ``LmArrays.followers`` and the bit in it of a word that follows a state.

    Args:
        state: ``STATE``.
        word: ``word_hash``.
    """
    index = np.uint64(state.offset) + ((word >> np.uint64(32)) & np.uint64(state.mask))
    return index, np.uint64(1) << (word >> np.uint64(58))


@kernel(inline="always")
def may_follow(lm, state, word):
    """Return whether a word, given by its hash, may follow a state; if not, there is no entry in ``rows``."""
    index, bit = follower_bit(lm.states[state], word)
    return lm.followers[index] & bit != np.uint64(0)


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def back_off(lm, total, state, word):
    """Move to the longest context that a word, given by its hash, may follow.

    Return the total plus the back-off weights, and the state, which is 0 if the word follows no longer context.
    """
    while state != 0 and not may_follow(lm, state, word):
        total += lm.states[state].backoff
        state = lm.states[state].link
    return total, state


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def begin_look_up(lm, total, state, word):
    """Begin a look-up: back off as far as the filter demands, and read the first slot that may hold the entry.

    A caller with many look-ups begins all of them before it ends the first, so that their cache misses overlap.

    Returns:
        The total plus the back-off weights, the state, the slot, and whether it holds the entry; in state 0, the entry
        is that of the empty context, and there is no slot.
    """
    total, state = back_off(lm, total, state, word_hash(word))
    slot, hit = np.int64(0), False
    if state != 0:
        key, slot = lm_slot(state, word, lm.rows.shape[0])
        hit = lm.rows[slot].key == key
    return total, state, slot, hit


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def end_look_up(lm, total, state, word, slot, hit):
    """End a look-up with the results of ``begin_look_up``.

    Returns:
        If there is an entry: the total plus the probability, the next state, and True. Else the total plus the back-off
        weight, the next shorter context, in which the word is to be looked up, and False.
    """
    if state == 0:
        unigram = lm.unigrams[word]
        return total + unigram.prob, unigram.next, True
    if not hit:
        key, _ = lm_slot(state, word, lm.rows.shape[0])
        slot = probe(lm.rows, key, slot)
    row = lm.rows[slot]
    if row.key == -1:
        context = lm.states[state]
        return total + context.backoff, context.link, False
    return total + row.prob, row.next, True


@kernel(**UNCOUNTED)
def query(lm, state, word):
    """Return the natural-log probability (float32) of a word in a state, and the next state."""
    total, found = np.float32(0.0), False  # single precision, as in KenLM
    while not found:
        total, state, slot, hit = begin_look_up(lm, total, state, word)
        total, state, found = end_look_up(lm, total, state, word, slot, hit)
    return total, state


@kernel(**UNCOUNTED)
def score_sequence(lm, state, words):
    """Return the sum of natural-log probabilities of a word sequence int32 [n], and the last state."""
    total = 0.0
    for word in words:
        prob, state = query(lm, state, word)
        total += prob
    return total, state


@kernel()
def _child(rows, state, word):
    """Return the node of the n-gram ``state`` + ``word``, or -1.

    Nodes of unigrams are word + 1; others are in the hash table.
    """
    if state == 0:
        return np.int64(word) + 1
    key, slot = lm_slot(state, word, rows.shape[0])
    row = rows[probe(rows, key, slot)]
    return np.int64(row.next) if row.key == key else np.int64(-1)


@kernel()
def insert(rows, ngrams, values, first, extends, node_links):
    """Insert the n-grams of one order as nodes with consecutive numbers from ``first``.

    Orders must be inserted in ascending order. While the automaton is built, keys and ``next`` contain nodes;
    ``finish`` replaces ``next`` by states.

    Args:
        rows: hash table, updated.
        ngrams: int32 [n, order].
        values: float32 [n], natural-log probabilities.
        first: node of the first n-gram.
        extends: uint8 [nodes], set to 1 for contexts.
        node_links: int32 [nodes], filled with the node of the longest proper suffix that is in the model.

    Returns:
        -1 on success, the index of an n-gram whose context is missing, or -2 - index of a duplicate n-gram.
    """
    order = ngrams.shape[1]
    for i in range(ngrams.shape[0]):
        context = np.int64(0)
        for k in range(order - 1):
            context = _child(rows, context, ngrams[i, k])
            if context < 0:
                return np.int64(i)
        key, slot = lm_slot(context, ngrams[i, order - 1], rows.shape[0])
        slot = probe(rows, key, slot)
        if rows[slot].key == key:
            return np.int64(-2 - i)
        rows[slot].key = key
        rows[slot].prob = values[i]
        rows[slot].next = first + i
        extends[context] = 1
        # the longest suffix of the n-gram: a suffix of its context that is followed by the last word; unigrams always
        # exist
        suffix = np.int64(node_links[context])
        below = _child(rows, suffix, ngrams[i, order - 1])
        while below < 0:
            suffix = np.int64(node_links[suffix])
            below = _child(rows, suffix, ngrams[i, order - 1])
        node_links[first + i] = below
    return np.int64(-1)


@kernel()
def finish(rows, is_state, node_links, next_state, states, unigrams):
    """Replace nodes by states: the state of a node is its longest suffix that is a state.

    Args:
        rows: hash table, ``next`` updated.
        is_state: bool [nodes], nodes that are contexts or have a back-off weight.
        node_links: int32 [nodes], as filled by ``insert``.
        next_state: int32 [nodes], work space, zeros: state of each node.
        states: ``STATE`` [nodes below the highest order], ``link`` filled.
        unigrams: ``UNIGRAM`` [words], ``next`` filled.
    """
    # suffixes have smaller node numbers than the node, so their states are known
    for node in range(1, node_links.shape[0]):
        shorter = next_state[node_links[node]]
        next_state[node] = node if is_state[node] else shorter
        if node < states.shape[0]:
            states[node].link = shorter
    for word in range(unigrams.shape[0]):
        unigrams[word].next = next_state[word + 1]
    for slot in range(rows.shape[0]):
        if rows[slot].key != -1:
            rows[slot].next = next_state[rows[slot].next]


@kernel()
def collect_followers(rows, states):
    """Fill ``offset`` and ``mask`` of states; return ``LmArrays.followers``."""
    counts = np.zeros(states.shape[0], np.int64)
    for slot in range(rows.shape[0]):
        if rows[slot].key != -1:
            counts[rows[slot].key >> np.int64(32)] += 1
    size = np.int64(1)
    for state in range(states.shape[0]):
        states[state].offset = 0
        states[state].mask = 0
        if counts[state] > 0:
            capacity = np.int64(1)
            while capacity * FOLLOWERS < counts[state]:
                capacity *= 2
            states[state].offset = size
            states[state].mask = capacity - 1
            size += capacity
    followers = np.zeros(size, np.uint64)
    for slot in range(rows.shape[0]):
        key = rows[slot].key
        if key != -1:
            index, bit = follower_bit(states[key >> np.int64(32)], word_hash(key & np.int64(0xFFFFFFFF)))
            followers[index] |= bit
    return followers
