"""Phrase pairs as ids on disk, in memory-mapped arrays; pair i is line i (from 0) of the phrase table.

A directory with these files:

* ``vocab.source.txt``, ``vocab.target.txt``: the vocabularies.
* ``{source,target}.words.npy``: int32, all phrases one after the other, each ending in EOS.
* ``{source,target}.offsets.npy``: int64 [pairs + 1], where each phrase begins.
* ``pairs.json``: counts and the fingerprint; written last.

If the origins of the pairs are known, also:

* ``held_out.npy``: int64, ascending, the indices of the pairs that only occur in sentences of the first fold.
* ``first_fold.npy``, ``last_fold.npy``: uint8 [pairs], first and last fold of the sentences that contain a pair.
* ``counts.npy``: int32 [pairs], how often a pair was extracted.

The directory is written in one pass over the corpus and one over the table, without holding either in memory.
"""

import copy
import hashlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.arrays import growing_array, read_array
from rnnsmt.base.io import InputError, check_utf8, read_json, read_line_blocks, write_json
from rnnsmt.base.kernels.strings import POW10, Interner
from rnnsmt.base.kernels.table_lines import SOURCE, TARGET, split_phrase_lines
from rnnsmt.base.options import bounds_of_part
from rnnsmt.base.progress import Meter
from rnnsmt.networks.batches import Index
from rnnsmt.networks.sequences import Sequences, open_sequences
from rnnsmt.networks.vocabulary import UNK, Vocabulary, check_size, count_words
from rnnsmt.phrases.folds import FOLDS
from rnnsmt.phrases.table import refuse_line
from rnnsmt.rnn.kernels.pairs import number_phrases, pair_keys

FORMAT = "rnnsmt-pairs-1"

AGAIN = "run rnn prepare again"

TABLE_AGAIN = "create the table and its origins again"

HELD_OUT = "held_out.npy"

FIRST_FOLD, LAST_FOLD, COUNTS = "first_fold.npy", "last_fold.npy", "counts.npy"

SIDES = ("source", "target")

BLOCK = 1 << 20
"""Number of pairs that are read at a time."""


