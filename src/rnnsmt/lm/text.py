"""Reading text into word numbers: ``<s>`` w1 ... wn ``</s>`` for every line, as lmplz reads it."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rnnsmt.io import InputError, read_line_blocks
from rnnsmt.lm.kernels.text import fill_table, hash_bytes, number_words

BLOCK_BYTES = 1 << 20
RESERVED = ("<unk>", "<s>", "</s>")
RESERVED_BYTES = frozenset(word.encode() for word in RESERVED)


class Vocabulary:
    """Words and their numbers: ``<unk>`` 0, ``<s>`` 1, ``</s>`` 2, the others from 3 in the order of their coming.

    Args:
        words: where given, the vocabulary is closed: these words and no others; the rest of a text is ``<unk>``.
    """

    def __init__(self, words: Iterable[str] | None = None) -> None:
        self.closed = words is not None
        self.size = 0
        self.pool = np.empty(1 << 16, np.uint8)
        self.starts = np.zeros(1 << 12, np.int64)
        self._hashes = np.empty(1 << 12, np.uint64)
        self._table = np.zeros(1 << 13, np.int32)
        for word in (*RESERVED, *(words or ())):
            self._add(word.encode("utf-8"))

    def _add(self, word: bytes) -> None:
        self._reserve(1, len(word))
        data = np.frombuffer(word, np.uint8)
        start = self.starts[self.size]
        self.pool[start : start + len(data)] = data
        self.starts[self.size + 1] = start + len(data)
        self._hashes[self.size] = hash_bytes(data)
        fill_table(self._hashes, self.size, self.size + 1, self._table)
        self.size += 1

    def _reserve(self, words: int, bytes_: int) -> None:
        """Make room for that many more words and bytes."""
        used = int(self.starts[self.size])
        if used + bytes_ > len(self.pool):
            self.pool = np.concatenate([self.pool[:used], np.empty(used + bytes_, np.uint8)])
        if self.size + words + 1 > len(self.starts):
            room = self.size + words + 1
            self.starts = np.concatenate([self.starts[: self.size + 1], np.zeros(room, np.int64)])
            self._hashes = np.concatenate([self._hashes[: self.size], np.empty(room, np.uint64)])
        if 2 * (self.size + words) > len(self._table):
            self._table = np.zeros(1 << (2 * (self.size + words)).bit_length(), np.int32)
            fill_table(self._hashes, 0, self.size, self._table)

    def number(self, block: npt.NDArray[np.uint8], path: str | Path, line: int) -> npt.NDArray[np.int32]:
        """The word numbers of a block of whole lines that begins after line ``line`` of ``path``.

        Raises:
            InputError: the text contains ``<s>``, ``</s>`` or ``<unk>`` as a word.
        """
        out = np.empty(2 * len(block) + 1, np.int32)
        self._reserve(len(block) // 2 + 1, len(block))
        self.size, written, bad, word = number_words(
            block, self.closed, self._table, self._hashes, self.starts, self.pool, self.size, out
        )
        if bad >= 0:
            raise _reserved(path, line + bad + 1, RESERVED[word])
        return out[:written].copy()

    def mask(self, wanted: Iterable[str]) -> npt.NDArray[np.bool_]:
        """Which words are among the wanted ones or reserved: bool [words]."""
        chosen = {*wanted, *RESERVED}
        return np.fromiter((word in chosen for word in self.words()), np.bool_, self.size)

    def words(self) -> list[str]:
        """All words in the order of their numbers."""
        text = self.pool.tobytes()
        return [text[self.starts[i] : self.starts[i + 1]].decode("utf-8") for i in range(self.size)]


def _reserved(path: str | Path, line: int, word: str) -> InputError:
    return InputError(f"{path}, line {line}: the word {word} has a meaning of its own in a language model; remove it")


def refuse_reserved(words: Iterable[bytes], path: str | Path, line: int) -> None:
    """Raise ``InputError`` where one of the words of a line is reserved."""
    found = RESERVED_BYTES.intersection(words)
    if found:
        raise _reserved(path, line, min(found).decode())


def read_blocks(path: str | Path, size: int = BLOCK_BYTES) -> Iterator[tuple[bytes, int]]:
    """Yield blocks of whole UTF-8 lines and the number of lines before each; every block ends with a newline.

    Raises:
        InputError: as ``rnnsmt.io.read_lines``.
    """
    lines = 0
    for block in read_line_blocks(path, size):
        _check_utf8(block, path, lines)
        yield block, lines
        lines += block.count(b"\n")


def _check_utf8(block: bytes, path: str | Path, lines: int) -> None:
    try:
        block.decode("utf-8")
    except UnicodeDecodeError as error:
        number = lines + block.count(b"\n", 0, error.start) + 1
        start = error.start - (block.rfind(b"\n", 0, error.start) + 1)
        raise InputError(f"{path}, line {number}: not UTF-8 at byte {start}; convert it first") from None


def number_files(paths: Sequence[str | Path], vocabulary: Vocabulary) -> Iterator[tuple[npt.NDArray[np.int32], int]]:
    """Yield (word numbers, lines) of the files' blocks, adding new words to an open vocabulary."""
    for path in paths:
        for block, lines in read_blocks(path):
            data = np.frombuffer(block, np.uint8)
            yield vocabulary.number(data, path, lines), block.count(b"\n")


def frequent_words(paths: Sequence[str | Path], min_count: int) -> list[str]:
    """The words that occur at least ``min_count`` times in text files, in the order of their first occurrence.

    Raises:
        InputError: as ``read_blocks`` and ``Vocabulary.number``.
    """
    vocabulary = Vocabulary()
    counts = np.zeros(len(RESERVED), np.int64)
    for numbers, _ in number_files(paths, vocabulary):
        more = np.bincount(numbers, minlength=vocabulary.size)
        more[: len(counts)] += counts
        counts = more
    pairs = zip(vocabulary.words()[len(RESERVED) :], counts[len(RESERVED) :].tolist(), strict=True)
    return [word for word, count in pairs if count >= min_count]
