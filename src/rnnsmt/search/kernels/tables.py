"""Compiled readers of phrase-table and reordering-table lines, and the search for source phrases in sentences."""

import numpy as np

from rnnsmt.kernels.decorator import INNER, kernel
from rnnsmt.kernels.strings import find, hash_bytes, intern
from rnnsmt.kernels.table_lines import FIELDS, MALFORMED, check_phrase_line, check_reordering_line, split_line

OK, FULL = 0, 100

COLUMNS, REFUSED = 1, 2

_SPACE = 32


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
    bounds = np.empty((FIELDS, 2), np.int64)
    position = begin
    lines = 0
    while position < end:
        stop = position
        while buffer[stop] != 10:
            stop += 1
        fields = split_line(buffer, position, stop, bounds)
        if fields == MALFORMED:
            return position, filled, lines, REFUSED
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
            columns = check_phrase_line(buffer, bounds, fields, pow10, out_scores[filled])
            if columns == MALFORMED:
                return position, filled, lines, REFUSED
            if columns != out_scores.shape[1]:
                return position, filled, lines, COLUMNS
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
    bounds = np.empty((FIELDS, 2), np.int64)
    position = 0
    lines = 0
    while position < end:
        stop = position
        while buffer[stop] != 10:
            stop += 1
        fields = split_line(buffer, position, stop, bounds)
        if fields == MALFORMED:
            return lines, REFUSED
        key = hash_bytes(buffer, bounds[0, 0], bounds[0, 1])
        source = find(sources, buffer, bounds[0, 0], bounds[0, 1], key)
        if source >= 0:
            key = hash_bytes(buffer, bounds[1, 0], bounds[1, 1])
            target = find(targets, buffer, bounds[1, 0], bounds[1, 1], key)
            if target >= 0:
                pair = (source << 32) | target
                row = np.searchsorted(pairs, pair)
                if row < pairs.shape[0] and pairs[row] == pair:
                    columns = check_reordering_line(buffer, bounds, fields, pow10, out[row])
                    if columns == MALFORMED:
                        return lines, REFUSED
                    if columns != out.shape[1]:
                        return lines, COLUMNS
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
