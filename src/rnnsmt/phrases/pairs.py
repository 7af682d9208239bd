"""Files of phrase pairs: every distinct pair once, as word ids, in the order of the phrase table.

A file of phrase pairs, also called *store*, is a file of arrays (``rnnsmt.base.array_file``). A *run* is a sequence of
consecutive pairs with the same source phrase, which is stored once:

* ``source words``: word ids of the source phrases of all runs, concatenated.
* ``source offsets`` [runs + 1]: begin of each source phrase in ``source words``.
* ``first`` [runs + 1]: index of the first pair of each run; the last element is the number of pairs.
* ``target words``: word ids of the target phrases of all pairs, concatenated.
* ``target offsets`` [pairs + 1]: begin of each target phrase in ``target words``.
* ``source vocabulary``, ``target vocabulary``: the words in UTF-8, each followed by a newline; the id of a word is the
  0-based index of its line.

Scores of the pairs are in other files, with one element for each pair (``rnnsmt.phrases.column_files``). The header
entry ``fingerprint`` identifies the pairs.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.array_file import ArrayFile, ArrayWriter, write_arrays
from rnnsmt.base.arrays import concatenated_ranges, expect_random_access
from rnnsmt.base.errors import InputError
from rnnsmt.base.kernels.decorator import kernel
from rnnsmt.base.paths import StrPath
from rnnsmt.phrases.extract_file import ExtractFile
from rnnsmt.phrases.packing import unpack

SIDES = ("source", "target")

FORMAT = "rnnsmt-phrase-pairs-1"

REMEDY = "create it with `rnnsmt phrases extract` or `rnnsmt phrases import-table`"

BLOCK = 1 << 18
"""Number of pairs that are read at a time."""


class PhrasePairs:
    """The phrase pairs in a file, which is mapped into memory.

    Attributes:
        path: the file.
        words: source vocabulary and target vocabulary; the id of a word is its index.
        fingerprint: SHA-256 of the pairs and the vocabularies.
        begin, end: range of the pairs in the shard, ``begin`` to ``end - 1``.
    """

    def __init__(self, path: StrPath, shard: tuple[int, int] = (1, 1)) -> None:
        """Map a file, and check the pairs of a shard.

        Args:
            path: the file.
            shard: (k, n) for the k-th of n consecutive shards of nearly equal size; only its pairs are checked.

        Raises:
            InputError: the file is not a file of phrase pairs, or its arrays are inconsistent.
        """
        self.path = Path(path)
        arrays = self._arrays = ArrayFile(path, REMEDY)
        if arrays.entries.get("format") != FORMAT or "fingerprint" not in arrays.entries:
            raise InputError(f"{path}: not a file of phrase pairs of this version ({FORMAT}); {REMEDY}")
        self.fingerprint = arrays.entries["fingerprint"]
        try:
            self.words = tuple(_words(arrays[f"{side} vocabulary"]) for side in SIDES)
            self.first: NDArray[np.int64] = arrays["first"]
            self.sides = tuple(PhraseIds(arrays[f"{side} words"], arrays[f"{side} offsets"]) for side in SIDES)
        except (KeyError, ValueError):
            agree = False
        else:
            agree = _begins_with_zero(self.first) and len(self) >= 0
        if agree:
            part, shards = shard
            self.begin, self.end = len(self) * (part - 1) // shards, len(self) * part // shards
            agree = self._agree()
        if not agree:
            raise InputError(f"{path}: the arrays of the phrase pairs do not agree with each other; {REMEDY}")

    def _agree(self) -> bool:
        """Return whether all runs and phrases of the shard are non-empty, and all word ids are in the vocabularies."""
        runs = int(np.searchsorted(self.first, self.begin, "right")) - 1, int(np.searchsorted(self.first, self.end))
        if not self._ascend(self.first[runs[0] : runs[1] + 1]):
            return False
        numbers, shard = (len(self.first) - 1, len(self)), (runs, (self.begin, self.end))
        for phrases, words, number, (low, high) in zip(self.sides, self.words, numbers, shard, strict=True):
            ids, offsets = phrases
            if ids.dtype.kind != "u" or not _begins_with_zero(offsets) or len(offsets) != number + 1:
                return False
            begin, end = int(offsets[low]), int(offsets[high])
            if begin < 0 or end > len(ids) or offsets[-1] != len(ids) or not self._ascend(offsets[low : high + 1]):
                return False
            for start in range(begin, end, BLOCK):
                if ids[start : min(start + BLOCK, end)].max() >= len(words):
                    return False
                self.release()
        self.release()
        return True

    def _ascend(self, bounds: NDArray[np.int64]) -> bool:
        """Return whether the numbers are strictly increasing."""
        for begin in range(0, len(bounds) - 1, BLOCK):
            block = bounds[begin : begin + BLOCK + 1]
            if (block[1:] <= block[:-1]).any():
                return False
            self.release()
        return True

    def __len__(self) -> int:
        """Return the number of pairs."""
        return int(self.first[-1])

    def vocabulary(self, side: str) -> NDArray[np.uint8]:
        """Return the vocabulary of one of ``SIDES`` in UTF-8, with a newline after each word."""
        return self._arrays[f"{side} vocabulary"]

    def runs(self, index: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the run that contains each of the pairs ``index``, [K]."""
        return runs_of(self.first, index)

    def texts(self, begin: int = 0, end: int | None = None) -> Iterator[tuple[list[str], list[str]]]:
        """Yield the source words and the target words of the pairs ``begin`` to ``end - 1``."""
        last = len(self) if end is None else end
        for start in range(begin, last, BLOCK):
            index = np.arange(start, min(start + BLOCK, last))
            runs = self.runs(index)
            sources = _as_lists(self.words[0], *self.sides[0].joined(np.arange(runs[0], runs[-1] + 1)))
            targets = _as_lists(self.words[1], *self.sides[1].joined(index))
            for run, target in zip((runs - runs[0]).tolist(), targets, strict=True):
                yield sources[run], target
            self.release()

    def release(self) -> None:
        """Unmap the pages that have been read, e.g. in a pass over all pairs."""
        self._arrays.release()

    def expect_random_access(self) -> None:
        """Prepare for reading pairs in random order, see ``rnnsmt.base.arrays.expect_random_access``."""
        expect_random_access(self.first.base)