class Pairs:
    """The pairs of a phrase table."""

    def __init__(self, folder: Path, source: Sequences, target: Sequences, stats: dict[str, object]) -> None:
        self.folder, self.sides, self.stats = folder, (source, target), stats
        self.vocabularies = tuple(Vocabulary.read(folder / f"vocab.{side}.txt") for side in SIDES)
        self.held_out: Index = np.zeros(0, np.int64)
        """Indices of the pairs that only occur in held-out sentences; empty if the origins are not known."""
        self.direction = "direct"
        """Direction, one of ``rnnsmt.rnn.settings.DIRECTIONS``: which side is read and which is predicted."""

    @classmethod
    def open(cls, folder: str | Path) -> "Pairs":
        """Open a directory that ``rnn prepare`` wrote; only the vocabularies are read into memory.

        Raises:
            InputError: a file is missing, damaged, or inconsistent with the others.
        """
        folder = Path(folder)
        stats = read_json(folder / "pairs.json")
        if not isinstance(stats, dict) or stats.get("format") != FORMAT or "fingerprint" not in stats:
            raise InputError(f"{folder / 'pairs.json'}: written by another version; {AGAIN}")
        source, target = (
            open_sequences(folder, f"{name}.", stats.get("pairs"), stats.get(f"{name} classes"), AGAIN)
            for name in SIDES
        )
        pairs = cls(folder, source, target, stats)
        for name, vocabulary in zip(SIDES, pairs.vocabularies, strict=True):
            if vocabulary.hash() != stats.get(f"{name} vocabulary"):
                raise InputError(f"{folder}: vocab.{name}.txt is newer than the pairs; {AGAIN}")
        if "held-out pairs" in stats:
            pairs.held_out = read_array(folder / HELD_OUT, np.int64, 1, AGAIN)
            if len(pairs.held_out) != stats["held-out pairs"]:
                raise InputError(f"{folder}: {HELD_OUT} is inconsistent with pairs.json; {AGAIN}")
        return pairs

    def __len__(self) -> int:
        return len(self.sides[0].offsets) - 1

    def source(self, i: int) -> NDArray[np.int32]:
        """Return the source phrase of pair i as ids, with EOS."""
        return self.sides[0].phrase(i)

    def target(self, i: int) -> NDArray[np.int32]:
        """Return the target phrase of pair i as ids, with EOS."""
        return self.sides[1].phrase(i)

    def longest(self) -> int:
        """Return the number of words of the longest phrase of either side."""
        parts = (side.offsets[i : i + BLOCK + 1] for side in self.sides for i in range(0, len(self), BLOCK))
        return max(int(np.diff(part).max()) for part in parts) - 1

    def in_direction(self, direction: str) -> "Pairs":
        """Return the pairs as a network of this direction reads and predicts them.

        ``inverse``: source and target are exchanged. ``target``: every source phrase is empty, EOS alone.
        """
        found = copy.copy(self)
        found.direction = direction
        if direction == "inverse":
            found.sides, found.vocabularies = self.sides[::-1], self.vocabularies[::-1]
        elif direction == "target":
            # a view of a single element, whatever the number of pairs
            eos = np.broadcast_to(np.int32(self.vocabularies[0].eos), len(self))
            found.sides = Sequences(eos, np.arange(len(self) + 1)), self.sides[1]
        return found

    def counts(self) -> NDArray[np.int32]:
        """Return how often each pair was extracted, int32 [pairs].

        Raises:
            InputError: the origins of the pairs are not known.
        """
        return self._of_origins(COUNTS, np.int32)

    def left_out(self, part: int, parts: int, begin: int = 0, end: int | None = None) -> NDArray[np.bool_]:
        """Return which of the pairs ``begin`` to ``end - 1`` only occur in sentences of part ``part`` (from 1).

        The folds of the sentences (``rnnsmt.phrases.folds``) are divided into ``parts`` nearly equal parts.

        Raises:
            InputError: the origins of the pairs are not known, or ``parts`` is below 2 or above the number of folds.
        """
        if not 2 <= parts <= FOLDS:
            raise InputError(f"--leave-out {part}/{parts}: give 2 to {FOLDS} parts, the sentences are in {FOLDS} folds")
        first, last = (self._of_origins(name, np.uint8)[begin:end] for name in (FIRST_FOLD, LAST_FOLD))
        least, above = bounds_of_part((part, parts), FOLDS)
        return np.asarray((first >= least) & (last < above))

    def _of_origins(self, name: str, dtype: type[np.generic]) -> NDArray[Any]:
        """Memory-map one of the arrays [pairs] that ``_write_origins`` writes.

        Raises:
            InputError: the origins of the pairs are not known, or the array has another length.
        """
        if "held-out pairs" not in self.stats:
            raise InputError(f"{self.folder}: the origins of the pairs are missing; run rnn prepare with --origins")
        found = read_array(self.folder / name, dtype, 1, AGAIN, mapped=True)
        if len(found) != len(self):
            raise InputError(f"{self.folder}: {name} is inconsistent with pairs.json; {AGAIN}")
        return found

    @property
    def fingerprint(self) -> str:
        """Return the SHA-256 of the vocabularies and all pairs."""
        return str(self.stats["fingerprint"])


def prepare_pairs(
    table: str,
    source: list[str],
    target: list[str],
    output_dir: str,
    *,
    size: int,
    max_length: int,
    origins: str | None = None,
) -> dict[str, object]:
    """Write the directory of a phrase table; return the statistics of the stage.

    Args:
        table: the phrase table, sorted.
        source, target: the texts of each side, from which the vocabularies are made.
        output_dir: the directory.
        size: size of a vocabulary, EOS not counted.
        max_length: maximum number of words of a phrase.
        origins: the file of ``phrases score`` with the origins of the pairs of the table; None: not known.

    Raises:
        InputError: the table is empty or malformed, has a phrase of more than ``max_length`` words or has a pair twice;
            the corpus has no words; the origins are those of another table.
    """
    check_size(size)
    folder = Path(output_dir)
    vocabularies = []
    stats: dict[str, object] = {"format": FORMAT}
    for name, paths in zip(SIDES, (source, target), strict=True):
        counts = count_words(paths, f"on the {name} side of the corpus")
        vocabulary = Vocabulary.from_counts(counts, size)
        vocabularies.append(vocabulary)
        known = sum(counts[word] for word in vocabulary.index)
        stats |= {f"{name} classes": len(vocabulary), f"{name} coverage": round(known / counts.total(), 6)}
    stats |= _write_arrays(table, folder, vocabularies, max_length)
    for name in (HELD_OUT, FIRST_FOLD, LAST_FOLD, COUNTS):
        (folder / name).unlink(missing_ok=True)
    if origins is not None:
        stats |= _write_origins(origins, folder, stats)
    for name, vocabulary in zip(SIDES, vocabularies, strict=True):
        vocabulary.write(folder / f"vocab.{name}.txt")
        stats[f"{name} vocabulary"] = vocabulary.hash()
    hidden = ("format", "fingerprint", "source vocabulary", "target vocabulary")
    write_json(folder / "pairs.json", stats)
    return {name: value for name, value in stats.items() if name not in hidden}


