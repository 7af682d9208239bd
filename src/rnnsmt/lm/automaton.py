"""N-gram LM as an automaton in flat arrays, which the decoder queries.

A state is the integer that represents a context: the longest suffix of the preceding words that is the context of an
n-gram or has a back-off weight. A hash look-up of (state, word) gives the natural-log probability and the next state.
If there is no entry, the back-off weight of the state is added and the look-up is repeated for the next shorter
context. The results are those of KenLM's query interface, and states are minimised as in KenLM: they do not contain
words that cannot affect later probabilities (Heafield 2011, section 4.1).
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
"""Entry of the hash table: key (state << 32 | word), natural-log probability, and next state. An entry has 16 bytes, so
that a look-up causes only one cache miss."""

STATE = np.dtype([("link", np.int32), ("backoff", np.float32), ("offset", np.uint32), ("mask", np.uint32)])
"""Data of a state: ``link``, the next shorter context that is a state; ``backoff``, the back-off weight (natural log)
for moving to ``link``; ``offset`` and ``mask``, which select the elements of ``LmArrays.followers`` that belong to the
state: ``mask`` + 1 elements (a power of two) from ``offset`` on."""

SLOTS = 1.5
"""Number of slots of the hash table per entry. With 2 slots, the table is a third larger, and no search is faster."""

FOLLOWERS = 4
"""Maximum number of followers of a state divided by the number of its elements in ``LmArrays.followers``."""

UNIGRAM = np.dtype([("prob", np.float32), ("next", np.int32)])
"""Natural-log probability and next state of a word in the empty context."""


class LmArrays(NamedTuple):
    """Arrays of the automaton for kernels. State 0 is the empty context.

    Attributes:
        rows: ``ROW`` [slots], hash table with open addressing; free slots have key -1.
        states: ``STATE`` [states].
        unigrams: ``UNIGRAM`` [words], entries of the empty context by word id.
        followers: ``uint64`` [n], a filter of the entries in ``rows``: every entry (state, word) sets one of the bits
            that belong to the state. If the bit is not set, there is no entry (``may_follow``). Most words do not
            follow a long context; for them, the filter avoids a look-up in ``rows``, a larger array in which a look-up
            is a cache miss. The first element is 0; it belongs to all states without followers.
    """

    rows: np.ndarray
    states: np.ndarray
    unigrams: np.ndarray
    followers: np.ndarray


@dataclass
class Automaton:
    """An n-gram LM for queries.

    Attributes:
        arrays: the arrays for kernels.
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
        """Return the ids in the LM of the words of another vocabulary, int32 [n]; unknown words become ``<unk>``."""
        ids = self.words.ids_of(words)
        return np.where(ids < 0, self.unk, ids).astype(np.int32)

    def score_words(self, text: str, begin: bool = True, end: bool = True) -> float:
        """Return the natural-log probability of a tokenised sentence (for tests and single queries).

        Args:
            text: words, separated by white space.
            begin: begin in the state after ``<s>``, otherwise in the empty context.
            end: include the probability of ``</s>``.
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
    rows = np.zeros(int(sum(counts[1:]) * SLOTS) + 1, ROW)
    rows["key"] = -1
    # A node is an n-gram: node 0 is the empty n-gram, followed by the n-grams of order 1, 2 and so on. node_links: node
    # of the longest proper suffix; extends: 1 if the n-gram is the context of another n-gram.
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
    """Return the key of (state, word), and the slot at which the search in a hash table with ``size`` slots begins."""
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
    """Return the index in ``LmArrays.followers`` and the bit that record whether the word can follow the state.

    Args:
        state: element of ``LmArrays.states``.
        word: hash of the word, from ``word_hash``.
    """
    index = np.uint64(state.offset) + ((word >> np.uint64(32)) & np.uint64(state.mask))
    return index, np.uint64(1) << (word >> np.uint64(58))


@kernel(inline="always")
def may_follow(lm, state, word):
    """Return whether ``rows`` may have an entry for a state and a word; ``word`` is the hash of the word."""
    index, bit = follower_bit(lm.states[state], word)
    return lm.followers[index] & bit != np.uint64(0)


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def back_off(lm, total, state, word):
    """Back off to the longest context for which ``may_follow`` is true; ``word`` is the hash of the word.

    Returns:
        ``total`` plus the back-off weights, and the state of the context, which may be 0.
    """
    while state != 0 and not may_follow(lm, state, word):
        total += lm.states[state].backoff
        state = lm.states[state].link
    return total, state


@kernel(forceinline=True, **INNER, **UNCOUNTED)
def begin_look_up(lm, total, state, word):
    """Begin a look-up: call ``back_off``, and read the first slot that may contain the entry.

    A caller with many look-ups begins all of them before it ends the first, so that their cache misses overlap.

    Returns:
        ``total`` plus the back-off weights; the state; the slot; and whether the slot contains the entry. For state 0,
        the last two are unused, because the entry is in ``LmArrays.unigrams``.
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
        If there is an entry: ``total`` plus the log probability, the next state, and True. Otherwise: ``total`` plus
        the back-off weight, the next shorter context, for which the look-up must be repeated, and False.
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
    """Return the node of the n-gram that consists of the node ``state`` and ``word``, or -1 if it is not in the model.

    The node of a unigram is ``word`` + 1; other nodes are in the hash table.
    """
    if state == 0:
        return np.int64(word) + 1
    key, slot = lm_slot(state, word, rows.shape[0])
    row = rows[probe(rows, key, slot)]
    return np.int64(row.next) if row.key == key else np.int64(-1)


@kernel()
def insert(rows, ngrams, values, first, extends, node_links):
    """Insert the n-grams of one order as nodes with consecutive numbers from ``first``.

    Orders must be inserted in ascending order. While the automaton is built, ``key`` and ``next`` of the hash table
    contain nodes instead of states; ``finish`` replaces the nodes in ``next`` by states.

    Args:
        rows: hash table, updated.
        ngrams: int32 [n, order].
        values: float32 [n], natural-log probabilities.
        first: node of the first n-gram.
        extends: uint8 [nodes], set to 1 for n-grams that are contexts of the inserted n-grams.
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
        # find the longest suffix of the context that forms an n-gram with the last word; the unigram always exists
        suffix = np.int64(node_links[context])
        below = _child(rows, suffix, ngrams[i, order - 1])
        while below < 0:
            suffix = np.int64(node_links[suffix])
            below = _child(rows, suffix, ngrams[i, order - 1])
        node_links[first + i] = below
    return np.int64(-1)


@kernel()
def finish(rows, is_state, node_links, next_state, states, unigrams):
    """Replace nodes by states: the state of a node is the node itself or its longest suffix that is a state.

    Args:
        rows: hash table; ``next`` is updated.
        is_state: bool [nodes], whether a node is a context or has a back-off weight.
        node_links: int32 [nodes], as filled by ``insert``.
        next_state: int32 [nodes], zeros; filled with the state of each node.
        states: ``STATE`` [nodes below the highest order]; ``link`` is filled.
        unigrams: ``UNIGRAM`` [words]; ``next`` is filled.
    """
    # the suffix of a node has a smaller number than the node, so that its state is known
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
    """Fill ``offset`` and ``mask`` of all states; return ``LmArrays.followers``."""
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
