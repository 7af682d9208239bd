"""Phrase pairs as ids on disk, a directory of ``rnnsmt.networks.data``; pair i is line i (0-based) of the table.

The JSON file is ``pairs.json``, the vocabularies ``vocab.source.txt`` and ``vocab.target.txt``.

The second half of the module converts a phrase table into this directory with compiled kernels, in one pass over the
corpus and one over the table, without loading either into memory.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.errors import InputError
from rnnsmt.base.kernels.decorator import kernel
from rnnsmt.base.kernels.strings import Interner, find, hash_bytes
from rnnsmt.base.kernels.table_lines import SOURCE, TARGET
from rnnsmt.base.progress import Meter
from rnnsmt.formats.phrase_table import read_phrase_lines
from rnnsmt.networks.batches import Index
from rnnsmt.networks.data import (
    UNK,
    IdDirectory,
    IdFormat,
    Sequences,
    Vocabulary,
    check_size,
    count_words,
    finish_id_directory,
    write_id_directory,
)

SIDES = ("source", "target")

FORMAT = IdFormat("pairs.json", "rnnsmt-pairs-1", SIDES, "run `rnn prepare` again")

BLOCK = 1 << 20
"""Number of pairs that are read at a time."""


class Pairs(IdDirectory):
    """The pairs of a phrase table."""

    kind = FORMAT

    def source(self, i: int) -> NDArray[np.int32]:
        """Return the source phrase of pair i as ids, with EOS."""
        return self.sides[0].phrase(i)

    def target(self, i: int) -> NDArray[np.int32]:
        """Return the target phrase of pair i as ids, with EOS."""
        return self.sides[1].phrase(i)

    def at(self, lines: Index) -> "Pairs":
        """Return the pairs of some lines of the table, in memory. lines: [K], 0-based, ascending."""
        return replace(self, sides=tuple(_copy_lines(side, lines) for side in self.sides))


def _copy_lines(side: Sequences, lines: Index) -> Sequences:
    """Copy the sequences ``lines`` [K], ascending; at any time, few pages of the files are mapped."""
    words, lengths = [np.empty(0, np.int32)], [np.zeros(1, np.int64)]
    for begin in range(0, len(lines), BLOCK // 16):
        index = lines[begin : begin + BLOCK // 16]
        words.append(side.joined(index))
        lengths.append(side.lengths(index))
        side.release()
    return Sequences(np.concatenate(words), np.cumsum(np.concatenate(lengths)))


def words_outside(side: Sequences, block: int = BLOCK) -> Iterator[NDArray[np.int64]]:
    """Yield the number of UNK in every phrase, for ``block`` phrases at a time."""
    for begin in range(0, len(side.offsets) - 1, block):
        offsets = np.asarray(side.offsets[begin : begin + block + 1])
        unknown = side.words[offsets[0] : offsets[-1]] == UNK
        # no phrase is empty: each ends in EOS
        yield np.add.reduceat(unknown, offsets[:-1] - offsets[0], dtype=np.int64)
        side.release()


def prepare_pairs(
    table: str,
    source: list[str],
    target: list[str],
    output_dir: str,
    *,
    size: int,
    max_length: int,
) -> dict[str, object]:
    """Write the directory of a phrase table; return the statistics of the stage.

    Args:
        table: the phrase table, sorted.
        source, target: the texts of each side, from which the vocabularies are made.
        size: size of a vocabulary, EOS not counted.
        max_length: maximum number of words of a phrase.
    """
    check_size(size)
    vocabularies, lines, coverage = [], [], {}
    for name, paths in zip(SIDES, (source, target), strict=True):
        counts = count_words(paths, f"on the {name} side of the corpus")
        lines.append(counts.lines)
        vocabularies.append(Vocabulary.from_counts(counts.words, size))
        coverage[f"{name} coverage"] = counts.coverage(vocabularies[-1])
    if lines[0] != lines[1]:
        raise InputError(
            f"{', '.join(source)}: {lines[0]:,} lines, but {', '.join(target)}: {lines[1]:,} lines; parallel files "
            "must have the same number of lines"
        )
    directory, meter = Path(output_dir), Meter("reading the phrase table", unit="pairs")
    with write_id_directory(directory, FORMAT) as writer:
        for block in _id_blocks(table, vocabularies, max_length):
            for side, (ids, lengths) in enumerate(block):
                writer.append(side, ids, lengths)
            meter.add(len(block[0][1]))
        if not writer.sequences:
            raise InputError(f"{table}: the table is empty; create it again")
    return finish_id_directory(directory, FORMAT, writer, vocabularies, {"pairs": writer.sequences, **coverage})


IdsAndLengths = tuple[NDArray[np.int32], NDArray[np.int64]]


def _id_blocks(table: str, vocabularies: list[Vocabulary], max_length: int) -> Iterator[list[IdsAndLengths]]:
    """Yield blocks of the table as (ids with EOS, lengths) of the source and of the target."""
    known = [Interner() for _ in SIDES]
    for words, vocabulary in zip(known, vocabularies, strict=True):
        words.add([word.encode() for word in vocabulary.index])
    number = 0
    for text, bounds, _ in read_phrase_lines(table):
        sides: list[IdsAndLengths] = []
        for side, words, vocabulary in zip((SOURCE, TARGET), known, vocabularies, strict=True):
            ids, lengths = np.empty(len(text), np.int32), np.empty(len(bounds), np.int64)
            filled = number_phrases(text, bounds, side, words.table, UNK, vocabulary.eos, ids, lengths)
            sides.append((ids[:filled], lengths))
        longest = np.maximum(sides[0][1], sides[1][1]) - 1
        if longest.max() > max_length:
            line = int(np.argmax(longest > max_length))
            raise InputError(
                f"{table}, line {number + line + 1}: has a phrase of {longest[line]} words, but the limit is "
                f"{max_length}; use --max-length {longest[line]}, or extract shorter phrases"
            )
        number += len(bounds)
        yield sides


FIRST_ID = 2
"""The id of the first word of a vocabulary."""


@kernel(inline="always")
def _white(byte: Any) -> Any:
    """Return whether ``bytes.split`` splits at a byte: space, tab, newline, VT, FF, CR."""
    return byte == 32 or 9 <= byte <= 13


@kernel()
def number_phrases(
    block: Any, bounds: Any, side: Any, words: Any, unknown: Any, eos: Any, ids: Any, lengths: Any
) -> Any:
    """Fill ``ids`` with the ids of the phrases of one side, each followed by ``eos``; return the number of ids.

    Args:
        block: uint8, the bytes of some lines.
        bounds: int64 [lines, 3, 2], begin and end of the first three fields, as ``split_phrase_lines`` fills it.
        side: the field, SOURCE or TARGET.
        words: the vocabulary (``rnnsmt.base.kernels.strings.InternTable``); its k-th word has the id FIRST_ID + k.
        unknown: the id of words outside the vocabulary.
        eos: the id of the end of a phrase.
        ids: int32, at least as long as ``block``, which has more bytes than its phrases have ids.
        lengths: int64 [lines], filled with the number of ids of each phrase, ``eos`` included.
    """
    filled = 0
    for line in range(bounds.shape[0]):
        position, end = bounds[line, side, 0], bounds[line, side, 1]
        first = filled
        while position < end:
            while position < end and _white(block[position]):
                position += 1
            stop = position
            while stop < end and not _white(block[stop]):
                stop += 1
            if stop > position:
                word = find(words, block, position, stop, hash_bytes(block, position, stop))
                ids[filled] = unknown if word < 0 else word + FIRST_ID
                filled += 1
            position = stop
        ids[filled] = eos
        filled += 1
        lengths[line] = filled - first
    return filled