def _write_origins(origins: str, folder: Path, stats: dict[str, object]) -> dict[str, object]:
    """Write held-out pairs, folds and counts; return the number of held-out pairs and the new fingerprint.

    Raises:
        InputError: the origins are those of another table.
    """
    found = read_array(origins, np.int32, 2, TABLE_AGAIN)
    if found.shape != (stats["pairs"], 3):
        raise InputError(f"{origins}: has {len(found)} pairs, but the table has {stats['pairs']}; {TABLE_AGAIN}")
    # columns: first fold, last fold, count; the last fold is 0 if all sentences are of the first fold
    held_out = np.flatnonzero(found[:, 1] == 0)
    digest = hashlib.sha256(f"{stats['fingerprint']}".encode())
    columns = zip((FIRST_FOLD, LAST_FOLD, COUNTS), found.T, (np.uint8, np.uint8, np.int32), strict=True)
    for name, array, dtype in ((HELD_OUT, held_out, np.int64), *columns):
        with growing_array(folder / name, dtype) as out:
            out.append(array)
        digest.update(out.digest.digest())
    return {"held-out pairs": len(held_out), "fingerprint": digest.hexdigest()}


def _write_arrays(table: str, folder: Path, vocabularies: list[Vocabulary], max_length: int) -> dict[str, object]:
    """Write the four arrays of ids and offsets; return the numbers of pairs and words, and the fingerprint.

    Raises:
        InputError: see ``prepare_pairs``.
    """
    with ExitStack() as stack:
        words, offsets = (
            [stack.enter_context(growing_array(folder / f"{name}.{part}.npy", kind)) for name in SIDES]
            for part, kind in (("words", np.int32), ("offsets", np.int64))
        )
        for array in offsets:
            array.append(np.zeros(1, np.int64))
        meter = Meter("reading the phrase table", unit="pairs")
        unknown = [0, 0]
        for block in _id_blocks(table, vocabularies, max_length):
            for side, (ids, lengths) in enumerate(block):
                offsets[side].append(words[side].length + np.cumsum(lengths))
                words[side].append(ids)
                unknown[side] += int(np.count_nonzero(ids == UNK))
            meter.add(len(block[0][1]))
        if offsets[0].length == 1:
            raise InputError(f"{table}: the table is empty; create it again")
        # the arrays are replaced at the end of the ``with``: without pairs.json, an interrupted directory is invalid
        (folder / "pairs.json").unlink(missing_ok=True)
    digest = hashlib.sha256()
    for array in (*words, *offsets):
        digest.update(array.digest.digest())
    for vocabulary in vocabularies:
        digest.update(vocabulary.hash().encode())
    pairs = offsets[0].length - 1
    stats: dict[str, object] = {"pairs": pairs}
    for name, array, number in zip(SIDES, words, unknown, strict=True):
        stats |= {f"{name} words": array.length - pairs, f"{name} unknown words": number}
    return stats | {"fingerprint": digest.hexdigest()}


IdsAndLengths = tuple[NDArray[np.int32], NDArray[np.int64]]


