"""Reading text into word numbers: ``<s>`` w1 ... wn ``</s>`` for every line, as lmplz reads it."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rnnsmt.io import InputError, check_utf8, read_line_blocks
from rnnsmt.kernels.strings import Interner
from rnnsmt.lm.kernels.text import number_words

BLOCK_BYTES = 1 << 20
RESERVED = ("<unk>", "<s>", "</s>")
RESERVED_BYTES = frozenset(word.encode() for word in RESERVED)


class LmVocabulary:
    """Words and their numbers: ``<unk>`` 0, ``<s>`` 1, ``</s>`` 2, the others from 3 in the order of their coming.

    Args:
        words: where given, the vocabulary is closed: these words and no others; the rest of a text is ``<unk>``.
    """

    def __init__(self, words: Iterable[str] | None = None) -> None:
        self.closed = words is not None
        self._strings = Interner(1 << 12, 1 << 16)
        self._strings.add([word.encode("utf-8") for word in (*RESERVED, *(words or ()))])

    @property
    def size(self) -> int:
        """How many words there are."""
        return len(self._strings)

    @property
    def starts(self) -> npt.NDArray[np.int64]:
        """int64 [words + 1 or more]: word ``i`` is ``pool[starts[i]:starts[i + 1]]``."""
        return self._strings.table.offsets

    @property
    def pool(self) -> npt.NDArray[np.uint8]:
        """uint8: the words one after the other, UTF-8."""
        return self._strings.table.arena

    def number(self, block: npt.NDArray[np.uint8], path: str | Path, line: int) -> npt.NDArray[np.int32]:
        """The word numbers of a block of whole lines that begins after line ``line`` of ``path``.

        Raises:
            InputError: the text contains ``<s>``, ``</s>`` or ``<unk>`` as a word.
        """
        out = np.empty(2 * len(block) + 1, np.int32)
        if not self.closed:
            self._strings.reserve(len(block) // 2 + 1, len(block))
        written, bad, word = number_words(block, self.closed, self._strings.table, out)
        if bad >= 0:
            raise _reserved(path, line + bad + 1, RESERVED[word])
        return out[:written].copy()

    def mask(self, wanted: Iterable[str]) -> npt.NDArray[np.bool_]:
        """Which words are among the wanted ones or reserved: bool [words]."""
        chosen = {*wanted, *RESERVED}
        return np.fromiter((word in chosen for word in self.words()), np.bool_, self.size)

    def words(self) -> list[str]:
        """All words in the order of their numbers."""
        return [word.decode("utf-8") for word in self._strings.strings()]


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
        check_utf8(block, path, lines)
        yield block, lines
        lines += block.count(b"\n")


def number_files(paths: Sequence[str | Path], vocabulary: LmVocabulary) -> Iterator[tuple[npt.NDArray[np.int32], int]]:
    """Yield (word numbers, lines) of the files' blocks, adding new words to an open vocabulary."""
    for path in paths:
        for block, lines in read_blocks(path):
            data = np.frombuffer(block, np.uint8)
            yield vocabulary.number(data, path, lines), block.count(b"\n")


def frequent_words(paths: Sequence[str | Path], min_count: int) -> list[str]:
    """The words that occur at least ``min_count`` times in text files, in the order of their first occurrence.

    Raises:
        InputError: as ``read_blocks`` and ``LmVocabulary.number``.
    """
    vocabulary = LmVocabulary()
    counts = np.zeros(len(RESERVED), np.int64)
    for numbers, _ in number_files(paths, vocabulary):
        more = np.bincount(numbers, minlength=vocabulary.size)
        more[: len(counts)] += counts
        counts = more
    pairs = zip(vocabulary.words()[len(RESERVED) :], counts[len(RESERVED) :].tolist(), strict=True)
    return [word for word, count in pairs if count >= min_count]
