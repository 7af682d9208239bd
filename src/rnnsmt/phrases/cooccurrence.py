"""Co-occurrence of source and target phrases: the number of sentence pairs that contain both.

The phrases of one side are nodes of a trie; node 0 is the empty phrase. A search descends the trie from each word of a
sentence, so that every phrase of the sentence is found. Repetitions in a sentence count once.
"""

from typing import Any, NamedTuple

import numpy as np

from rnnsmt.base.kernels.arrays import lower_bound
from rnnsmt.base.kernels.decorator import kernel
from rnnsmt.base.kernels.hashing import mix
from rnnsmt.base.kernels.strings import find, hash_bytes, intern

_SPACE, _NEWLINE = 32, 10

NOWHERE = -1
"""Mark of a free slot, an unknown word, or no sentence."""

SEARCHED = 8
"""If the sentence list of the target phrase is more than this many times as long as that of the source phrase, it is
searched instead of being read completely."""


class Trie(NamedTuple):
    """A trie of phrases; edges are words, in a hash table with open addressing.

    Attributes:
        keys: int64 [slots, a power of two], node << 32 | word, or -1 in a free slot.
        children: int32 [slots], the node that the edge leads to.
        is_phrase: bool [capacity], whether a phrase ends at a node.
        size: int64 [2], number of nodes, number of words of the longest phrase.
    """

    keys: np.ndarray
    children: np.ndarray
    is_phrase: np.ndarray
    size: np.ndarray


@kernel(inline="always")
def _slot(trie: Any, node: Any, word: Any) -> Any:
    """Return the key of (node, word), and the slot that contains it or where it is to be inserted."""
    key = (np.int64(node) << np.int64(32)) | np.int64(word)
    mask = trie.keys.shape[0] - 1
    slot = np.int64(mix(np.uint64(key)) & np.uint64(mask))
    while trie.keys[slot] != key and trie.keys[slot] != NOWHERE:
        slot = (slot + 1) & mask
    return key, slot


@kernel()
def copy_trie(old: Any, new: Any) -> None:
    """Copy a trie into an empty one with a larger capacity."""
    for place in range(old.keys.shape[0]):
        if old.keys[place] != NOWHERE:
            key, slot = _slot(new, old.keys[place] >> np.int64(32), old.keys[place] & np.int64(0xFFFFFFFF))
            new.keys[slot] = key
            new.children[slot] = old.children[place]
    new.is_phrase[: old.size[0]] = old.is_phrase[: old.size[0]]
    new.size[:] = old.size


@kernel()
def add_phrases(block: Any, bounds: Any, side: Any, words: Any, trie: Any, nodes: Any) -> None:
    """Add the phrases of one side of a table's lines.

    Args:
        block: uint8, lines.
        bounds: int64 [lines, 3, 2], as filled by ``split_phrase_lines``.
        side: SOURCE or TARGET.
        words: vocabulary, ``rnnsmt.base.kernels.strings.InternTable``, updated; must have capacity for the block.
        trie: the phrases, updated; must have capacity for the block.
        nodes: int32 [lines], filled with the node of each phrase.
    """
    for line in range(bounds.shape[0]):
        position, end = bounds[line, side, 0], bounds[line, side, 1]
        node, length = np.int64(0), 0
        while position < end:
            stop = position
            while stop < end and block[stop] != _SPACE:
                stop += 1
            if stop > position:
                key, slot = _slot(trie, node, intern(words, block, position, stop))
                if trie.keys[slot] == NOWHERE:
                    trie.keys[slot] = key
                    trie.children[slot] = trie.size[0]
                    trie.size[0] += 1
                node = np.int64(trie.children[slot])
                length += 1
            position = stop + 1
        trie.is_phrase[node] = True
        trie.size[1] = max(trie.size[1], length)
        nodes[line] = node


