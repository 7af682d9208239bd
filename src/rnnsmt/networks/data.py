"""The training data of networks: vocabularies, and directories of sequences of ids.

A vocabulary file (a shortlist of size N) has N + 1 lines. The 0-based line number is the id:

* id 0: ``<null>`` ("no word", never predicted)
* id 1: ``<unk>``
* ids 2 to N - 1: the N - 2 most frequent words
* id N: ``</s>``

The special entries are recognised by position, not by spelling: a word of the corpus that is spelt like one of them is
an ordinary word.

`networks prepare` writes a directory of ids with these files, which `networks train` reads. SIDE is ``source.`` or
``target.`` for a bitext, and empty for a text of one language:

* ``SIDEwords.npy``: int32, the concatenated ids of all sequences, each ending in EOS.
* ``SIDEoffsets.npy``: int64 [sequences + 1], the offset of the beginning of each sequence.
* ``vocab.SIDEtxt``: the vocabulary.
* a JSON file: the format, the SHA-256 of each vocabulary, statistics, and the fingerprint, which is the SHA-256 of
  vocabularies and sequences. It is written last, so an interrupted command leaves a directory without it.
* further files of some networks.

The arrays are written in pieces and memory-mapped for reading.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, FailFast

from rnnsmt.base.arrays import (
    GrowingArray,
    concatenated_ranges,
    expect_random_access,
    growing_array,
    read_array,
    release_pages,
)
from rnnsmt.base.errors import InputError
from rnnsmt.base.options import MAX_INT
from rnnsmt.base.parallel import in_threads
from rnnsmt.base.paths import StrPath
from rnnsmt.base.progress import Meter
from rnnsmt.base.reading import check_utf8, read_json, read_line_blocks, read_lines
from rnnsmt.base.writing import write_json, write_lines

Part = TypeVar("Part")

NULL, UNK = 0, 1
FIRST, SECOND, LAST = "<null>", "<unk>", "</s>"

SPECIAL = 3
"""Number of ids that are not words: id 0 ("no word"), UNK and EOS."""

_WORD = re.compile(r"[^ \t\n\v\f\r]+")
"""A word of a tokenised text, see ``split``."""


def unfit_word(words: Iterable[str]) -> int | None:
    """Return the index of the first word that is empty, contains white space or repeats a word; None if all are fit."""
    seen: set[str] = set()
    for index, word in enumerate(words):
        if word in seen or not _WORD.fullmatch(word):
            return index
        seen.add(word)
    return None


def _distinct(words: list[str]) -> list[str]:
    if (index := unfit_word(words)) is not None:
        raise ValueError(f"must be distinct words without white space, but number {index + 1} is not")
    return words


DistinctWords = Annotated[list[str], FailFast(), AfterValidator(_distinct)]
"""The words of a vocabulary in the metadata of a model file, without ``FIRST``, ``SECOND`` and ``LAST``."""


def split(line: str) -> list[str]:
    """Split a line at ASCII white space only; a no-break space is part of a word."""
    return [word.decode() for word in line.encode().split()]


class TextCounts(NamedTuple):
    """Frequencies of the words of texts, and the number of lines of all texts."""

    words: Counter[str]
    lines: int

    def coverage(self, vocabulary: "Vocabulary") -> float:
        """Return the fraction of the words that are in a vocabulary."""
        return round(sum(self.words[word] for word in vocabulary.index) / self.words.total(), 6)


def count_words(paths: list[str], what: str) -> TextCounts:
    """Count the words of texts.

    what: end of the error message if there are no words, for example ``on the source side``.

    Raises:
        InputError: the texts have no words, or are not UTF-8.
    """
    counts: Counter[bytes] = Counter()
    lines = 0
    for path in paths:
        meter = Meter(f"counting the words of {Path(path).name}")
        for block in read_line_blocks(path):
            check_utf8(block, path, meter.done)
            counts.update(block.split())
            meter.add(block.count(b"\n"))
        lines += meter.done
    if not counts:
        raise InputError(f"{paths[0]}: no words {what}; create it again")
    return TextCounts(Counter({word.decode(): number for word, number in counts.items()}), lines)


class Vocabulary:
    """Vocabulary of one side, source or target; ``len`` is the number of ids, including id 0, UNK and EOS."""

    def __init__(self, words: Iterable[str]) -> None:
        """Build a vocabulary of distinct words; the first one gets id 2."""
        self.words = [FIRST, SECOND, *words, LAST]
        self.index = {word: i for i, word in enumerate(self.words[2:-1], 2)}

    def __len__(self) -> int:
        return len(self.words)

    @property
    def eos(self) -> int:
        """Return the id of the end of a phrase or sentence, the last id."""
        return len(self.words) - 1

    @classmethod
    def from_counts(cls, counts: Mapping[str, int], size: int) -> "Vocabulary":
        """Build a vocabulary of the most frequent words, with ids below ``size``; ties are broken by spelling.

        As in the paper, EOS is not counted: size 15,000 gives 14,998 words and 15,001 classes.
        """
        ranked = sorted(counts, key=lambda word: (-counts[word], word))
        return cls(ranked[: max(size - 2, 0)])

    @classmethod
    def of_texts(cls, paths: list[str], size: int, what: str) -> "Vocabulary":
        """Build a vocabulary of the most frequent words of texts; see ``from_counts`` and ``count_words``."""
        return cls.from_counts(count_words(paths, what).words, size)

    @classmethod
    def read(cls, path: StrPath) -> "Vocabulary":
        """Read a file that ``write`` wrote."""
        lines = list(read_lines(path))
        if len(lines) < 3 or (lines[0], lines[1], lines[-1]) != (FIRST, SECOND, LAST):
            raise InputError(
                f"{path}: does not begin with {FIRST}, {SECOND} and end with {LAST}; prepare the data again"
            )
        if (index := unfit_word(lines[2:-1])) is not None:
            raise InputError(
                f"{path}, line {index + 3}: an empty or duplicate word, or one with white space; prepare the data again"
            )
        return cls(lines[2:-1])

    def write(self, path: StrPath) -> None:
        """Write one word per line, atomically."""
        write_lines(path, self.words)

    def ids(self, words: Iterable[str], eos: bool = False) -> NDArray[np.int32]:
        """Return the ids of words, int32: UNK for words outside the vocabulary; if ``eos``, EOS is appended."""
        numbers = [self.index.get(word, UNK) for word in words]
        return np.array([*numbers, self.eos] if eos else numbers, np.int32)

    def text(self, ids: Iterable[int]) -> str:
        """Return the words of ids up to EOS, joined by spaces."""
        words = []
        for i in ids:
            if i == self.eos:
                break
            words.append(self.words[i])
        return " ".join(words)

    def hash(self) -> str:
        """Return the SHA-256 of the file's content, which identifies the vocabulary in model files and fingerprints."""
        return hashlib.sha256("".join(f"{word}\n" for word in self.words).encode()).hexdigest()


