"""Phrase pairs of a file of ``rnnsmt.phrases.pairs``, with word ids in the vocabularies of a network.

The vocabularies are the files ``vocab.source.txt`` and ``vocab.target.txt`` of a directory, in the format of
``rnnsmt.networks.data``.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.arrays import release_pages
from rnnsmt.base.errors import InputError
from rnnsmt.base.paths import StrPath
from rnnsmt.base.writing import write_report
from rnnsmt.networks.batches import Index
from rnnsmt.networks.data import UNK, Vocabulary, count_words, read_apart
from rnnsmt.phrases.pairs import SIDES, PhraseIds, PhrasePairs, runs_of

BLOCK = 1 << 20
"""Number of pairs that are read at a time."""


def vocabulary_files(directory: StrPath) -> list[Path]:
    """Return the paths of the source and the target vocabulary in a directory."""
    return [Path(directory) / f"vocab.{side}.txt" for side in SIDES]


@dataclass(frozen=True)
class PhraseSide:
    """One side of phrase pairs; its methods return the ids of the network.

    Attributes:
        phrases: the phrases with the word ids of the file: one phrase for each run, i.e. for consecutive pairs with the
            same source phrase, or one phrase for each pair.
        first: [runs + 1], the first pair of each run; None: there is one phrase for each pair.
        ids: int32 [words of the file], the network's id of each word; UNK for words outside the vocabulary.
        eos: the network's id of the end of a phrase.
    """

    phrases: PhraseIds
    first: NDArray[np.int64] | None
    ids: NDArray[np.int32]
    eos: int

    def _numbers(self, index: Index) -> Index:
        return index if self.first is None else runs_of(self.first, index)

    def phrase(self, i: int) -> NDArray[np.int32]:
        """Return the ids of the phrase of pair i, with EOS."""
        return self.joined(np.array([i]))

    def lengths(self, index: Index) -> Index:
        """Return the lengths of the phrases of the pairs ``index`` [K], with EOS."""
        numbers, offsets = self._numbers(index), self.phrases.offsets
        return offsets[numbers + 1] - offsets[numbers] + 1

    def joined(self, index: Index) -> NDArray[np.int32]:
        """Return the ids of the phrases of the pairs ``index`` [K], each with EOS, one after the other."""
        words, lengths = self.phrases.joined(self._numbers(index))
        joined = np.full(len(words) + len(index), self.eos, np.int32)
        inside = np.ones(len(joined), bool)
        inside[np.cumsum(lengths + 1) - 1] = False
        joined[inside] = self.ids[words]
        return joined

    def padded(self, index: Index) -> NDArray[np.int64]:
        """Return the ids of the phrases of the pairs ``index`` [K] with EOS, padded with EOS, [longest phrase, K]."""
        numbers, offsets = self._numbers(index), self.phrases.offsets
        begins, lengths = offsets[numbers], offsets[numbers + 1] - offsets[numbers]
        rows = np.arange(int(lengths.max(initial=0)) + 1)[:, None]
        words = self.ids[self.phrases.words[begins + np.minimum(rows, lengths - 1)]]
        return np.where(rows < lengths, words, self.eos).astype(np.int64)

    def at(self, index: Index) -> "PhraseSide":
        """Return the phrases of the pairs ``index`` [K] as pairs 0 to K - 1, in memory."""
        return replace(self, phrases=self.phrases.select(self._numbers(index)), first=None)

    def blocks(self) -> Iterator[NDArray[np.int32]]:
        """Yield the ids of the phrases of all pairs, with EOS, in blocks; unmap the pages that have been read."""
        pairs = len(self.phrases.offsets) - 1 if self.first is None else int(self.first[-1])
        for begin in range(0, pairs, BLOCK):
            yield self.joined(np.arange(begin, min(begin + BLOCK, pairs)))
            release_pages(self.phrases.words.base)


@dataclass(frozen=True)
class Pairs:
    """The phrase pairs of a file, with word ids in the vocabularies of a network.

    Attributes:
        store: the open file, with its own word ids.
        fingerprint: SHA-256 of phrase pairs and vocabularies.
        sides: source side and target side.
        vocabularies: source vocabulary and target vocabulary.
    """

    store: PhrasePairs
    fingerprint: str
    sides: tuple[PhraseSide, PhraseSide]
    vocabularies: tuple[Vocabulary, Vocabulary]

    @classmethod
    def open(cls, path: StrPath, vocabularies: StrPath) -> "Pairs":
        """Open a file of phrase pairs and a directory of vocabularies.

        Raises:
            InputError: a file is missing or malformed.
        """
        return cls.of(PhrasePairs(path), vocabularies)

    @classmethod
    def of(cls, store: PhrasePairs, vocabularies: StrPath) -> "Pairs":
        """Return the pairs of an open file of phrase pairs, given a directory of vocabularies.

        Raises:
            InputError: a vocabulary is missing or malformed.
        """
        source, target = (Vocabulary.read(file) for file in vocabulary_files(vocabularies))
        digest = hashlib.sha256("\n".join([store.fingerprint, source.hash(), target.hash()]).encode())
        sides = (
            PhraseSide(store.sides[0], store.first, source.ids(store.words[0]), source.eos),
            PhraseSide(store.sides[1], None, target.ids(store.words[1]), target.eos),
        )
        return cls(store, digest.hexdigest(), sides, (source, target))

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.sides[1].phrases.offsets) - 1

    def at(self, index: Index) -> "Pairs":
        """Copy the pairs ``index`` [K], ascending, into memory; at any time, few pages of the file are mapped."""
        parts = read_apart(lambda some: [side.at(some) for side in self.sides], index, self.release)
        source, target = (
            replace(sides[0], phrases=PhraseIds.concatenated([side.phrases for side in sides]))
            for sides in zip(*parts, strict=True)
        )
        return replace(self, sides=(source, target))

    def source(self, i: int) -> NDArray[np.int32]:
        """Return the source phrase of pair i as ids, with EOS."""
        return self.sides[0].phrase(i)

    def target(self, i: int) -> NDArray[np.int32]:
        """Return the target phrase of pair i as ids, with EOS."""
        return self.sides[1].phrase(i)

    def release(self) -> None:
        """Unmap the pages that have been read, e.g. in a pass over all pairs."""
        self.store.release()

    def expect_random_access(self) -> None:
        """Prepare for reading pairs in random order, see ``rnnsmt.base.arrays.expect_random_access``."""
        self.store.expect_random_access()


def words_outside(pairs: Pairs, begin: int, end: int) -> Iterator[NDArray[np.int64]]:
    """Yield, in blocks, the numbers of target words outside the vocabulary of the pairs ``begin`` to ``end - 1``."""
    side = pairs.sides[1]
    for first in range(begin, end, BLOCK):
        index = np.arange(first, min(first + BLOCK, end))
        lengths = side.lengths(index)
        # no phrase is empty: each ends in EOS
        yield np.add.reduceat(side.joined(index) == UNK, np.cumsum(lengths) - lengths, dtype=np.int64)
        pairs.release()


def write_vocabularies(
    source: Sequence[str], target: Sequence[str], output_dir: StrPath, sizes: Sequence[int]
) -> dict[str, object]:
    """Write the vocabularies of the most frequent words of texts, and a report; return the statistics of the stage.

    Args:
        source, target: text files of each side; both sides are parallel.
        sizes: sizes of both vocabularies, not counting EOS.

    Raises:
        InputError: a side has no words, or the sides have different numbers of lines.
    """
    counts = [
        count_words(list(paths), f"on the {side} side of the corpus")
        for side, paths in zip(SIDES, (source, target), strict=True)
    ]
    if counts[0].lines != counts[1].lines:
        raise InputError(
            f"{', '.join(source)}: {counts[0].lines:,} lines, but {', '.join(target)}: {counts[1].lines:,} lines; "
            "parallel files must have the same number of lines"
        )
    figures: dict[str, object] = {}
    for side, of_side, size, file in zip(SIDES, counts, sizes, vocabulary_files(output_dir), strict=True):
        vocabulary = Vocabulary.from_counts(of_side.words, size)
        vocabulary.write(file)
        figures |= {f"{side} classes": len(vocabulary), f"{side} coverage": of_side.coverage(vocabulary)}
    write_report(Path(output_dir) / "vocabularies.json", figures)
    return figures
