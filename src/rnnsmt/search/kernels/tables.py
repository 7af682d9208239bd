"""Compiled readers of phrase-table and reordering-table lines, and the search for source phrases in sentences."""

import numpy as np

from rnnsmt.kernels.decorator import INNER, kernel
from rnnsmt.kernels.strings import find, hash_bytes, intern, parse_float

OK, FULL = 0, 100

FEW_FIELDS, COLUMNS, NOT_A_NUMBER, EMPTY_SOURCE = 1, 2, 3, 4

_BAR = 124

_SPACE = 32


@kernel(**INNER)
def _fields(buffer, begin, end, bounds):
    """Split a line on ``|||`` and trim spaces; writes [begin, end) pairs into ``bounds``, returns how many fields."""
    count = 0
    start = begin
    position = begin
    capacity = bounds.shape[0]
    while True:
        at_end = position >= end
        if at_end or (
            buffer[position] == _BAR
            and position + 2 < end
            and buffer[position + 1] == _BAR
            and buffer[position + 2] == _BAR
        ):
            left, right = start, min(position, end)
            while left < right and buffer[left] == _SPACE:
                left += 1
            while right > left and (buffer[right - 1] == _SPACE or buffer[right - 1] == 13):
                right -= 1
            bounds[count, 0] = left
            bounds[count, 1] = right
            count += 1
            if at_end or count == capacity:
                return count
            position += 3
            start = position
        else:
            position += 1


@kernel(**INNER)
def _numbers(buffer, begin, end, pow10, out):
    """Parse exactly ``len(out)`` non-negative numbers; an error code or OK."""
    position = begin
    for k in range(out.shape[0]):
        while position < end and buffer[position] == _SPACE:
            position += 1
        stop = position
        while stop < end and buffer[stop] != _SPACE:
            stop += 1
        if stop == position:
            return COLUMNS
        value = parse_float(buffer, position, stop, pow10)
        if not value >= 0.0:
            return NOT_A_NUMBER
        out[k] = value
        position = stop
    while position < end and buffer[position] == _SPACE:
        position += 1
    return OK if position == end else COLUMNS


@kernel(**INNER)
def has_key(slots, key):
    """Whether a set of hashes (0 = free slot) holds ``key``."""
    mask = np.uint64(slots.shape[0] - 1)
    slot = key & mask
    while slots[np.int64(slot)] != np.uint64(0):
        if slots[np.int64(slot)] == key:
            return True
        slot = (slot + np.uint64(1)) & mask
    return False


@kernel()
def add_ngram_keys(slots, buffer, word_begin, word_end, first, last, longest):
    """Enter the hashes of all n-grams of words ``first`` to ``last`` - 1 up to a length; how many were new."""
    mask = np.uint64(slots.shape[0] - 1)
    new = 0
    for i in range(first, last):
        for j in range(i, min(last, i + longest)):
            key = hash_bytes(buffer, word_begin[i], word_end[j])
            slot = key & mask
            while slots[np.int64(slot)] != np.uint64(0) and slots[np.int64(slot)] != key:
                slot = (slot + np.uint64(1)) & mask
            if slots[np.int64(slot)] == np.uint64(0):
                slots[np.int64(slot)] = key
                new += 1
    return new


