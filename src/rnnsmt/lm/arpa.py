"""ARPA files: reading them into flat arrays, writing a smoothed model.

Format: a ``\\data\\`` header with ``ngram N=COUNT`` lines, one section ``\\N-grams:`` an order with lines
``log10-probability TAB words [TAB log10-backoff]``, ``\\end\\``. Read in blocks and formatted by compiled code.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rnnsmt.io import InputError, read_line_blocks
from rnnsmt.kernels.strings import POW10, Interner
from rnnsmt.lm.columns import slices
from rnnsmt.lm.counts import Counts
from rnnsmt.lm.kernels.arpa import format_ngrams, newlines, parse_section
from rnnsmt.lm.smoothing import SmoothedOrder
from rnnsmt.parallel_gzip import atomic_blocks
from rnnsmt.progress import Meter

BLOCK_BYTES = 1 << 24

NGRAMS_PER_BLOCK = 1 << 17

LOWEST = 1e-99
"""A probability of 0 is written as its logarithm, -99, the custom of ARPA files."""

MAX_ORDER = 10

_BINARY_MAGIC = b"mmap lm http://kheafield.com/code"

_ERRORS = {
    1: "is not of the form 'probability TAB words [TAB back-off]'",
    2: "the probability is not a number of at most 0 (log10)",
    3: "the back-off weight is not a number",
    4: "a word of the n-gram is not among the 1-grams",
    5: "the number of words does not fit the section",
}


@dataclass
class Arpa:
    """An n-gram LM as in its file.

    Attributes:
        words: the vocabulary; ids are the lines of the 1-gram section.
        ngrams: per order ``int32`` [count, order] word ids.
        log10_probs: per order ``float32`` [count].
        log10_backoffs: per order ``float32`` [count]; 0 where the file has none.
        lines: line number of the first n-gram of each order.
    """

    words: Interner
    ngrams: list[np.ndarray]
    log10_probs: list[np.ndarray]
    log10_backoffs: list[np.ndarray]
    lines: list[int]

    @property
    def order(self) -> int:
        """The longest n-gram's length."""
        return len(self.ngrams)


class _Lines:
    """The blocks of a file with a cursor and a line number."""

    def __init__(self, path: Path) -> None:
        self.path, self.blocks = path, read_line_blocks(path, BLOCK_BYTES)
        self.buffer = np.zeros(0, np.uint8)
        self.data = b""
        self.position = 0
        self.number = 1

    def more(self) -> bool:
        """Whether there is a line at the cursor; fetches the next block where the last is used up."""
        while self.position >= len(self.data):
            block = next(self.blocks, None)
            if block is None:
                return False
            self.data, self.buffer, self.position = block, np.frombuffer(block, np.uint8), 0
        return True

    def line(self) -> str | None:
        """The next line that is not empty, or None at the end."""
        while self.more():
            stop = self.data.index(b"\n", self.position)
            text = self.data[self.position : stop].strip()
            self.position = stop + 1
            self.number += 1
            if text:
                return text.decode("utf-8", "replace")
        return None


def read_arpa(path: str | Path) -> Arpa:
    """Read an ARPA file.

    Raises:
        InputError: not an ARPA file, or a malformed, missing or surplus line (named by its number).
    """
    path = Path(path)
    lines = _Lines(path)
    counts = _header(lines)
    arpa = Arpa(Interner(counts[0], max(counts[0] * 8, 64)), [], [], [], [])
    for order, count in enumerate(counts, 1):
        title = lines.line()
        if title != f"\\{order}-grams:":
            raise InputError(f"{path}, line {lines.number - 1}: the section \\{order}-grams: is expected here")
        arpa.lines.append(lines.number)
        _section(lines, arpa, order, count)
    if lines.line() != "\\end\\":
        raise InputError(f"{path}, line {lines.number - 1}: \\end\\ is expected here; is the file complete?")
    return arpa


def _header(lines: _Lines) -> list[int]:
    path = lines.path
    if lines.more() and lines.data.startswith(_BINARY_MAGIC):
        raise InputError(f"{path}: is a binary KenLM file; give the ARPA text file it was built from")
    if lines.line() != "\\data\\":
        raise InputError(f"{path}, line 1: \\data\\ is expected here; is this an ARPA file?")
    counts: list[int] = []
    while lines.more():
        mark = (lines.position, lines.number)
        text = lines.line()
        match = re.fullmatch(r"ngram\s+(\d+)\s*=\s*(\d+)", text or "")
        if match is None:
            if text is not None and text.startswith("\\"):
                lines.position, lines.number = mark
                break
            raise InputError(f"{path}, line {lines.number - 1}: 'ngram ORDER=COUNT' is expected here")
        if int(match[1]) != len(counts) + 1:
            raise InputError(f"{path}, line {lines.number - 1}: order {len(counts) + 1} is expected here")
        counts.append(int(match[2]))
    if not counts or counts[0] < 1:
        raise InputError(f"{path}: the \\data\\ section counts no 1-grams")
    if len(counts) > MAX_ORDER:
        raise InputError(f"{path}: order {len(counts)} is more than {MAX_ORDER}")
    if max(counts) > 1 << 30:
        raise InputError(f"{path}: more than {1 << 30} n-grams of one order")
    return counts


