"""Conversion of text to word numbers, with ``<s>`` and ``</s>`` around the words of every line, as in lmplz.

Words are separated by NUL, tab, newline, carriage return and space, as in lmplz; other Unicode spaces are part of a
word.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from rnnsmt.base.errors import InputError
from rnnsmt.base.kernels.decorator import kernel
from rnnsmt.base.kernels.strings import Interner, find, hash_bytes, intern
from rnnsmt.base.paths import StrPath
from rnnsmt.base.reading import check_utf8, read_line_blocks

BLOCK_BYTES = 1 << 20
"""Size of the blocks that are read, in bytes."""
RESERVED = ("<unk>", "<s>", "</s>")
"""Words with numbers 0, 1 and 2."""
RESERVED_BYTES = frozenset(word.encode() for word in RESERVED)


class LmVocabulary:
    """Vocabulary: ``<unk>``, ``<s>`` and ``</s>`` have the numbers 0, 1 and 2; other words are numbered as added.

    Args:
        words: words of a closed vocabulary, in which all other words are ``<unk>``; None for an open vocabulary.
    """

    def __init__(self, words: Iterable[str] | None = None) -> None:
        self.closed = words is not None
        self._strings = Interner(1 << 12, 1 << 16)
        self._strings.add([word.encode("utf-8") for word in (*RESERVED, *(words or ()))])

    @property
    def size(self) -> int:
        """Return the number of words."""
        return len(self._strings)

    @property
    def starts(self) -> npt.NDArray[np.int64]:
        """Return the first byte of each word in ``pool``, int64 [words + 1 or more]."""
        return self._strings.table.offsets

    @property
    def pool(self) -> npt.NDArray[np.uint8]:
        """Return the concatenated words in UTF-8, uint8; word ``i`` is ``pool[starts[i]:starts[i + 1]]``."""
        return self._strings.table.arena

    def number(self, block: npt.NDArray[np.uint8], path: StrPath, line: int) -> npt.NDArray[np.int32]:
        """Return the word numbers of a block of whole lines, with ``<s>`` and ``</s>``.

        Args:
            block: uint8, lines, each ending with a newline.
            path: the file, for the error message.
            line: number of lines before the block, for the error message.
        """
        out = np.empty(2 * len(block) + 1, np.int32)
        if not self.closed:
            self._strings.reserve(len(block) // 2 + 1, len(block))
        written, bad, word = number_sentences(block, self.closed, self._strings.table, out)
        if bad >= 0:
            raise _reserved(path, line + bad + 1, RESERVED[word])
        return out[:written].copy()

    def mask(self, words: Iterable[str]) -> npt.NDArray[np.bool_]:
        """Return whether each word of the vocabulary is in ``words`` or reserved, bool [size of the vocabulary]."""
        chosen = {*words, *RESERVED}
        return np.fromiter((word in chosen for word in self.words()), np.bool_, self.size)

    def words(self) -> list[str]:
        """Return all words in the order of their numbers."""
        return [word.decode("utf-8") for word in self._strings.strings()]


def _reserved(path: StrPath, line: int, word: str) -> InputError:
    return InputError(f"{path}, line {line}: the word {word} is reserved in language models; remove it")


def refuse_reserved(words: Iterable[bytes], path: StrPath, line: int) -> None:
    """Check that a line contains no reserved word."""
    reserved = RESERVED_BYTES.intersection(words)
    if reserved:
        raise _reserved(path, line, min(reserved).decode())


def read_blocks(path: StrPath, size: int = BLOCK_BYTES) -> Iterator[tuple[bytes, int]]:
    """Yield blocks of whole UTF-8 lines and the number of lines before each block; every block ends with a newline."""
    lines = 0
    for block in read_line_blocks(path, size):
        check_utf8(block, path, lines)
        yield block, lines
        lines += block.count(b"\n")


def number_files(paths: Sequence[StrPath], vocabulary: LmVocabulary) -> Iterator[tuple[npt.NDArray[np.int32], int]]:
    """Yield (word numbers, number of lines) for blocks of text files; new words are added to an open vocabulary."""
    for path in paths:
        for block, lines in read_blocks(path):
            data = np.frombuffer(block, np.uint8)
            yield vocabulary.number(data, path, lines), block.count(b"\n")


def frequent_words(paths: Sequence[StrPath], min_count: int) -> list[str]:
    """Return the words that occur at least ``min_count`` times in text files, in order of first occurrence."""
    vocabulary = LmVocabulary()
    counts = np.zeros(len(RESERVED), np.int64)
    for numbers, _ in number_files(paths, vocabulary):
        more = np.bincount(numbers, minlength=vocabulary.size)
        more[: len(counts)] += counts
        counts = more
    pairs = zip(vocabulary.words()[len(RESERVED) :], counts[len(RESERVED) :].tolist(), strict=True)
    return [word for word, count in pairs if count >= min_count]


UNK, BOS, EOS = 0, 1, 2
"""Numbers of ``<unk>``, ``<s>`` and ``</s>``, as in KenLM."""

SEPARATOR = np.zeros(256, np.bool_)
"""Whether a byte separates words, bool [256]."""

SEPARATOR[[0, 9, 10, 13, 32]] = True


@kernel()
def number_sentences(block, closed, table, out):
    """Convert a block of whole lines to word numbers.

    Args:
        block: uint8 [bytes], ends with a newline.
        closed: whether words that are not in the table become ``<unk>``; otherwise, they are added to the table.
        table: vocabulary, ``InternTable``; if it is open, it must have capacity for the words of the block.
        out: int32 [at least 2 * bytes + 1], filled with the numbers of ``<s> w1 ... wn </s>`` for every line.

    Returns:
        The number of elements written; the 0-based line of the first reserved word in the text, or -1 if there is none;
        and the number of this reserved word.
    """
    written = 0
    line = 0
    begin = True
    i = 0
    while i < len(block):
        if begin:
            out[written] = BOS
            written += 1
            begin = False
        if block[i] == 10:
            out[written] = EOS
            written += 1
            line += 1
            begin = True
            i += 1
            continue
        if SEPARATOR[block[i]]:
            i += 1
            continue
        first = i
        while not SEPARATOR[block[i]]:
            i += 1
        if closed:  # noqa: SIM108
            number = find(table, block, first, i, hash_bytes(block, first, i))
        else:
            number = intern(table, block, first, i)
        if number < 0:
            number = UNK
        elif number <= EOS:
            return written, line, number
        out[written] = number
        written += 1
    return written, -1, 0
