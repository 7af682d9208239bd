"""Export of phrase pairs and their scores as phrase table and reordering table in Moses format.

Format and sort order are the same as in tables built by Moses; numbers have six significant digits, as with ``%g``.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.kernels.decorator import UNCOUNTED, kernel
from rnnsmt.base.kernels.numbers import NUMBER_BYTES, put_integer, put_number
from rnnsmt.base.parallel import Writer, atomic_blocks
from rnnsmt.base.paths import StrPath
from rnnsmt.base.progress import Meter
from rnnsmt.phrases.column_files import COUNT_NAMES, LINKS, TableScores, arrays_of
from rnnsmt.phrases.pairs import BLOCK, SIDES, PhrasePairs

BUFFER_BYTES = 1 << 20
"""Size of the buffer for lines, in bytes."""


class PhraseText(NamedTuple):
    """Phrases of one side as word ids, with the vocabulary as text.

    Attributes:
        ids: word ids of the phrases, concatenated.
        offsets: int64 [phrases + 1], begin of each phrase in ``ids``.
        text: uint8, the vocabulary, with a newline after each word.
        words: int64 [vocabulary + 1], begin of each word in ``text``.
    """

    ids: Any
    offsets: Any
    text: Any
    words: Any


class _Block(NamedTuple):
    """Pairs ``begin`` to ``end - 1`` of a file of phrase pairs.

    Attributes:
        begin, end: range of the pairs.
        source: the distinct source phrases.
        target: the target phrases of the pairs.
        runs: index in ``source`` of the source phrase of each pair.
    """

    begin: int
    end: int
    source: PhraseText
    target: PhraseText
    runs: NDArray[np.int64]


def export_phrase_table(store: PhrasePairs, scores: StrPath, output: StrPath, threads: int = 1) -> dict[str, object]:
    """Write phrase pairs and their scores as a phrase table.

    Args:
        store: the phrase pairs.
        scores: output of `phrases score`.
        threads: number of compression threads.

    Returns:
        The statistics of the stage.
    """
    table = TableScores(scores, store, "phrases score")
    links, *counts = arrays_of(table, (LINKS, *COUNT_NAMES), "export the store from which the table was imported")

    def content(rows: slice) -> tuple[Any, ...]:
        return links[rows], np.stack([array[rows] for array in counts], 1).astype(np.int64), table.probabilities(rows)

    _export(store, table, output, threads, write_phrase_lines, content)
    return {"phrase pairs": len(store)}


def export_reordering_table(store: PhrasePairs, scores: StrPath, output: StrPath, threads: int = 1) -> None:
    """Write phrase pairs and their reordering scores as a reordering table.

    Args:
        store: the phrase pairs.
        scores: output of `phrases reordering`.
        threads: number of compression threads.
    """
    table = TableScores(scores, store, "phrases reordering")
    _export(store, table, output, threads, write_reordering_lines, lambda rows: (table.probabilities(rows),))


def _export(
    store: PhrasePairs,
    table: TableScores,
    output: StrPath,
    threads: int,
    kernel: Callable[..., tuple[int, int]],
    content: Callable[[slice], tuple[Any, ...]],
) -> None:
    """Write a table.

    Args:
        kernel: kernel that writes the lines of a block of pairs, such as ``write_phrase_lines``.
        content: function that returns the further arguments of the kernel, after the phrases, for a range of pairs.
    """
    meter = Meter("writing", len(store), "pairs")
    with atomic_blocks(output, threads) as out:
        for block in _blocks(store):
            number = block.end - block.begin
            lines = block.source, block.target, block.runs, *content(slice(block.begin, block.end))
            _write_lines(out, kernel, number, lines)
            meter.add(number)
            store.release()
            table.release()


def _blocks(store: PhrasePairs) -> Iterator[_Block]:
    """Yield all phrase pairs in blocks."""
    vocabularies = []
    for side in SIDES:
        text = store.vocabulary(side)
        vocabularies.append((text, np.concatenate([np.zeros(1, np.int64), np.flatnonzero(text == 10) + 1])))
    for begin in range(0, len(store), BLOCK):
        end = min(begin + BLOCK, len(store))
        runs = store.runs(np.arange(begin, end))
        sources = store.sides[0].select(np.arange(runs[0], runs[-1] + 1))
        targets = store.sides[1].select(np.arange(begin, end))
        yield _Block(
            begin, end, PhraseText(*sources, *vocabularies[0]), PhraseText(*targets, *vocabularies[1]), runs - runs[0]
        )


def _write_lines(out: Writer, kernel: Callable[..., tuple[int, int]], lines: int, arguments: tuple[Any, ...]) -> None:
    """Write ``lines`` lines with a kernel that fills a buffer.

    Args:
        kernel: ``kernel(start, *arguments, buffer)`` writes lines to the buffer, beginning with line ``start``, and
            returns the first line that did not fit, and the number of bytes.
    """
    buffer = np.empty(BUFFER_BYTES, np.uint8)
    start = 0
    while start < lines:
        reached, filled = kernel(start, *arguments, buffer)
        if reached == start:
            buffer = np.empty(2 * len(buffer), np.uint8)  # a single line did not fit
            continue
        out.write(buffer[:filled].data)
        start = reached


@kernel(**UNCOUNTED)
def put_separator(buffer: Any, at: int) -> int:
    """Write `` ||| ``; return the index after it."""
    buffer[at] = 32
    buffer[at + 1] = 124
    buffer[at + 2] = 124
    buffer[at + 3] = 124
    buffer[at + 4] = 32
    return at + 5


@kernel(**UNCOUNTED)
def phrase_bytes(phrases: Any, number: int) -> int:
    """Return the number of bytes of a phrase, including a space after each word."""
    size = 0
    for position in range(phrases.offsets[number], phrases.offsets[number + 1]):
        word = np.int64(phrases.ids[position])
        size += phrases.words[word + 1] - phrases.words[word]
    return size


@kernel(**UNCOUNTED)
def put_phrase(buffer: Any, at: int, phrases: Any, number: int) -> int:
    """Write the words of a phrase and a separator; return the index after them."""
    for position in range(phrases.offsets[number], phrases.offsets[number + 1]):
        if position > phrases.offsets[number]:
            buffer[at] = 32
            at += 1
        word = np.int64(phrases.ids[position])
        for index in range(phrases.words[word], phrases.words[word + 1] - 1):
            buffer[at] = phrases.text[index]
            at += 1
    return put_separator(buffer, at)


@kernel(**UNCOUNTED)
def put_pair(buffer: Any, at: int, source: Any, target: Any, run: int, pair: int, rest: int) -> int:
    """Write both phrases of a pair, unless the buffer lacks space for them and ``rest`` further bytes of the line.

    Args:
        source, run: ``PhraseText`` of the source phrases, and index of the source phrase.
        target, pair: ``PhraseText`` of the target phrases, and index of the target phrase.

    Returns:
        The index after the text, or -1 if there is not enough space.
    """
    if at + phrase_bytes(source, run) + phrase_bytes(target, pair) + rest > buffer.shape[0]:
        return -1
    return put_phrase(buffer, put_phrase(buffer, at, source, run), target, pair)


@kernel()
def write_phrase_lines(
    start: int, source: Any, target: Any, runs: Any, links: Any, counts: Any, scores: Any, buffer: Any
) -> Any:
    """Write lines of a phrase table to ``buffer``, beginning with pair ``start``.

    Args:
        start: first pair.
        source: ``PhraseText`` of the distinct source phrases.
        target: ``PhraseText`` of the target phrases of the P pairs.
        runs: int64 [P], index of the source phrase of each pair.
        links: int64 [P], links as bit masks (``rnnsmt.phrases.scores``).
        counts: int64 [P, 3], counts of the target phrase, of the source phrase and of the pair.
        scores: float64 [P, S].
        buffer: uint8, filled.

    Returns:
        The first pair that was not written, and the number of bytes written.
    """
    filled = 0
    # at most 64 links of 4 bytes, the scores, and less than 100 bytes of counts and separators
    rest = 4 * 64 + scores.shape[1] * (NUMBER_BYTES + 1) + 100
    for pair in range(start, runs.shape[0]):
        at = put_pair(buffer, filled, source, target, runs[pair], pair, rest)
        if at < 0:
            return pair, filled
        for n in range(scores.shape[1]):
            if n:
                buffer[at] = 32
                at += 1
            at = put_number(buffer, at, scores[pair, n])
        at = put_separator(buffer, at)
        first = True
        for j in range(8):
            for i in range(8):
                if (links[pair] >> (8 * j + i)) & 1:
                    if not first:
                        buffer[at] = 32
                        at += 1
                    first = False
                    # single digits: positions are below 8
                    buffer[at] = 48 + i
                    buffer[at + 1] = 45
                    buffer[at + 2] = 48 + j
                    at += 3
        at = put_separator(buffer, at)
        for n in range(3):
            if n:
                buffer[at] = 32
                at += 1
            at = put_integer(buffer, at, counts[pair, n])
        at = put_separator(buffer, at)
        # Moses' last field is empty
        for _ in range(3):
            buffer[at] = 124
            at += 1
        buffer[at] = 10
        filled = at + 1
    return runs.shape[0], filled


@kernel()
def write_reordering_lines(start: int, source: Any, target: Any, runs: Any, scores: Any, buffer: Any) -> Any:
    """Write lines of a reordering table to ``buffer``, beginning with pair ``start``.

    Arguments and result are as in ``write_phrase_lines``.
    """
    filled = 0
    rest = scores.shape[1] * (NUMBER_BYTES + 1) + 100
    for pair in range(start, runs.shape[0]):
        at = put_pair(buffer, filled, source, target, runs[pair], pair, rest)
        if at < 0:
            return pair, filled
        for n in range(scores.shape[1]):
            at = put_number(buffer, at, scores[pair, n])
            buffer[at] = 32
            at += 1
        # the newline replaces the last space
        buffer[at - 1] = 10
        filled = at
    return runs.shape[0], filled
