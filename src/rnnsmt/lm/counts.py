"""N-gram counts of all orders, adjusted for Kneser-Ney smoothing, in columns in memory or in temporary files.

The n-grams of an order are numbered in suffix order, that is, sorted by the last word, then the second-last word, and
so on; words are sorted by number.

Orders are counted one after the other. A k-gram is represented by a pair: the number of the (k-1)-gram that consists of
its last k-1 words, and its first word. The pair is packed into a 64-bit key, which suffices for any k. The kernels sort
and count the keys; sorting the keys sorts the k-grams in suffix order.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from rnnsmt.base.errors import InputError
from rnnsmt.base.kernels.decorator import kernel
from rnnsmt.base.paths import StrPath
from rnnsmt.base.progress import Meter
from rnnsmt.lm.columns import Column, Workspace, slices, sort_keys
from rnnsmt.lm.text import BOS, EOS, LmVocabulary, number_files

BYTES_PER_TOKEN = 140
"""Upper bound in bytes of the memory per token at order 5 if everything is in memory, including temporary arrays; each
order above or below 5 adds or saves 28 bytes."""


@dataclass
class OrderCounts:
    """The distinct n-grams of one order, in suffix order, as columns of equal length.

    Attributes:
        first: int32, first word.
        suffix: uint32, number of the (order - 1)-gram that consists of all words but the first; empty for order 1.
        context: uint32, number of the (order - 1)-gram that consists of all words but the last; empty for order 1.
        raw: uint32, number of occurrences.
        adjusted: uint32, adjusted count: the number of occurrences for the highest order and for n-grams that begin
            with ``<s>``; otherwise the number of distinct words that precede the n-gram.
    """

    first: Column
    suffix: Column
    context: Column
    raw: Column
    adjusted: Column

    def __len__(self) -> int:
        return len(self.first)

    def kept(self, start: int, stop: int, threshold: int) -> npt.NDArray[np.bool_]:
        """Return whether each of the n-grams ``start <= i < stop`` is kept by pruning, bool [n].

        N-grams with more than ``threshold`` occurrences are kept, and so are the unigrams of the reserved words.
        """
        mask = self.raw.read(start, stop) > threshold
        if not len(self.suffix) and start <= EOS:
            mask[: EOS + 1 - start] = True
        return mask


@dataclass
class Counts:
    """N-gram counts of a text.

    Attributes:
        vocabulary: words and their numbers.
        orders: n-grams of every order; ``orders[k - 1]`` contains the k-grams.
        lines: number of lines.
        tokens: number of words, without ``<s>`` and ``</s>``.
    """

    vocabulary: LmVocabulary
    orders: list[OrderCounts] = field(default_factory=list)
    lines: int = 0
    tokens: int = 0

    def words(self, order: int, start: int, stop: int) -> npt.NDArray[np.int32]:
        """Return the words of the n-grams ``start <= i < stop`` of an order, int32 [n, order]."""
        level = self.orders[order - 1]
        first = level.first.read(start, stop)
        if order == 1:
            return first[:, None]
        if not len(first):
            return np.empty((0, order), np.int32)
        suffix = level.suffix.read(start, stop).astype(np.int64)
        # suffix numbers are ascending, so that only a range of the next lower order is needed
        low = int(suffix[0])
        tails = self.words(order - 1, low, int(suffix[-1]) + 1)
        return np.concatenate([first[:, None], tails[suffix - low]], axis=1)


@dataclass
class SmoothedOrder:
    """Probabilities and back-off weights (interpolation weights gamma) of the n-grams of one order, as columns.

    Attributes:
        probability: float32, probabilities (not logarithms).
        backoff: float32, back-off weights; 1 for n-grams that are not a context; empty for the highest order.
    """

    probability: Column
    backoff: Column


def count_ngrams(paths: Sequence[StrPath], order: int, vocabulary: LmVocabulary, workspace: Workspace) -> Counts:
    """Count the n-grams of orders 1 to ``order`` of text files.

    Args:
        vocabulary: the vocabulary; if it is open, new words are added.
    """
    counts = Counts(vocabulary)
    words = _read_words(paths, order, counts, workspace)
    if not counts.tokens:
        raise InputError(
            f"{', '.join(map(str, paths))}: contains no words; a language model cannot be estimated from an empty text"
        )
    unigrams = _count_words(words, vocabulary.size, workspace)
    counts.orders.append(unigrams)
    numbers = words
    for k in range(2, order + 1):
        numbers = _count_order(words, numbers, k, k == order, counts, workspace)
    top = counts.orders[-1]
    top.adjusted = top.raw
    if order == 1:
        raw = top.raw.read(0, len(top)).copy()
        raw[BOS] = 0
        top.adjusted = workspace.column(np.uint32)
        top.adjusted.append(raw)
    return counts


def _read_words(paths: Sequence[StrPath], order: int, counts: Counts, workspace: Workspace) -> Column:
    """Read all texts into a column of word numbers; set ``on_disk`` if the estimation would exceed the memory limit."""
    words = workspace.column(np.int32)
    per_token = BYTES_PER_TOKEN + 28 * (order - 5)
    meter = Meter("reading text")
    for numbers, lines in number_files(paths, counts.vocabulary):
        words.append(numbers)
        counts.lines += lines
        counts.tokens += len(numbers) - 2 * lines
        meter.add(lines)
        if not workspace.on_disk and len(words) * per_token > workspace.memory:
            workspace.on_disk = True
            words.spill(workspace.file())
    if len(words) >= NONE:
        raise InputError(f"{', '.join(map(str, paths))}: {counts.tokens:,} words; the maximum is 4 billion")
    return words


def _new_order(workspace: Workspace) -> OrderCounts:
    return OrderCounts(workspace.column(np.int32), *(workspace.column(np.uint32) for _ in range(4)))


def _count_words(words: Column, size: int, workspace: Workspace) -> OrderCounts:
    """Count the words, including words of the vocabulary that do not occur."""
    raw = np.zeros(size, np.int64)
    for start, stop in slices(len(words), workspace.slice_length(16)):
        raw += np.bincount(words.read(start, stop), minlength=size)
    result = _new_order(workspace)
    result.first.append(np.arange(size, dtype=np.int32))
    result.raw.append(raw.astype(np.uint32))
    return result


def _count_order(
    words: Column, numbers: Column, order: int, last: bool, counts: Counts, workspace: Workspace
) -> Column:
    """Count the n-grams of one order, and set the adjusted counts of the next lower order.

    Args:
        words: word numbers of the text.
        numbers: number of the (order - 1)-gram that ends at each position; closed at the end, unless it is ``words``.
        order: the order, at least 2.
        last: whether this is the highest order.
        counts: counts of the lower orders; the new order is appended.

    Returns:
        The number of the n-gram that ends at each position of the text; empty if ``last``.
    """
    below = counts.orders[-1]
    result = _new_order(workspace)
    shift = max(int(counts.vocabulary.size - 1).bit_length(), 1)
    parts: list[tuple[int, int, Column]] = []
    meter = Meter(f"counting {order}-grams", len(words), "words")
    for low, high, occurrences in _buckets(below.raw, workspace):
        keys = np.empty(occurrences, np.uint64)
        contexts = np.empty(occurrences, np.uint32)
        filled = 0
        for head, tail in _positions(words, numbers, order, workspace):
            filled += collect(head, tail, low, high, shift, keys[filled:], contexts[filled:])
        column = workspace.column(np.uint32)
        start = len(result)
        column.append(_count_bucket(keys[:filled], contexts[:filled], (low, high, shift), last, result))
        parts.append((low, high, column))
        # the number of distinct words that precede a suffix is the number of distinct n-grams with this suffix
        in_front = np.bincount(result.suffix.read(start, len(result)).astype(np.int64) - low, minlength=high - low)
        begins = below.first.read(low, high) == BOS
        below.adjusted.append(np.where(begins & (order > 2), below.raw.read(low, high), in_front))
        meter.add(filled)
    counts.orders.append(result)
    above = workspace.column(np.uint32)
    if not last:
        _merge(words, numbers, order, parts, above, workspace)
    for _, _, column in parts:
        column.close()
    if numbers is not words:
        numbers.close()
    return above


def _count_bucket(
    keys: npt.NDArray[np.uint64],
    contexts: npt.NDArray[np.uint32],
    bounds: tuple[int, int, int],
    last: bool,
    result: OrderCounts,
) -> npt.NDArray[np.uint32]:
    """Sort and count the n-grams of a range of suffixes, and append them to ``result``.

    Args:
        keys, contexts: as filled by ``collect``, in text order.
        bounds: low, high and shift, as in ``collect``.
        last: whether this is the highest order.

    Returns:
        The n-gram number of each occurrence, in text order; empty if ``last``.
    """
    low, high, shift = bounds
    keys, origin = sort_keys(keys, max(int(high - low - 1).bit_length(), 1) + shift)
    numbers = np.empty(0 if last else len(keys), np.uint32)
    columns = distinct(keys, origin, contexts, low, shift, len(result), numbers)
    for column, values in zip((result.first, result.suffix, result.context, result.raw), columns, strict=True):
        column.append(values)
    return numbers


def _buckets(raw: Column, workspace: Workspace) -> Iterator[tuple[int, int, int]]:
    """Yield ranges of suffixes whose occurrences can be sorted in memory: (first, last + 1, number of occurrences).

    A suffix with too many occurrences for the memory limit is a range of its own. Memory then grows with the frequency
    of the most frequent word, by about 60 bytes per occurrence.
    """
    most = workspace.slice_length(28)
    step = workspace.slice_length(32)
    low, total = 0, 0
    for start, stop in slices(len(raw), step):
        values = raw.read(start, stop).astype(np.int64)
        if total + int(values.sum()) <= most:
            total += int(values.sum())
            continue
        for i, value in enumerate(values.tolist(), start):
            if total and total + value > most:
                yield low, i, total
                low, total = i, 0
            total += value
    yield low, len(raw), total


def _positions(
    words: Column, numbers: Column, order: int, workspace: Workspace
) -> Iterator[tuple[npt.NDArray[np.int32], npt.NDArray[np.uint32]]]:
    """Yield slices of the text as arguments ``words`` and ``suffixes`` of ``collect`` and ``spread``."""
    for start, stop in slices(len(words) - order + 1, workspace.slice_length(32)):
        head = words.read(start, stop + 1)
        tail = numbers.read(start + order - 2, stop + order - 1)
        yield head, tail.view(np.uint32)


def _merge(
    words: Column,
    numbers: Column,
    order: int,
    parts: list[tuple[int, int, Column]],
    above: Column,
    workspace: Workspace,
) -> None:
    """Merge the n-gram numbers of all ranges of suffixes into a column with an element for every position of the text.

    Args:
        words, numbers, order: as in ``_count_order``.
        parts: (low, high, n-gram numbers in text order) of every range.
        above: column that is filled; ``NONE`` at positions where no n-gram ends.
    """
    above.append(np.full(order - 1, NONE, np.uint32))
    cursors = [0] * len(parts)
    for head, tail in _positions(words, numbers, order, workspace):
        out = np.full(len(tail) - 1, NONE, np.uint32)
        for b, (low, high, column) in enumerate(parts):
            values = column.read(cursors[b], cursors[b] + len(out))
            cursors[b] += spread(head, tail, low, high, values, out)
        above.append(out)


NONE = np.uint32(0xFFFFFFFF)
"""Value at positions that are too close to the beginning of a sentence for an n-gram of the order to end there."""


@kernel()
def collect(words, suffixes, low, high, shift, keys, contexts):
    """Collect the n-grams of one order whose suffix is in ``low <= suffix < high``.

    Args:
        words: int32 [n + 1], word numbers; n-gram i begins at ``words[i]``.
        suffixes: uint32 [n + 1]; ``suffixes[i + 1]`` is the number of the (order - 1)-gram that is the suffix of n-gram
            i, and ``suffixes[i]`` the number of its context; ``NONE`` if there is no such (order - 1)-gram.
        low, high: range of suffixes.
        shift: number of bits of a word number.
        keys: uint64 [n or more], filled with (suffix - low) << shift | first word.
        contexts: uint32 [n or more], filled with the number of the context.

    Returns:
        The number of n-grams.
    """
    written = 0
    for i in range(len(suffixes) - 1):
        suffix = suffixes[i + 1]
        # words[i + 1] == 1: the second word is <s>, so the n-gram spans two sentences
        if suffix == NONE or suffix < low or suffix >= high or words[i + 1] == 1:
            continue
        keys[written] = (np.uint64(suffix - low) << np.uint64(shift)) | np.uint64(words[i])
        contexts[written] = suffixes[i]
        written += 1
    return written


@kernel()
def spread(words, suffixes, low, high, values, out):
    """Write n-gram numbers, in text order, to the positions that ``collect`` selected; return the number of positions.

    Args:
        words, suffixes, low, high: as in ``collect``.
        values: uint32, n-gram numbers of the selected positions.
        out: uint32 [n], updated at the selected positions.
    """
    used = 0
    for i in range(len(suffixes) - 1):  # same conditions as in ``collect``: value k belongs to its k-th n-gram
        suffix = suffixes[i + 1]
        if suffix == NONE or suffix < low or suffix >= high or words[i + 1] == 1:
            continue
        out[i] = values[used]
        used += 1
    return used


@kernel()
def distinct(keys, origin, contexts, low, shift, base, numbers):
    """Group the distinct n-grams of sorted keys.

    Args:
        keys, origin: as returned by ``rnnsmt.lm.columns.sort_keys``.
        contexts: uint32 [n], as filled by ``collect``, in the order before sorting.
        low, shift: as in ``collect``.
        base: number of the first n-gram.
        numbers: uint32 [n], filled with the n-gram number of each occurrence, in the order before sorting; if empty,
            nothing is written.

    Returns:
        Four arrays [distinct n-grams]: first word (int32), suffix (uint32), context (uint32) and count (uint32).
    """
    n = len(keys)
    # count before filling, so that the columns have exactly the required size: they stay in memory
    total = 0
    for i in range(n):
        if i == 0 or keys[i] != keys[i - 1]:
            total += 1
    first = np.empty(total, np.int32)
    suffix = np.empty(total, np.uint32)
    context = np.empty(total, np.uint32)
    count = np.zeros(total, np.uint32)
    mask = np.uint64((1 << shift) - 1)
    at = -1
    for i in range(n):
        if i == 0 or keys[i] != keys[i - 1]:
            at += 1
            first[at] = np.int32(keys[i] & mask)
            suffix[at] = np.uint32(keys[i] >> np.uint64(shift)) + np.uint32(low)
            context[at] = contexts[origin[i]]
        count[at] += np.uint32(1)
        if len(numbers):
            numbers[origin[i]] = base + at
    return first, suffix, context, count