@kernel()
def phrase_lines(buffer, begin, wanted, sources, targets, pow10, out_source, out_target, out_scores, filled):
    """Parse the phrase-table lines of a block from ``begin``.

    Args:
        buffer: ``uint8``, whole lines.
        wanted: set of source hashes ``uint64``, or one slot to keep every line.
        sources, targets: intern tables of whole phrases.
        out_source, out_target: ``int32`` [capacity]; out_scores: ``float64`` [capacity, columns].
        filled: rows in use.

    Returns:
        (position, rows in use, complete lines passed, code); code ``FULL`` asks for larger arrays.
    """
    end = buffer.shape[0]
    bounds = np.zeros((8, 2), np.int64)
    position = begin
    lines = 0
    while position < end:
        stop = position
        while buffer[stop] != 10:
            stop += 1
        count = _fields(buffer, position, stop, bounds)
        if count < 3:
            return position, filled, lines, FEW_FIELDS
        if bounds[0, 0] == bounds[0, 1]:
            return position, filled, lines, EMPTY_SOURCE
        keep = wanted.shape[0] == 1 or has_key(wanted, hash_bytes(buffer, bounds[0, 0], bounds[0, 1]))
        if keep:
            if (
                filled >= out_source.shape[0]
                or sources.size[0] + 1 >= sources.hashes.shape[0]
                or targets.size[0] + 1 >= targets.hashes.shape[0]
                or sources.offsets[sources.size[0]] + stop - position > sources.arena.shape[0]
                or targets.offsets[targets.size[0]] + stop - position > targets.arena.shape[0]
            ):
                return position, filled, lines, FULL
            code = _numbers(buffer, bounds[2, 0], bounds[2, 1], pow10, out_scores[filled])
            if code != OK:
                return position, filled, lines, code
            out_source[filled] = intern(sources, buffer, bounds[0, 0], bounds[0, 1])
            out_target[filled] = intern(targets, buffer, bounds[1, 0], bounds[1, 1])
            filled += 1
        position = stop + 1
        lines += 1
    return position, filled, lines, OK


@kernel()
def reordering_lines(buffer, sources, targets, pairs, pow10, out, found):
    """Parse the reordering-table lines of a block that belong to known phrase pairs.

    Args:
        pairs: ``int64`` [pairs], sorted (source << 32 | target).
        out: ``float64`` [pairs, columns], probabilities by pair.
        found: ``uint8`` [pairs], set to 1 where a line was read.

    Returns:
        (complete lines passed, code).
    """
    end = buffer.shape[0]
    bounds = np.zeros((8, 2), np.int64)
    position = 0
    lines = 0
    while position < end:
        stop = position
        while buffer[stop] != 10:
            stop += 1
        count = _fields(buffer, position, stop, bounds)
        if count < 3:
            return lines, FEW_FIELDS
        key = hash_bytes(buffer, bounds[0, 0], bounds[0, 1])
        source = find(sources, buffer, bounds[0, 0], bounds[0, 1], key)
        if source >= 0:
            key = hash_bytes(buffer, bounds[1, 0], bounds[1, 1])
            target = find(targets, buffer, bounds[1, 0], bounds[1, 1], key)
            if target >= 0:
                pair = (source << 32) | target
                row = np.searchsorted(pairs, pair)
                if row < pairs.shape[0] and pairs[row] == pair:
                    code = _numbers(buffer, bounds[2, 0], bounds[2, 1], pow10, out[row])
                    if code != OK:
                        return lines, code
                    found[row] = 1
        position = stop + 1
        lines += 1
    return lines, OK


@kernel()
def split_words(arena, offsets, count, words, flat, bounds):
    """Split phrases into interned words: ``flat`` int32, ``bounds`` int64 [count + 1]; returns how many words."""
    filled = 0
    for phrase in range(count):
        position, end = offsets[phrase], offsets[phrase + 1]
        while position < end:
            while position < end and arena[position] == _SPACE:
                position += 1
            stop = position
            while stop < end and arena[stop] != _SPACE:
                stop += 1
            if stop > position:
                flat[filled] = intern(words, arena, position, stop)
                filled += 1
            position = stop
        bounds[phrase + 1] = filled
    return filled


@kernel()
def find_spans(table, buffer, word_begin, word_end, longest, out):
    """Source phrase ids of all spans of a sentence: ``out`` int32 [words, longest], -1 where there is none."""
    count = word_begin.shape[0]
    for i in range(count):
        for length in range(longest):
            j = i + length
            out[i, length] = -1
            if j < count:
                key = hash_bytes(buffer, word_begin[i], word_end[j])
                out[i, length] = find(table, buffer, word_begin[i], word_end[j], key)
