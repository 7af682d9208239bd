"""Reading of ARPA files into flat arrays, and writing of ARPA files.

An ARPA file consists of a header ``\\data\\`` with a line ``ngram N=COUNT`` for each order N, a section ``\\N-grams:``
for each order with lines ``log10-probability TAB words [TAB log10-backoff]``, and the line ``\\end\\``. Files are read
in blocks; compiled code parses and formats the lines.

The same files are accepted as by KenLM: with comment lines (``#``) before the header, with blank lines, and with runs
of spaces and tabs as separators. If a 1-gram is repeated, its first line is used; for ``<unk>``, its last line is used.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rnnsmt.base.errors import InputError
from rnnsmt.base.kernels.decorator import INNER, kernel
from rnnsmt.base.kernels.numbers import put_logarithm
from rnnsmt.base.kernels.strings import POW10, Interner, find, hash_bytes, intern, parse_float
from rnnsmt.base.opening import KENLM_MAGIC
from rnnsmt.base.paths import StrPath
from rnnsmt.base.progress import Meter, warn
from rnnsmt.base.reading import read_byte_lines, read_line_blocks
from rnnsmt.lm import MAX_ORDER
from rnnsmt.lm.columns import slices
from rnnsmt.lm.counts import Counts, SmoothedOrder

BLOCK_BYTES = 1 << 21
"""Size in bytes of the blocks in which files are read; while a block is read, three copies of it are in memory."""

NGRAMS_PER_BLOCK = 1 << 17
"""Number of n-grams that are formatted at a time."""

LOWEST = 1e-99
"""Minimum probability; a probability of 0 is written as its logarithm, -99, as is customary in ARPA files."""

_ERRORS = {
    1: "is not of the form 'probability TAB words [TAB back-off]'",
    2: "the probability is not a number from -1e30 to 0 (log10)",
    3: "the back-off weight is not a number",
    4: "a word of the n-gram is not among the 1-grams",
    5: "the number of words does not match the section",
}
"""Messages for the error codes of ``parse_section``."""


@dataclass
class Arpa:
    """Content of an ARPA file.

    Attributes:
        path: the file.
        words: vocabulary; the id of a word is the index of its 1-gram.
        ngrams: word ids of the n-grams of each order, int32 [count, order].
        log10_probs: log10 probabilities of each order, float32 [count].
        log10_backoffs: log10 back-off weights of each order, float32 [count]; 0 for n-grams without back-off weight.
    """

    path: Path
    words: Interner
    ngrams: list[np.ndarray]
    log10_probs: list[np.ndarray]
    log10_backoffs: list[np.ndarray]

    @property
    def order(self) -> int:
        """Return the maximum n-gram length."""
        return len(self.ngrams)

    def place_of(self, order: int, index: int) -> str:
        """Find the line of an n-gram of order 2 or more in the file; return a text such as ``line 12`` for an error."""
        if not self.path.is_file():  # a pipe cannot be read again
            return f"{order}-gram {index + 1}"
        lines = enumerate(read_byte_lines(self.path), 1)
        for _, line in lines:
            if line.strip() == b"\\%d-grams:" % order:
                break
        return f"line {next(islice((number for number, line in lines if line.strip()), index, None))}"


class _Lines:
    """Reader of a file in blocks, with a cursor and the 1-based number of the line at the cursor."""

    def __init__(self, path: Path) -> None:
        self.path, self.blocks = path, read_line_blocks(path, BLOCK_BYTES)
        self.buffer = np.zeros(0, np.uint8)
        self.data = b""
        self.position = 0
        self.number = 1

    def more(self) -> bool:
        """Return whether there is a line at the cursor; read the next block if necessary."""
        while self.position >= len(self.data):
            block = next(self.blocks, None)
            if block is None:
                return False
            self.data, self.buffer, self.position = block, np.frombuffer(block, np.uint8), 0
        return True

    def line(self) -> str | None:
        """Return the next non-empty line, or None at the end of the file."""
        while self.more():
            stop = self.data.index(b"\n", self.position)
            text = self.data[self.position : stop].strip()
            self.position = stop + 1
            self.number += 1
            if text:
                return text.decode("utf-8", "replace")
        return None


def read_arpa(path: StrPath) -> Arpa:
    """Read an ARPA file."""
    path = Path(path)
    lines = _Lines(path)
    counts = _header(lines)
    arpa = Arpa(path, Interner(counts[0], max(counts[0] * 8, 64)), [], [], [])
    for order, count in enumerate(counts, 1):
        title = lines.line()
        if title != f"\\{order}-grams:":
            raise InputError(f"{path}, line {lines.number - 1}: the section \\{order}-grams: expected")
        _section(lines, arpa, order, count)
    if lines.line() != "\\end\\":
        raise InputError(f"{path}, line {lines.number - 1}: \\end\\ expected; is the file complete?")
    return arpa


def check_header(path: StrPath) -> None:
    """Check that a file begins with the header of an ARPA file."""
    _header(_Lines(Path(path)))


def _header(lines: _Lines) -> list[int]:
    """Read the header; return the number of n-grams of every order."""
    path = lines.path
    if lines.more() and lines.data.startswith(KENLM_MAGIC):
        raise InputError(f"{path}: is a binary KenLM file; use the ARPA text file it was built from")
    first = lines.line()
    while first is not None and first.startswith("#"):
        first = lines.line()
    if first != "\\data\\":
        raise InputError(f"{path}, line {max(lines.number - 1, 1)}: \\data\\ expected; is this an ARPA file?")
    counts: list[int] = []
    while lines.more():
        mark = (lines.position, lines.number)
        text = lines.line()
        match = re.fullmatch(r"ngram\s+([0-9]{1,3})\s*=\s*([0-9]{1,15})", text or "")
        if match is None:
            if text is not None and text.startswith("\\"):
                lines.position, lines.number = mark
                break
            raise InputError(f"{path}, line {lines.number - 1}: 'ngram ORDER=COUNT' expected")
        if int(match[1]) != len(counts) + 1:
            raise InputError(f"{path}, line {lines.number - 1}: order {len(counts) + 1} expected")
        counts.append(int(match[2]))
    if not counts or counts[0] < 1:
        raise InputError(f"{path}: the \\data\\ section specifies no 1-grams")
    if len(counts) > MAX_ORDER:
        raise InputError(f"{path}: order {len(counts)}; the maximum is {MAX_ORDER}")
    if max(counts) > 1 << 30:
        raise InputError(f"{path}: more than {1 << 30} n-grams of one order")
    return counts


def _section(lines: _Lines, arpa: Arpa, order: int, count: int) -> None:
    """Read the n-grams of one order and append them to ``arpa``."""
    path = lines.path
    words = np.zeros((count, order), np.int32)
    probs, backoffs = np.zeros(count, np.float32), np.zeros(count, np.float32)
    filled, repeated = 0, np.zeros(1, np.int64)
    while lines.more():
        buffer, begin = lines.buffer, lines.position
        if order == 1:
            arpa.words.reserve(0, len(buffer) - begin)  # bytes of the new words; their number is in the header
        table = arpa.words.table
        position, filled, error = parse_section(
            buffer, begin, len(buffer), order, table, POW10, words, probs, backoffs, filled, repeated
        )
        lines.number += lines.data.count(b"\n", begin, position)
        lines.position = position
        if error == 5 and filled + repeated[0] == count:
            raise InputError(f"{path}, line {lines.number}: more {order}-grams than the header specifies ({count})")
        if error:
            raise InputError(f"{path}, line {lines.number}: {_ERRORS[error]}")
        if position < len(buffer):
            break
    if filled + repeated[0] != count:
        found = filled + repeated[0]
        raise InputError(f"{path}, line {lines.number}: {found} {order}-grams, but the header specifies {count}")
    if repeated[0]:
        warn(f"{path}: {repeated[0]} of the 1-grams are repeated; they are read as by KenLM")
    arpa.ngrams.append(words[:filled])
    arpa.log10_probs.append(probs[:filled])
    arpa.log10_backoffs.append(backoffs[:filled])


def write_arpa(
    path: StrPath,
    counts: Counts,
    model: list[SmoothedOrder],
    thresholds: Sequence[int],
    threads: int = 1,
    only: Iterable[str] | None = None,
) -> list[int]:
    """Write an ARPA file atomically, compressed according to its suffix; n-grams are in suffix order.

    Logarithms have base 10 and six decimals. The same model gives identical bytes for any number of threads.

    Args:
        model: probabilities and back-off weights of every order.
        counts: n-gram counts from which the model was estimated.
        model: probabilities and back-off weights of every order.
        thresholds: pruning thresholds of every order, as for ``smooth``; pruned n-grams are not written.
        threads: number of compression threads.
        only: write only n-grams that consist of these words and ``<unk>``, ``<s>`` and ``</s>``. The probabilities of
            texts that contain only these words do not change. None: write all n-grams.

    Returns:
        The number of n-grams of each order in the file.
    """
    from rnnsmt.base.parallel import atomic_blocks  # imports multiprocessing, which the search does not need

    mask = None if only is None else counts.vocabulary.mask(only)
    numbers = [len(level) for level in counts.orders]
    for k, threshold in enumerate(thresholds):
        if mask is not None or threshold:
            numbers[k] = sum(len(words) for _, words in _ngrams(counts, k + 1, mask, threshold))
    vocabulary = counts.vocabulary
    starts = vocabulary.starts[: vocabulary.size + 1]
    lengths = np.diff(starts)
    with atomic_blocks(path, threads) as out:
        out.write(b"\\data\\\n")
        for order, number in enumerate(numbers, 1):
            out.write(f"ngram {order}={number}\n".encode())
        meter = Meter("writing", sum(numbers), "n-grams")
        for order, smoothed in enumerate(model, 1):
            out.write(f"\n\\{order}-grams:\n".encode())
            for rows, words in _ngrams(counts, order, mask, thresholds[order - 1]):
                meter.add(len(words))
                start, stop = int(rows[0]), int(rows[-1]) + 1
                probability = smoothed.probability.read(start, stop)[rows - start]
                backoff = smoothed.backoff.read(start, stop)
                logs, backoffs = log10(probability), log10(backoff[rows - start] if len(backoff) else backoff)
                # upper bound: the words, a separator after each word, and, for each n-gram, two logarithms of at most
                # 16 bytes, a tab and a newline
                lines = np.empty(int(lengths[words].sum()) + words.size + 34 * len(words), np.uint8)
                written = format_ngrams(words, logs, backoffs, starts, vocabulary.pool, lines)
                out.write(memoryview(lines[:written]))  # type: ignore[arg-type]
        out.write(b"\n\\end\\\n")
    return numbers


def _ngrams(
    counts: Counts, order: int, mask: npt.NDArray[np.bool_] | None, threshold: int
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]]:
    """Yield blocks of n-grams that are not pruned and that consist of words selected by ``mask``.

    Yields:
        Numbers of the n-grams, int64 [n], and their words, int32 [n, order]; n > 0.
    """
    for start, stop in slices(len(counts.orders[order - 1]), NGRAMS_PER_BLOCK):
        words, rows = counts.words(order, start, stop), np.arange(start, stop)
        if threshold:
            unpruned = counts.orders[order - 1].kept(start, stop, threshold)
            words, rows = words[unpruned], rows[unpruned]
        if mask is not None:
            chosen = mask[words].all(axis=1)
            words, rows = words[chosen], rows[chosen]
        if len(rows):
            yield rows, words


def log10(values: np.ndarray) -> np.ndarray:
    """Return base-10 logarithms of values, which are replaced by ``LOWEST`` if they are smaller."""
    return np.log10(np.maximum(values.astype(np.float64), LOWEST))


@kernel(**INNER)
def _after_blanks(buffer, position, end):
    """Return the position of the first byte from ``position`` on that is neither space nor tab."""
    while position < end and (buffer[position] == 32 or buffer[position] == 9):
        position += 1
    return position


@kernel(**INNER)
def _is_unk(buffer, begin, end):
    """Return whether a word is ``<unk>`` or ``<UNK>``."""
    return (
        end - begin == 5
        and buffer[begin] == 60
        and buffer[begin + 1] | 32 == 117
        and buffer[begin + 2] | 32 == 110
        and buffer[begin + 3] | 32 == 107
        and buffer[begin + 4] == 62
    )


@kernel()
def parse_section(  # noqa: PLR0911, PLR0912
    buffer, begin, end, order, table, pow10, words, probs, backoffs, filled, repeated
):
    """Parse n-gram lines.

    Parsing stops at a line that starts with a backslash, at a blank line if all ``count`` n-grams have been read, at
    ``end``, or at an error.

    Args:
        buffer: uint8, whole lines.
        begin, end: range of the lines.
        order: order of the n-grams.
        table: vocabulary, ``InternTable``; for order 1, words are added, and the id of a word is the index of its
            1-gram.
        pow10: ``rnnsmt.base.kernels.strings.POW10``.
        words: int32 [count, order], filled with word ids.
        probs, backoffs: float32 [count], filled with log10 values.
        filled: number of n-grams that are already in the arrays.
        repeated: int64 [1], number of lines that repeat a 1-gram and are therefore not in the arrays; updated.

    Returns:
        The position in ``buffer`` of the first line that was not parsed, the number of n-grams in the arrays, and an
        error code (0 for success, otherwise a key of ``_ERRORS``).
    """
    position = begin
    capacity = probs.shape[0]
    while position < end:
        stop = position
        while stop < end and buffer[stop] != 10:
            stop += 1
        last = stop
        if last > position and buffer[last - 1] == 13:
            last -= 1
        full = filled + repeated[0] == capacity
        start = _after_blanks(buffer, position, last)
        if start == last and not full:
            position = stop + 1
            continue
        if start == last or buffer[position] == 92:
            return position, filled, 0
        if full:
            return position, filled, 5
        tab = start
        while tab < last and buffer[tab] != 9 and buffer[tab] != 32:
            tab += 1
        if tab >= last:
            return position, filled, 1
        value = parse_float(buffer, start, tab, pow10)
        if not (value >= -1e30 and value <= 0.0):  # also rejects NaN; a float32 could not represent -1e39
            return position, filled, 2
        cursor, row = tab, filled
        for k in range(order):
            cursor = _after_blanks(buffer, cursor, last)
            stop_word = cursor
            while stop_word < last and buffer[stop_word] != 32 and buffer[stop_word] != 9:
                stop_word += 1
            if stop_word == cursor:
                return position, filled, 5
            if order == 1:
                number = intern(table, buffer, cursor, stop_word)
                if number < filled:  # the word occurred before
                    row = number if _is_unk(buffer, cursor, stop_word) else -1
            else:
                number = find(table, buffer, cursor, stop_word, hash_bytes(buffer, cursor, stop_word))
                if number < 0:
                    return position, filled, 4
            words[filled, k] = number
            cursor = stop_word
        weight = 0.0
        if cursor + 1 < last:
            if buffer[cursor] != 9:
                return position, filled, 5
            weight = parse_float(buffer, _after_blanks(buffer, cursor, last), last, pow10)
            if not (weight > -1e30 and weight < 1e30):
                return position, filled, 3
        if row >= 0:
            probs[row], backoffs[row] = value, weight
        if row == filled:
            filled += 1
        else:
            repeated[0] += 1
        position = stop + 1
    return position, filled, 0


@kernel()
def format_ngrams(words, logs, backoffs, starts, pool, out):
    """Write ``log10 p TAB words [TAB backoff] NEWLINE`` for every n-gram; return the number of bytes.

    Args:
        words: int32 [n, order].
        logs: float64 [n], log10 probabilities.
        backoffs: float64 [n], log10 back-off weights; empty for the highest order.
        starts, pool: int64 [vocabulary + 1] and uint8; word ``i`` is ``pool[starts[i]:starts[i + 1]]``.
        out: uint8, filled; must have space for the words, a separator after each, and 34 further bytes per n-gram.
    """
    at = 0
    for i in range(words.shape[0]):
        at = put_logarithm(out, at, logs[i])
        out[at] = 9
        at += 1
        for k in range(words.shape[1]):
            word = words[i, k]
            for j in range(starts[word], starts[word + 1]):
                out[at] = pool[j]
                at += 1
            out[at] = 32
            at += 1
        at -= 1  # overwrite the last space
        if len(backoffs):
            out[at] = 9
            at = put_logarithm(out, at + 1, backoffs[i])
        out[at] = 10
        at += 1
    return at