@kernel()
def number_lines(text: Any, words: Any, numbers: Any, offsets: Any) -> Any:
    """Convert whole lines to word numbers; return the number of words.

    Args:
        text: uint8, lines with their newline.
        words: vocabulary, ``rnnsmt.base.kernels.strings.InternTable``; unknown words become NOWHERE.
        numbers: int32, filled; must have the size of all words.
        offsets: int64 [lines + 1], filled with where each line begins.
    """
    filled, line, position = 0, 0, 0
    offsets[0] = 0
    while position < text.size:
        stop = position
        while text[stop] != _SPACE and text[stop] != _NEWLINE:
            stop += 1
        if stop > position:
            numbers[filled] = find(words, text, position, stop, hash_bytes(text, position, stop))
            filled += 1
        if text[stop] == _NEWLINE:
            line += 1
            offsets[line] = filled
        position = stop + 1
    return filled


@kernel()
def find_phrases(numbers: Any, offsets: Any, trie: Any, latest: Any, nodes: Any, sentences: Any) -> Any:
    """Find the phrases of every sentence, each once per sentence; return the number of (phrase, sentence) pairs.

    Args:
        numbers, offsets: sentences, as filled by ``number_lines``.
        trie: the phrases.
        latest: int32 [nodes], work space, initialised to NOWHERE: the last sentence in which a phrase was found.
        nodes, sentences: int32, filled with phrases and their sentences; sentences are ascending.
    """
    occurrences = 0
    for sentence in range(offsets.shape[0] - 1):
        for first in range(offsets[sentence], offsets[sentence + 1]):
            node = np.int64(0)
            for place in range(first, offsets[sentence + 1]):
                if numbers[place] == NOWHERE:
                    break
                _, slot = _slot(trie, node, numbers[place])
                if trie.keys[slot] == NOWHERE:
                    break
                node = np.int64(trie.children[slot])
                if trie.is_phrase[node] and latest[node] != sentence:
                    latest[node] = sentence
                    nodes[occurrences] = node
                    sentences[occurrences] = sentence
                    occurrences += 1
    return occurrences


@kernel()
def sort_by_phrase(nodes: Any, sentences: Any, ends: Any, out: Any) -> None:
    """Group the sentences by phrase, in ascending order (counting sort).

    Args:
        nodes, sentences: int32 [found], as filled by ``find_phrases``.
        ends: int64 [nodes], where the group of each phrase begins in ``out``; afterwards, where it ends.
        out: int32 [found], filled.
    """
    for i in range(nodes.shape[0]):
        out[ends[nodes[i]]] = sentences[i]
        ends[nodes[i]] += 1


@kernel()
def count_together(sources: Any, targets: Any, source_lists: Any, target_lists: Any, marks: Any, joint: Any) -> None:
    """Add the number of sentence pairs that contain both phrases of each pair to ``joint``.

    Args:
        sources, targets: int32 [pairs], nodes of the phrases; fast if pairs of the same source are adjacent.
        source_lists, target_lists: sentences of every node: where those of each node begin, int64 [nodes + 1], and the
            sentences, int32, ascending.
        marks: int32 [sentences], work space, initialised to NOWHERE: the last source phrase that marked each sentence.
        joint: int32 [pairs], updated.
    """
    source_starts, source_sentences = source_lists
    target_starts, target_sentences = target_lists
    marked = np.int64(NOWHERE)
    for pair in range(sources.shape[0]):
        source, target = sources[pair], targets[pair]
        begin, end = source_starts[source], source_starts[source + 1]
        low, high = target_starts[target], target_starts[target + 1]
        if begin == end or low == high:
            continue
        together = 0
        if high - low > SEARCHED * (end - begin):
            # binary search of the long target list, from the last position found
            for i in range(begin, end):
                low = lower_bound(target_sentences, low, high, source_sentences[i])
                together += int(low < high and target_sentences[low] == source_sentences[i])
        else:
            # mark the sentences of the source phrase once for all adjacent pairs, then count the marks in the target
            # list
            if marked != source:
                for i in range(begin, end):
                    marks[source_sentences[i]] = source
                marked = np.int64(source)
            for i in range(low, high):
                together += int(marks[target_sentences[i]] == source)
        joint[pair] += together