def runs_of(first: NDArray[np.int64], index: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the run that contains each of the pairs ``index``, [K]; ``first`` is the first pair of each run."""
    return np.searchsorted(first, index, "right") - 1


class PhraseIds(NamedTuple):
    """Phrases as word ids; both arrays may be mapped from a file.

    Attributes:
        words: word ids of all phrases, concatenated.
        offsets: int64 [phrases + 1], begin of each phrase in ``words``.
    """

    words: NDArray[Any]
    offsets: NDArray[np.int64]

    def joined(self, index: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the concatenated word ids of the phrases ``index`` [K], and the lengths of the phrases [K]."""
        begins = self.offsets[index]
        lengths = self.offsets[index + 1] - begins
        return self.words[concatenated_ranges(begins, lengths)].astype(np.int64), lengths

    def select(self, index: NDArray[Any]) -> "PhraseIds":
        """Return a copy of the phrases ``index`` [K] in memory; the type of the ids is the same."""
        begins = self.offsets[index]
        lengths = self.offsets[index + 1] - begins
        words = self.words[concatenated_ranges(begins, lengths)]
        return PhraseIds(words, np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]))

    @classmethod
    def concatenated(cls, parts: Sequence["PhraseIds"]) -> "PhraseIds":
        """Concatenate several lists of phrases in memory."""
        lengths = np.concatenate([np.zeros(1, np.int64), *(np.diff(part.offsets) for part in parts)])
        return cls(np.concatenate([part.words for part in parts]), np.cumsum(lengths))


def _words(text: NDArray[np.uint8]) -> list[str]:
    """Return the words of a vocabulary.

    Raises:
        ValueError: the vocabulary is not UTF-8.
    """
    return text.tobytes().decode().split("\n")[:-1]


def _begins_with_zero(bounds: NDArray[Any]) -> bool:
    """Return whether an array has the type of offsets (int64) and begins with 0."""
    return bool(bounds.dtype == np.int64 and len(bounds) and bounds[0] == 0)


def _as_lists(words: Sequence[str], ids: NDArray[np.int64], lengths: NDArray[np.int64]) -> list[list[str]]:
    """Return a list of words for each phrase, given the concatenated word ids and the lengths of the phrases."""
    every = [words[word] for word in ids.tolist()]
    ends = np.cumsum(lengths).tolist()
    return [every[end - length : end] for end, length in zip(ends, lengths.tolist(), strict=True)]