def _id_blocks(table: str, vocabularies: list[Vocabulary], max_length: int) -> Iterator[list[IdsAndLengths]]:
    """Yield blocks of the table as (ids with EOS, lengths) of the source and of the target.

    Raises:
        InputError: a malformed line, a phrase of more than ``max_length`` words, a pair that occurs twice.
    """
    known = [Interner() for _ in SIDES]
    for words, vocabulary in zip(known, vocabularies, strict=True):
        words.add([word.encode() for word in vocabulary.index])
    number, n_scores = 0, 0
    before = b""
    seen: set[int] = set()
    for block in read_line_blocks(table):
        check_utf8(block, table, number)
        text, lines = np.frombuffer(block, np.uint8), block.count(b"\n")
        bounds = np.empty((lines, 3, 2), np.int64)
        n_scores, bad = split_phrase_lines(text, POW10, n_scores, bounds)
        if bad >= 0:
            refuse_line(block.split(b"\n")[bad], table, number + bad + 1, n_scores or None, reordering=False)
        new_source, keys = np.empty(lines, np.bool_), np.empty(lines, np.uint64)
        pair_keys(text, bounds, new_source, keys)
        # the kernel does not see the last line of the previous block
        new_source[0] = block[slice(*bounds[0, SOURCE])] != before
        before = block[slice(*bounds[-1, SOURCE])]
        seen, twice = _first_repeated(new_source, keys, seen)
        sides: list[IdsAndLengths] = []
        for side, words, vocabulary in zip((SOURCE, TARGET), known, vocabularies, strict=True):
            ids, lengths = np.empty(len(block), np.int32), np.empty(lines, np.int64)
            filled = number_phrases(text, bounds, side, words.table, UNK, vocabulary.eos, ids, lengths)
            sides.append((ids[:filled], lengths))
        longest = np.maximum(sides[0][1], sides[1][1]) - 1
        long = np.flatnonzero(longest[: twice if twice >= 0 else lines] > max_length)
        if len(long):
            name = SIDES[0] if sides[0][1][long[0]] - 1 > max_length else SIDES[1]
            length = int(sides[SIDES.index(name)][1][long[0]]) - 1
            raise InputError(
                f"{table}, line {number + int(long[0]) + 1}: the {name} phrase has {length} words, the limit is "
                f"{max_length}; give --max-length {length} or extract shorter phrases"
            )
        if twice >= 0:
            raise InputError(
                f"{table}, line {number + twice + 1}: this pair occurs twice in the table; create the table again"
            )
        number += lines
        yield sides


def _first_repeated(new_source: NDArray[np.bool_], keys: NDArray[np.uint64], seen: set[int]) -> tuple[set[int], int]:
    """Find the first line that repeats a target of its source phrase; the lines of a source are consecutive.

    Args:
        new_source, keys: [lines], as ``pair_keys`` fills them; targets are compared by their hashes.
        seen: the target hashes of the source phrase of the previous block's last line.

    Returns:
        The target hashes of the last source phrase, and the line, -1 if there is none.
    """
    for line, (new, key) in enumerate(zip(new_source.tolist(), keys.tolist(), strict=True)):
        if new:
            seen = set()
        elif key in seen:
            return seen, line
        seen.add(key)
    return seen, -1


def word_frequencies(pairs: Pairs, counts: NDArray[np.int32], block: int = BLOCK) -> NDArray[np.int64]:
    """Count the target words and EOS of an epoch, int64 [classes]. counts: [pairs], occurrences of each pair."""
    side, classes = pairs.sides[1], len(pairs.vocabularies[1])
    found = np.zeros(classes, np.int64)
    for begin in range(0, len(pairs), block):
        offsets = np.asarray(side.offsets[begin : begin + block + 1])
        times = np.repeat(counts[begin : begin + block], np.diff(offsets))
        weighted = np.bincount(side.words[offsets[0] : offsets[-1]], weights=times, minlength=classes)
        found += np.rint(weighted).astype(np.int64)
    return found


def words_outside(side: Sequences, block: int = BLOCK) -> Iterator[NDArray[np.int64]]:
    """Yield the number of UNK in every phrase, for ``block`` phrases at a time."""
    for begin in range(0, len(side.offsets) - 1, block):
        offsets = np.asarray(side.offsets[begin : begin + block + 1])
        unknown = side.words[offsets[0] : offsets[-1]] == UNK
        # no phrase is empty: each ends in EOS
        yield np.add.reduceat(unknown, offsets[:-1] - offsets[0], dtype=np.int64)
