"""Significance pruning of a phrase table (Johnson et al. 2007): remove pairs that may co-occur by chance.

Among N sentence pairs, C(s) contain the source phrase, C(t) the target phrase and C(s, t) both, regardless of the
number of occurrences and of the alignment. Under independence, C(s, t) has a hypergeometric distribution. The
significance of a pair is -ln of the probability of C(s, t) or more common sentence pairs. For a pair whose three counts
are 1, it is ln N, called alpha.

To count them, the phrases of one side are nodes of a trie; node 0 is the empty phrase. A search descends the trie from
each word of a sentence, so every phrase of the sentence is found. Repetitions in a sentence count once.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.io import InputError, check_utf8, read_byte_lines, read_line_blocks
from rnnsmt.base.kernels.decorator import kernel
from rnnsmt.base.kernels.numbers import lower_bound, mix
from rnnsmt.base.kernels.strings import Interner, intern
from rnnsmt.base.kernels.table_lines import SOURCE, TARGET
from rnnsmt.base.parallel import atomic_blocks
from rnnsmt.base.progress import Meter
from rnnsmt.phrases.table import read_phrase_lines

_SPACE = 32

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
    """Return the key of (node, word), and the slot that contains it or in which it is to be inserted."""
    key = (np.int64(node) << np.int64(32)) | np.int64(word)
    mask = trie.keys.shape[0] - 1
    slot = np.int64(mix(np.uint64(key)) & np.uint64(mask))
    while trie.keys[slot] != key and trie.keys[slot] != NOWHERE:
        slot = (slot + 1) & mask
    return key, slot


@kernel()
def copy_trie(old: Any, new: Any) -> None:
    """Copy a trie into an empty one with a larger capacity."""
    for index in range(old.keys.shape[0]):
        if old.keys[index] != NOWHERE:
            key, slot = _slot(new, old.keys[index] >> np.int64(32), old.keys[index] & np.int64(0xFFFFFFFF))
            new.keys[slot] = key
            new.children[slot] = old.children[index]
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
def find_phrases(numbers: Any, offsets: Any, trie: Any, latest: Any, nodes: Any, sentences: Any) -> Any:
    """Find the phrases of every sentence, each once per sentence; return the number of (phrase, sentence) pairs.

    Args:
        numbers, offsets: sentences, as returned by ``Interner.number`` of a closed vocabulary.
        trie: the phrases.
        latest: int32 [nodes], work space, initialised to NOWHERE: the last sentence in which a phrase was found.
        nodes, sentences: int32, filled with phrases and their sentences; sentences are ascending.
    """
    occurrences = 0
    for sentence in range(offsets.shape[0] - 1):
        for first in range(offsets[sentence], offsets[sentence + 1]):
            node = np.int64(0)
            for index in range(first, offsets[sentence + 1]):
                if numbers[index] == NOWHERE:
                    break
                _, slot = _slot(trie, node, numbers[index])
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
        ends: int64 [nodes], offset of the group of each phrase in ``out``; afterwards, the end of the group.
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
        source_lists, target_lists: sentences of every node: the offsets of the nodes, int64 [nodes + 1], and the
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


EPSILON = 0.001
"""Difference between alpha and the thresholds a+e and a-e, as in Moses."""

LINES = 20_000
"""Number of sentence pairs that are read at a time."""

LEAST_TOKENS = 1 << 16
"""Minimum number of words of the sentences that are counted together, regardless of the memory limit."""

Lists = tuple[NDArray[np.int64], NDArray[np.int32]]
"""Sentences of every node: the offsets of the nodes, int64 [nodes + 1], and the sentences, int32."""


def least_significance(threshold: str, sentences: int) -> float:
    """Return the minimum significance of pairs that are kept.

    Args:
        threshold: ``a+e``, ``a-e`` or a number.
        sentences: number of sentence pairs.
    """
    if threshold in ("a+e", "a-e"):
        return math.log(sentences) + (EPSILON if threshold == "a+e" else -EPSILON)
    return float(threshold)


class PhraseSide:
    """The phrases of one side of a table, and the number of sentences that contain each.

    Attributes:
        words: vocabulary of the phrases.
        trie: the phrases.
        parts: nodes of the phrases of all lines, in int32 arrays, one per block.
        totals: int32 [nodes], number of sentences so far.
    """

    def __init__(self) -> None:
        """Initialise an empty side."""
        self.words = Interner()
        self.trie = _empty_trie(1 << 12)
        self.parts: list[NDArray[np.int32]] = []
        self.totals = np.zeros(0, np.int32)

    def add(self, block: NDArray[np.uint8], bounds: NDArray[np.int64], side: int) -> None:
        """Add the phrases of a block of lines.

        Args:
            block: uint8, lines.
            bounds: int64 [lines, 3, 2], as filled by ``split_phrase_lines``.
            side: SOURCE or TARGET.
        """
        size = int((bounds[:, side, 1] - bounds[:, side, 0]).sum())
        most = size // 2 + len(bounds)
        self.words.reserve(most, size)
        if int(self.trie.size[0]) + most > len(self.trie.is_phrase):
            larger = _empty_trie(max(int(self.trie.size[0]) + most, 3 * len(self.trie.is_phrase) // 2))
            copy_trie(self.trie, larger)
            self.trie = larger
        nodes = np.empty(len(bounds), np.int32)
        add_phrases(block, bounds, side, self.words.table, self.trie, nodes)
        self.parts.append(nodes)

    def sentence_lists(self, numbers: NDArray[np.int32], offsets: NDArray[np.int64]) -> Lists:
        """Return the sentences of every node, and add their numbers to ``totals``.

        Args:
            numbers, offsets: sentences, as returned by ``Interner.number`` of a closed vocabulary.
        """
        size, longest = map(int, self.trie.size)
        # at most ``longest`` phrases begin at each word
        nodes, sentences = np.empty((2, max(longest * len(numbers), 1)), np.int32)
        occurrences = find_phrases(numbers, offsets, self.trie, np.full(size, NOWHERE, np.int32), nodes, sentences)
        starts = np.zeros(size + 1, np.int64)
        counts = np.bincount(nodes[:occurrences], minlength=size)
        np.cumsum(counts, out=starts[1:])
        ordered = np.empty(occurrences, np.int32)
        sort_by_phrase(nodes[:occurrences], sentences[:occurrences], starts[:-1].copy(), ordered)
        if not len(self.totals):
            self.totals = np.zeros(size, np.int32)
        self.totals += counts.astype(np.int32)
        return starts, ordered


def _empty_trie(capacity: int) -> Trie:
    """Return a trie for up to ``capacity`` nodes; its hash table is at most half full."""
    slots = 1 << max(2 * capacity - 1, 1).bit_length()
    size = np.array([1, 0], np.int64)
    return Trie(np.full(slots, NOWHERE, np.int64), np.zeros(slots, np.int32), np.zeros(capacity, np.bool_), size)


def prune_table(
    table: str,
    source: Sequence[str],
    target: Sequence[str],
    threshold: str,
    output: str,
    *,
    threads: int = 1,
    memory_mb: int = 2000,
) -> dict[str, object]:
    """Write the lines of the table whose pairs are significant, unchanged.

    Args:
        table: the phrase table.
        source, target: text that the table was extracted from.
        threshold: see ``least_significance``.
        output: the pruned table.
        threads: number of compression threads.
        memory_mb: memory limit.

    Returns:
        The statistics of the stage.

    Raises:
        InputError: the table is missing or malformed; the text is missing, not UTF-8, empty, or its sides have
            different lengths; no pair is significant.
    """
    sides = PhraseSide(), PhraseSide()
    _read_pairs(table, sides)
    sources, targets = (np.concatenate(side.parts) for side in sides)
    joint = np.zeros(len(sources), np.int32)
    sentences = 0
    for slice_lists in _slices(source, target, sides, memory_mb):
        offsets = slice_lists[0][1]
        lists = [side.sentence_lists(*text) for side, text in zip(sides, slice_lists, strict=True)]
        marks = np.full(len(offsets) - 1, NOWHERE, np.int32)
        count_together(sources, targets, lists[0], lists[1], marks, joint)
        sentences += len(offsets) - 1
    if not sentences:
        raise InputError(f"{source[0]}: contains no sentence pair; the file is empty")
    significance = np.empty(len(joint))
    significances(joint, sources, targets, sides[0].totals, sides[1].totals, sentences, significance)
    least = least_significance(threshold, sentences)
    mask = significance >= least
    if not mask.any():
        raise InputError(
            f"{table}: no pair has a significance of {least:.4g}; check that the table was extracted from this text"
        )
    _write_lines(table, mask, output, threads)
    once = (joint == 1) & (sides[0].totals[sources] == 1) & (sides[1].totals[targets] == 1)
    figures: dict[str, object] = {
        "sentence pairs": sentences,
        "minimum significance": round(least, 4),
        "phrase pairs": len(mask),
        "phrase pairs whose phrases occur once": int(once.sum()),
        "phrase pairs kept": int(mask.sum()),
        "source phrases": int(np.count_nonzero(np.bincount(sources))),
        "source phrases kept": int(np.count_nonzero(np.bincount(sources[mask]))),
    }
    if absent := int((joint == 0).sum()):
        figures["phrase pairs not found in the text"] = absent
    return figures


def _read_pairs(table: str, sides: tuple[PhraseSide, PhraseSide]) -> None:
    """Add the phrases of all lines of a table to both sides.

    Raises:
        InputError: the table is missing, empty or malformed.
    """
    meter = Meter("reading the phrase table", unit="pairs")
    lines = 0
    for text, bounds, _ in read_phrase_lines(table):
        for side, index in zip(sides, (SOURCE, TARGET), strict=True):
            side.add(text, bounds, index)
        lines += len(bounds)
        meter.add(len(bounds))
    if not lines:
        raise InputError(f"{table}: the table is empty; create it again")


Text = tuple[NDArray[np.int32], NDArray[np.int64]]
"""Sentences: word numbers, and the offset of each sentence."""


def _slices(
    source: Sequence[str], target: Sequence[str], sides: tuple[PhraseSide, PhraseSide], memory_mb: int
) -> Iterator[tuple[Text, Text]]:
    """Yield slices of the text that are counted together, source and target.

    Raises:
        InputError: the numbers of files or lines of both sides differ, or text is not UTF-8.
    """
    if len(source) != len(target):
        raise InputError(f"--source has {len(source)} files, --target {len(target)}; specify the same number of each")
    # 32 bytes per phrase occurrence, for the temporary arrays of ``sentence_lists``
    most = max((memory_mb << 20) // (32 * int(max(side.trie.size[1] for side in sides))), LEAST_TOKENS)
    meter = Meter("counting sentence pairs")
    parts: tuple[list[Text], list[Text]] = ([], [])
    tokens = 0
    for paths in zip(source, target, strict=True):
        streams = [read_byte_lines(path) for path in paths]
        number = 0
        while True:
            lines = [list(islice(stream, LINES)) for stream in streams]
            if len(lines[0]) != len(lines[1]):
                longer, shorter = (0, 1) if len(lines[0]) > len(lines[1]) else (1, 0)
                raise InputError(
                    f"{paths[shorter]} ends after line {number + len(lines[shorter])}, but {paths[longer]} has more "
                    "lines; source and target must have the same number of lines"
                )
            if not lines[0]:
                break
            for path, side, of_side, pieces in zip(paths, sides, lines, parts, strict=True):
                block = b"\n".join(of_side) + b"\n"
                check_utf8(block, path, number)
                pieces.append(side.words.number(block, closed=True))
                tokens += len(pieces[-1][0])
            number += len(lines[0])
            meter.add(len(lines[0]))
            if tokens >= most:
                yield _joined(parts[0]), _joined(parts[1])
                parts, tokens = ([], []), 0
    if parts[0]:
        yield _joined(parts[0]), _joined(parts[1])


def _joined(parts: list[Text]) -> Text:
    """Concatenate texts."""
    numbers = np.concatenate([words for words, _ in parts])
    lengths = np.concatenate([np.diff(offsets) for _, offsets in parts])
    return numbers, np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])


def _write_lines(table: str, mask: NDArray[np.bool_], output: str, threads: int) -> None:
    """Copy the lines that are kept."""
    meter = Meter("writing", len(mask), "pairs")
    lines = 0
    with atomic_blocks(output, threads) as out:
        for block in read_line_blocks(table):
            text, count = np.frombuffer(block, np.uint8), block.count(b"\n")
            buffer = np.empty(len(block), np.uint8)
            filled = copy_lines(text, mask[lines : lines + count], buffer)
            out.write(buffer[:filled].data)
            lines += count
            meter.add(count)


@kernel()
def negative_log_p(joint: Any, source: Any, target: Any, total: Any) -> Any:
    """Compute Fisher's exact test, one-sided.

    Args:
        joint, source, target: number of sentence pairs that contain both phrases, the source phrase, the target phrase.
        total: number of all sentence pairs.

    Returns:
        -ln of the probability of ``joint`` or more common sentence pairs under independence.
    """
    if joint <= 0:
        return 0.0
    # contingency table: both, only source, only target, neither
    a, b, c = float(joint), float(source - joint), float(target - joint)
    d = float(total - source - target + joint)
    # hypergeometric probability of this table
    log_p = math.lgamma(a + b + 1) + math.lgamma(c + d + 1) + math.lgamma(a + c + 1) + math.lgamma(b + d + 1)
    log_p -= math.lgamma(a + b + c + d + 1) + math.lgamma(a + 1) + math.lgamma(b + 1)
    log_p -= math.lgamma(c + 1) + math.lgamma(d + 1)
    # tail: sum over ``joint`` and more, relative to the first term; each term from the one before, without lgamma
    term, tail = 1.0, 1.0
    while b > 0 and c > 0 and term > 1e-18 * tail:
        a, d = a + 1, d + 1
        term *= b * c / (a * d)
        b, c = b - 1, c - 1
        tail += term
    return max(0.0, -log_p - math.log(tail))


@kernel()
def significances(joint: Any, sources: Any, targets: Any, by_source: Any, by_target: Any, total: Any, out: Any) -> None:
    """Compute ``negative_log_p`` of every pair.

    Args:
        joint: int32 [pairs], number of common sentence pairs.
        sources, targets: int32 [pairs], nodes of the phrases.
        by_source, by_target: int32 [nodes], number of sentences of each phrase.
        total: number of sentence pairs.
        out: float64 [pairs], filled.
    """
    for pair in range(joint.shape[0]):
        out[pair] = negative_log_p(joint[pair], by_source[sources[pair]], by_target[targets[pair]], total)


@kernel()
def copy_lines(block: Any, mask: Any, out: Any) -> Any:
    """Copy the lines that ``mask`` (bool [lines]) selects to ``out``; return the number of bytes written."""
    begin, line, at = 0, 0, 0
    while begin < block.size:
        end = begin
        while block[end] != 10:
            end += 1
        if mask[line]:
            for position in range(begin, end + 1):
                out[at] = block[position]
                at += 1
        begin = end + 1
        line += 1
    return at
