"""Compiled turning of phrase-table lines into word ids."""

from typing import Any

from rnnsmt.kernels.decorator import kernel
from rnnsmt.kernels.strings import find, hash_bytes
from rnnsmt.kernels.table_lines import SOURCE, TARGET

FIRST_ID = 2
"""The id of the first word of a vocabulary."""


@kernel(inline="always")
def _white(byte: Any) -> Any:
    """What ``bytes.split`` splits at."""
    return byte == 32 or 9 <= byte <= 13


@kernel()
def number_phrases(
    block: Any, bounds: Any, side: Any, words: Any, unknown: Any, eos: Any, ids: Any, lengths: Any
) -> Any:
    """Fill ``ids`` with the words of the phrases of one side, each phrase followed by ``eos``; return how many ids.

    Args:
        block: uint8, lines.
        bounds: int64 [lines, 3, 2], of ``split_phrase_lines``.
        side: SOURCE or TARGET.
        words: the vocabulary (``rnnsmt.kernels.strings.InternTable``), the k-th word has id FIRST_ID + k.
        unknown: the id of other words.
        ids: int32, with room for the bytes of the block.
        lengths: int64 [lines], filled with the ids of each phrase, ``eos`` included.
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


@kernel()
def pair_keys(block: Any, bounds: Any, new_source: Any, keys: Any) -> None:
    """What tells the pairs of lines apart.

    Args:
        block, bounds: as for ``number_phrases``.
        new_source: bool [lines], filled with whether the source phrase is another than in the line before; True for the
            first line.
        keys: uint64 [lines], filled with hashes of the target phrases.
    """
    for line in range(bounds.shape[0]):
        keys[line] = hash_bytes(block, bounds[line, TARGET, 0], bounds[line, TARGET, 1])
        new_source[line] = True
        if line > 0:
            here, before = bounds[line, SOURCE], bounds[line - 1, SOURCE]
            length = here[1] - here[0]
            if before[1] - before[0] == length:
                same = True
                for k in range(length):
                    if block[here[0] + k] != block[before[0] + k]:
                        same = False
                        break
                new_source[line] = not same
