"""Conversion of phrase-table lines to word ids, compiled."""

from typing import Any

from rnnsmt.base.kernels.decorator import kernel
from rnnsmt.base.kernels.strings import find, hash_bytes
from rnnsmt.base.kernels.table_lines import SOURCE, TARGET

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


@kernel()
def pair_keys(block: Any, bounds: Any, new_source: Any, keys: Any) -> None:
    """Compute what ``rnnsmt.rnn.pairs`` needs to find pairs that occur twice in a sorted table.

    Args:
        block, bounds: see ``number_phrases``.
        new_source: bool [lines], filled with whether the source phrase differs from that of the previous line; True for
            the first line.
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