class PairsWriter:
    """Writer of a file of phrase pairs: first blocks of pairs, then the vocabularies."""

    def __init__(self, writer: ArrayWriter) -> None:
        self._writer = writer
        for name in ("source offsets", "target offsets"):
            writer.append(name, np.zeros(1, np.int64))

    @property
    def pairs(self) -> int:
        """Return the number of pairs so far."""
        return self._writer.lengths["target offsets"] - 1

    def append(self, first: NDArray[np.int64], *sides: tuple[NDArray[Any], NDArray[np.int64]]) -> None:
        """Append a block of pairs.

        Args:
            first: [runs], index in the block of the first pair of each run.
            sides: (word ids, lengths) of the source phrases of the runs, and of the target phrases of the pairs.
        """
        self._writer.append("first", self.pairs + first)
        for side, (ids, lengths) in zip(SIDES, sides, strict=True):
            self._writer.append(f"{side} offsets", self._writer.lengths[f"{side} words"] + np.cumsum(lengths))
            self._writer.append(f"{side} words", ids)

    def finish(self, *vocabularies: Sequence[bytes]) -> dict[str, object]:
        """Write the vocabularies and the fingerprint; return the number of source phrases and the number of pairs."""
        self._writer.append("first", np.array([self.pairs]))
        for side, words in zip(SIDES, vocabularies, strict=True):
            text = b"".join(word + b"\n" for word in words)
            self._writer.append(f"{side} vocabulary", np.frombuffer(text, np.uint8))
        self._writer.entries |= {"format": FORMAT, "fingerprint": self._writer.digest()}
        return {"source phrases": self._writer.lengths["source offsets"] - 1, "phrase pairs": self.pairs}


def pair_types(words: Sequence[int]) -> dict[str, Any]:
    """Return the types of the arrays in a file of phrase pairs.

    Args:
        words: size of the source vocabulary and size of the target vocabulary, or upper bounds.
    """
    types: dict[str, Any] = {"first": np.int64}
    for side, number in zip(SIDES, words, strict=True):
        types[f"{side} words"] = np.uint16 if number <= 1 << 16 else np.uint32
        types |= {f"{side} offsets": np.int64, f"{side} vocabulary": np.uint8}
    return types


def write_extracted_pairs(extract: ExtractFile, output: StrPath) -> dict[str, object]:
    """Write the distinct pairs of an extract file as a file of phrase pairs.

    Returns:
        The number of source phrases and the number of pairs.
    """
    sides, packings = extract.sides(), extract.packings
    with write_arrays(output, pair_types([len(packing.words) for packing in packings])) as writer:
        store = PairsWriter(writer)
        for rows, _ in extract.batches([]):
            first = np.searchsorted(rows.pairs, rows.sources[:-1])
            source = _unpacked(rows.source_keys, rows.sources[:-1], sides[0])
            store.append(first, source, _unpacked(rows.target_keys, rows.pairs[:-1], sides[1]))
        return store.finish(packings[0].words, packings[1].words)


def _unpacked(keys: NDArray[np.int64], rows: NDArray[np.int64], side: Any) -> tuple[Any, NDArray[np.int64]]:
    """Return the concatenated word ids of packed phrases, and the lengths; the id of a word is its code - 1."""
    ids, lengths = np.empty(8 * len(rows), np.uint32), np.empty(len(rows), np.int64)
    filled = unpack_rows(keys, rows, side, ids, lengths)
    return ids[:filled], lengths


@kernel()
def unpack_rows(keys: Any, rows: Any, side: Any, ids: Any, lengths: Any) -> int:
    """Unpack phrases; return the number of ids.

    Args:
        keys: int64 [K, N], packed phrases.
        rows: int64 [P], columns of ``keys`` to unpack.
        side: ``Side`` of the phrases.
        ids: uint32 [8 P], filled with the concatenated word ids; the id of a word is its code - 1.
        lengths: int64 [P], filled with the number of words of each phrase.
    """
    codes = np.empty(8, np.int64)
    filled = 0
    for number in range(rows.shape[0]):
        length = unpack(keys, rows[number], side, codes)
        for word in range(length):
            ids[filled] = codes[word] - 1
            filled += 1
        lengths[number] = length
    return filled