BLOCK = 1 << 22
"""Number of array elements that are read at a time."""


APART = 512
"""Number of examples that a thread reads from memory-mapped files before it unmaps the pages that all threads have
read. The system may map 64 KB around every page, which is about 32 MB of each array for one thread."""

READERS = 8
"""Number of threads that read examples, which mostly wait for the disk if the files are larger than the memory."""


def read_apart(
    read: Callable[[NDArray[np.int64]], Part], index: NDArray[np.int64], release: Callable[[], None]
) -> list[Part]:
    """Read examples of memory-mapped files, few at a time, so that few pages are mapped; return the parts in order.

    Args:
        read: function that reads the examples with the given indices, a part of ``index``. It is called from several
            threads, and at least once, even if ``index`` is empty.
        index: [K], indices of examples, ascending.
        release: function that unmaps the pages that have been read.
    """

    def read_part(some: NDArray[np.int64]) -> Part:
        part = read(some)
        release()
        return part

    parts = [index[begin : begin + APART] for begin in range(0, max(len(index), 1), APART)]
    return list(in_threads(read_part, parts, min(READERS, len(parts))))


class Sequences(NamedTuple):
    """Sequences of ids; both arrays may be memory-mapped.

    Attributes:
        words: int32, the concatenated ids of all sequences, each ending in EOS.
        offsets: int64 [sequences + 1], the offset of the beginning of each sequence in ``words``.
    """

    words: NDArray[np.int32]
    offsets: NDArray[np.int64]

    def phrase(self, i: int) -> NDArray[np.int32]:
        """Return the ids of sequence i, with EOS."""
        return self.words[self.offsets[i] : self.offsets[i + 1]]

    def lengths(self, index: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the lengths of the sequences ``index`` [K], with EOS."""
        return self.offsets[index + 1] - self.offsets[index]

    def places(self, index: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the positions in ``words`` of the ids of the sequences ``index`` [K], one sequence after the other."""
        return concatenated_ranges(self.offsets[index], self.lengths(index))

    def joined(self, index: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the concatenated ids of the sequences ``index`` [K], with EOS."""
        return self.words[self.places(index)]

    def blocks(self) -> Iterator[NDArray[np.int32]]:
        """Yield the ids of all sequences in blocks."""
        return blocks_of(self.words)

    def at(self, index: NDArray[np.int64]) -> "Sequences":
        """Copy the sequences ``index`` [K], ascending, into memory; at any time, few pages of the files are mapped."""
        parts = read_apart(lambda some: (self.joined(some), self.lengths(some)), index, self.release)
        lengths = np.concatenate([lengths for _, lengths in parts])
        return Sequences(np.concatenate([words for words, _ in parts]), np.concatenate([[0], np.cumsum(lengths)]))

    def agree(self, classes: int) -> bool:
        """Return whether the offsets are valid, all ids are below ``classes``, and every sequence ends in EOS."""
        words, offsets = self.words, self.offsets
        if not len(offsets) or offsets[0] != 0 or offsets[-1] != len(words):
            return False
        for begin in range(0, len(words), BLOCK):
            ids = words[begin : begin + BLOCK]
            if ids.min() < 0 or ids.max() >= classes:
                return False
            self.release()
        for begin in range(0, len(offsets) - 1, BLOCK // 16):
            bounds = offsets[begin : begin + BLOCK // 16 + 1]
            if (bounds[1:] <= bounds[:-1]).any() or bounds[-1] > len(words):
                return False
            if (words[bounds[1:] - 1] != classes - 1).any():
                return False
            self.release()
        return True

    def release(self) -> None:
        """Unmap the pages of memory-mapped arrays that have been read, e.g. during a pass over all sequences."""
        release_pages(self.words.base)
        release_pages(self.offsets.base)


class IdFormat(NamedTuple):
    """Format of a directory of ids.

    Attributes:
        json: name of the JSON file.
        version: value of the entry ``format`` in the JSON file.
        sides: ``("source", "target")`` for a bitext, ``("",)`` for a text of one language.
        remedy: what the user should do about an invalid directory; the last part of error messages.
    """

    json: str
    version: str
    sides: tuple[str, ...]
    remedy: str


@dataclass
class IdDirectory:
    """Open directory of ids in the format ``kind``, which a subclass defines.

    Attributes:
        path: the directory.
        stats: content of the JSON file.
        sides: the sequences of each side, memory-mapped.
        vocabularies: the vocabulary of each side.
    """

    kind: ClassVar[IdFormat]
    path: Path
    stats: dict[str, Any]
    sides: tuple[Sequences, ...]
    vocabularies: tuple[Vocabulary, ...]

    def __post_init__(self) -> None:
        """Do nothing; a subclass may check the content and set further attributes."""

    @classmethod
    def open(cls, path: StrPath) -> Self:
        """Map the arrays of a directory that `networks prepare` wrote, and read the vocabularies into memory.

        All ids are read once, to check that they are below the size of the vocabulary.

        Raises:
            InputError: a file is missing, malformed or of another version, or the files do not agree.
        """
        path, kind = Path(path), cls.kind
        stats = read_json(path / kind.json)
        if not isinstance(stats, dict) or stats.get("format") != kind.version or "fingerprint" not in stats:
            raise InputError(f"{path / kind.json}: was written by a different version; {kind.remedy}")
        sides: list[Sequences] = []
        vocabularies: list[Vocabulary] = []
        for side in kind.sides:
            words, offsets = (path / f"{_file_prefix(side)}{name}.npy" for name in ("words", "offsets"))
            sequences = Sequences(
                read_array(words, np.int32, kind.remedy),
                read_array(offsets, np.int64, kind.remedy),
            )
            vocabulary = Vocabulary.read(path / f"vocab.{_file_prefix(side)}txt")
            if stats.get(f"{side} vocabulary".strip()) != vocabulary.hash():
                raise InputError(f"{path}: vocab.{_file_prefix(side)}txt differs from {kind.json}; {kind.remedy}")
            if not sequences.agree(len(vocabulary)) or (sides and len(sides[0].offsets) != len(sequences.offsets)):
                raise InputError(
                    f"{path}: {words.name} and {offsets.name} do not agree with each other and the other files; "
                    f"{kind.remedy}"
                )
            sides.append(sequences)
            vocabularies.append(vocabulary)
        return cls(path, stats, tuple(sides), tuple(vocabularies))

    def number(self, name: str) -> int:
        """Return the entry ``name`` of the JSON file, which must be a non-negative integer."""
        value = self.stats.get(name)
        if type(value) is not int or not 0 <= value <= MAX_INT:
            raise InputError(f"{self.path / self.kind.json}: {name} must be a number; {self.kind.remedy}")
        return value

    def __len__(self) -> int:
        """Return the number of sequences of a side."""
        return len(self.sides[0].offsets) - 1

    @property
    def arrays(self) -> list[NDArray[np.generic]]:
        """Return all memory-mapped arrays."""
        return [array for side in self.sides for array in side]

    def release(self) -> None:
        """Unmap the pages of the files that have been read."""
        for array in self.arrays:
            release_pages(array.base)

    def expect_random_access(self) -> None:
        """Prepare for reading sequences in random order, see ``rnnsmt.base.arrays.expect_random_access``."""
        for array in self.arrays:
            expect_random_access(array.base)

    @property
    def fingerprint(self) -> str:
        """Return the SHA-256 of the vocabularies and all sequences."""
        return str(self.stats["fingerprint"])


class PairDirectory(IdDirectory):
    """Open directory of pairs of sequences."""

    def at(self, index: NDArray[np.int64]) -> Self:
        """Return the pairs ``index`` [K], 0-based, ascending, in memory."""
        return replace(self, sides=tuple(side.at(index) for side in self.sides))


class IdWriter:
    """Writer of the arrays of a directory of ids; all sides must get the same number of sequences.

    Attributes:
        unknown: number of occurrences of UNK written so far, for each side.
    """

    def __init__(self, words: list[GrowingArray], offsets: list[GrowingArray]) -> None:
        """Begin without sequences.

        words, offsets: the files ``SIDEwords.npy`` and ``SIDEoffsets.npy`` of each side.
        """
        self._words, self._offsets = words, offsets
        self.unknown = [0] * len(words)
        for array in offsets:
            array.append(np.zeros(1, np.int64))

    def append(self, side: int, ids: NDArray[np.int32], lengths: NDArray[np.int64]) -> None:
        """Append sequences to a side: concatenated ids, each sequence ending in EOS, and lengths including EOS."""
        self._offsets[side].append(self._words[side].length + np.cumsum(lengths))
        self._words[side].append(ids)
        self.unknown[side] += int(np.count_nonzero(ids == UNK))

    @property
    def sequences(self) -> int:
        """Return the number of sequences written so far to a side."""
        return self._offsets[0].length - 1

    def ids(self, side: int) -> int:
        """Return the number of ids written so far to a side, not counting EOS."""
        return self._words[side].length - self.sequences

    def fingerprint(self, hashes: Iterable[str]) -> str:
        """Return the SHA-256 of all arrays and of ``hashes``, the hashes of other files."""
        digest = hashlib.sha256()
        for array in (*self._words, *self._offsets):
            digest.update(array.digest.digest())
        for value in hashes:
            digest.update(value.encode())
        return digest.hexdigest()


@contextmanager
def write_id_directory(path: Path, kind: IdFormat) -> Iterator[IdWriter]:
    """Open the arrays of a directory of ids for writing; they replace existing ones at the end of the ``with`` block.

    The existing JSON file is removed before that, and ``finish_id_directory`` writes the new one last: a directory
    without a JSON file is incomplete.
    """
    with ExitStack() as stack:
        words, offsets = (
            [stack.enter_context(growing_array(path / f"{_file_prefix(side)}{name}.npy", dtype)) for side in kind.sides]
            for name, dtype in (("words", np.int32), ("offsets", np.int64))
        )
        yield IdWriter(words, offsets)
        (path / kind.json).unlink(missing_ok=True)


def finish_id_directory(
    path: Path,
    kind: IdFormat,
    writer: IdWriter,
    vocabularies: Sequence[Vocabulary],
    figures: Mapping[str, object],
    *hashes: str,
) -> dict[str, object]:
    """Write the vocabularies and the JSON file of a directory after its arrays; return the statistics of the stage.

    Args:
        figures: further statistics, which come first.
        hashes: SHA-256 of each further file, for the fingerprint.
    """
    stats, described = dict(figures), dict[str, object](format=kind.version)
    of_vocabularies = [vocabulary.hash() for vocabulary in vocabularies]
    for number, (side, vocabulary) in enumerate(zip(kind.sides, vocabularies, strict=True)):
        vocabulary.write(path / f"vocab.{_file_prefix(side)}txt")
        name = f"{side} " if side else ""
        described[f"{name}vocabulary"] = of_vocabularies[number]
        stats |= {
            f"{name}classes": len(vocabulary),
            f"{name}words": writer.ids(number),
            f"{name}unknown words": writer.unknown[number],
        }
    described["fingerprint"] = writer.fingerprint([*of_vocabularies, *hashes])
    write_json(path / kind.json, described | stats)
    return stats


def _file_prefix(side: str) -> str:
    return f"{side}." if side else ""


ClassCounts = NDArray[np.float64]
"""Counts of the classes, float64 [classes], see ``class_counts``."""


def class_counts(blocks: Iterable[NDArray[np.int32]], classes: int, held_out: NDArray[np.int32]) -> ClassCounts:
    """Count how often each class is predicted in training, plus one; return float64 [classes].

    Args:
        blocks: all ids, in blocks, including the held-out ones.
        held_out: the held-out ids, which are subtracted.
    """
    counts = 1 - np.bincount(held_out, minlength=classes)
    for ids in blocks:
        counts += np.bincount(ids, minlength=classes)
    return counts.astype(np.float64)


def blocks_of(words: NDArray[np.int32]) -> Iterator[NDArray[np.int32]]:
    """Yield ids, which may be memory-mapped, in blocks."""
    for begin in range(0, len(words), BLOCK):
        yield words[begin : begin + BLOCK]
        release_pages(words.base)


def unigram_log_p(words: NDArray[np.integer], counts: ClassCounts) -> float:
    """Compute the mean ln p of words under a unigram model with the relative frequencies of ``counts``."""
    logs = np.log(counts / counts.sum())
    return float(logs[words].sum() / max(len(words), 1))