def _section(lines: _Lines, arpa: Arpa, order: int, count: int) -> None:
    path = lines.path
    words = np.zeros((count, order), np.int32)
    probs, backoffs = np.zeros(count, np.float32), np.zeros(count, np.float32)
    filled = 0
    while lines.more():
        buffer, begin = lines.buffer, lines.position
        if order == 1:
            arpa.words.reserve(0, len(buffer) - begin)
        table = arpa.words.table
        position, filled, error = parse_section(
            buffer, begin, len(buffer), order, table, POW10, words, probs, backoffs, filled
        )
        lines.number += int(newlines(buffer, begin, position))
        lines.position = position
        if error == 5 and filled == count:
            raise InputError(f"{path}, line {lines.number}: more {order}-grams than the header's {count}")
        if error:
            what = _ERRORS[error]
            if error == 1 and order == 1:
                what = "is not of the form 'probability TAB word [TAB back-off]', or the word is there twice"
            raise InputError(f"{path}, line {lines.number}: {what}")
        if position < len(buffer):
            break
    if filled != count:
        raise InputError(f"{path}, line {lines.number}: {filled} {order}-grams, but the header counts {count}")
    arpa.ngrams.append(words)
    arpa.log10_probs.append(probs)
    arpa.log10_backoffs.append(backoffs)


_Block = tuple[np.ndarray, np.ndarray, np.ndarray]
"""N-grams of an order [n, order], and base-10 logarithms of their probabilities and back-off weights, float64 [n].

The highest order has no back-off weights: [0].
"""


def write_arpa(
    path: str | Path,
    counts: Counts,
    model: list[SmoothedOrder],
    threads: int = 1,
    only: Iterable[str] | None = None,
    thresholds: Sequence[int] = (),
) -> list[int]:
    """Write an ARPA file, whole or not at all, compressed by suffix; n-grams stand in suffix order.

    Logarithms are base 10 with six decimals. The same model gives the same bytes whatever ``threads`` is.

    Args:
        only: write the n-grams of these words and of ``<unk>``, ``<s>``, ``</s>`` and no others: the probabilities of
            any text made of these words stay what they are.
        thresholds: as the model was smoothed with; n-grams that are pruned are not written.

    Returns:
        How many n-grams of each order there are in the file.
    """
    least = thresholds or [0] * len(model)
    wanted = None if only is None else counts.vocabulary.mask(only)
    numbers: list[int] = []
    for k, level in enumerate(counts.orders, 1):
        number = len(level)
        if wanted is not None or least[k - 1]:
            number = sum(len(words) for _, words in _ngrams(counts, k, wanted, least[k - 1]))
        numbers.append(number)

    def blocks(order: int) -> Iterator[_Block]:
        smoothed = model[order - 1]
        for rows, words in _ngrams(counts, order, wanted, least[order - 1]):
            start, stop = int(rows[0]), int(rows[-1]) + 1
            probability = smoothed.probability.read(start, stop)[rows - start]
            backoff = smoothed.backoff.read(start, stop)
            yield words, _log10(probability), _log10(backoff[rows - start] if len(backoff) else backoff)

    vocabulary = counts.vocabulary
    _write_sections(path, vocabulary.starts[: vocabulary.size + 1], vocabulary.pool, numbers, blocks, threads)
    return numbers


def write_ngrams(path: str | Path, arpa: Arpa, threads: int = 1) -> None:
    """Write a model that is in memory as ``write_arpa`` does; the n-grams of an order stand as they are."""

    def blocks(order: int) -> Iterator[_Block]:
        ngrams, logs, backoffs = (of[order - 1] for of in (arpa.ngrams, arpa.log10_probs, arpa.log10_backoffs))
        for start, stop in slices(len(ngrams), NGRAMS_PER_BLOCK):
            with_backoff = stop if order < arpa.order else start
            yield ngrams[start:stop], logs[start:stop].astype(float), backoffs[start:with_backoff].astype(float)

    table = arpa.words.table
    numbers = [len(ngrams) for ngrams in arpa.ngrams]
    _write_sections(path, table.offsets[: len(arpa.words) + 1], table.arena, numbers, blocks, threads)


def _write_sections(
    path: str | Path,
    starts: np.ndarray,
    strings: np.ndarray,
    numbers: Sequence[int],
    blocks: Callable[[int], Iterable[_Block]],
    threads: int,
) -> None:
    """Write the header and the n-grams of every order.

    Args:
        starts, strings: where the words begin and end [words + 1], and their bytes.
        numbers: of n-grams, by order.
        blocks: the n-grams of an order.
    """
    lengths = np.diff(starts)
    with atomic_blocks(path, threads) as out:
        out.write(b"\\data\\\n")
        for order, number in enumerate(numbers, 1):
            out.write(f"ngram {order}={number}\n".encode())
        meter = Meter("writing", sum(numbers), "n-grams")
        for order in range(1, len(numbers) + 1):
            out.write(f"\n\\{order}-grams:\n".encode())
            for words, logs, backoffs in blocks(order):
                meter.add(len(words))
                lines = np.empty(int(lengths[words].sum()) + words.size + 34 * len(words), np.uint8)
                written = format_ngrams(words, logs, backoffs, starts, strings, lines)
                out.write(memoryview(lines[:written]))  # type: ignore[arg-type]
        out.write(b"\n\\end\\\n")


def _ngrams(
    counts: Counts, order: int, wanted: npt.NDArray[np.bool_] | None, threshold: int
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]]:
    """Blocks of (n-gram numbers [n], words [n, order]), of the n-grams that are not pruned, whose words are wanted."""
    for start, stop in slices(len(counts.orders[order - 1]), NGRAMS_PER_BLOCK):
        words, rows = counts.words(order, start, stop), np.arange(start, stop)
        if threshold:
            kept = counts.orders[order - 1].kept(start, stop, threshold)
            words, rows = words[kept], rows[kept]
        if wanted is not None:
            chosen = wanted[words].all(axis=1)
            words, rows = words[chosen], rows[chosen]
        if len(rows):
            yield rows, words


def _log10(values: np.ndarray) -> np.ndarray:
    return np.log10(np.maximum(values.astype(np.float64), LOWEST))
