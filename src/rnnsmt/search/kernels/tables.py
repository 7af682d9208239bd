"""Parsers of phrase tables and reordering tables, and look-up of source phrases."""

import numpy as np

from rnnsmt.base.kernels.decorator import INNER, kernel
from rnnsmt.base.kernels.probing import find_slot
from rnnsmt.base.kernels.strings import find, hash_bytes, intern
from rnnsmt.base.kernels.table_lines import (
    FIELDS,
    MALFORMED,
    check_phrase_line,
    check_reordering_line,
    split_line,
)
from rnnsmt.phrases.importing import affiliate_line

OK, COLUMNS, REFUSED = 0, 1, 2
"""Return codes: all lines were parsed; a line has another number of scores; a line is malformed."""

_SPACE = 32


@kernel(**INNER)
def _has_key(slots, key):
    return slots[find_slot(slots, key, np.uint64(0))] == key


@kernel()
def add_ngram_keys(slots, buffer, word_begin, word_end, bounds, longest):
    """Add the hashes of all n-grams of sentences to a set.

    Args:
        slots: ``uint64`` [a power of two], the set; free slots contain 0.
        buffer: ``uint8``, the text.
        word_begin, word_end: ``int64`` [words], begin and end of each word in ``buffer``.
        bounds: ``int64`` [sentences + 1]; the words of sentence s are bounds[s]..bounds[s + 1] - 1.
        longest: maximum order of the n-grams.

    Returns:
        False if the set is not large enough: more than half of its slots would be in use.
    """
    free = slots.shape[0] // 2
    for sentence in range(bounds.shape[0] - 1):
        for i in range(bounds[sentence], bounds[sentence + 1]):
            for j in range(i, min(bounds[sentence + 1], i + longest)):
                key = hash_bytes(buffer, word_begin[i], word_end[j])
                slot = find_slot(slots, key, np.uint64(0))
                if slots[slot] == np.uint64(0):
                    if free == 0:
                        return False
                    slots[slot] = key
                    free -= 1
    return True


@kernel()
def phrase_lines(
    buffer, keys, sources, targets, pow10, out_source, out_target, out_scores, out_counts, affiliated, filled
):
    """Parse the lines of a phrase table in a block.

    Args:
        buffer: ``uint8``, whole lines.
        keys: ``uint64``, set of hashes of source phrases, filled by ``add_ngram_keys``; lines with other source phrases
            are skipped. If it has a single slot, no line is skipped.
        sources, targets: intern tables of whole phrases, with capacity for the phrases of the block.
        pow10: ``float64``, powers of ten for the parser of numbers.
        out_source, out_target: ``int32`` [rows], filled with the ids of the phrases. The number of rows of these and
            the following arrays is at least ``filled`` plus the number of lines.
        out_scores: ``float64`` [rows, columns], filled with the scores of the file.
        out_counts: ``float32`` [rows], filled with how often a pair was extracted; 0 if the line has no counts.
        affiliated: None, or two arrays to be filled: ``int64`` [rows + 1], the offset of each row in the second array,
            and ``int8`` [target words of all rows], the affiliations.
        filled: number of rows in use before the call.

    Returns:
        (number of rows in use, number of lines before the first invalid line, code).
    """
    end = buffer.shape[0]
    bounds, counts = np.empty((FIELDS, 2), np.int64), np.empty(3)
    position = 0
    lines = 0
    while position < end:
        stop = position
        while buffer[stop] != 10:
            stop += 1
        fields = split_line(buffer, position, stop, bounds)
        if fields == MALFORMED:
            return filled, lines, REFUSED
        if keys.shape[0] == 1 or _has_key(keys, hash_bytes(buffer, bounds[0, 0], bounds[0, 1])):
            counts[2] = 0.0
            columns = check_phrase_line(buffer, bounds, fields, pow10, out_scores[filled], counts)
            if columns == MALFORMED:
                return filled, lines, REFUSED
            if columns != out_scores.shape[1]:
                return filled, lines, COLUMNS
            out_counts[filled] = counts[2]
            out_source[filled] = intern(sources, buffer, bounds[0, 0], bounds[0, 1])
            out_target[filled] = intern(targets, buffer, bounds[1, 0], bounds[1, 1])
            if affiliated is not None:
                begins, places = affiliated
                begins[filled + 1] = affiliate_line(buffer, bounds, fields, begins[filled], places)
            filled += 1
        position = stop + 1
        lines += 1
    return filled, lines, OK


@kernel()
def reordering_lines(buffer, sources, targets, pairs, pow10, out, present):
    """Parse the lines of a reordering table in a block that belong to known phrase pairs.

    Args:
        buffer: ``uint8``, whole lines.
        sources, targets: intern tables of the phrases of the phrase table.
        pairs: ``int64`` [pairs], source id << 32 | target id, in ascending order.
        pow10: ``float64``, powers of ten for the parser of numbers.
        out: ``float64`` [pairs, columns], filled with the probabilities.
        present: ``uint8`` [pairs], set to 1 for pairs that are in the block.

    Returns:
        (number of lines before the first invalid line, code).
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
                    columns = check_reordering_line(buffer, bounds, pow10, out[row])
                    if columns == MALFORMED:
                        return lines, REFUSED
                    if columns != out.shape[1]:
                        return lines, COLUMNS
                    present[row] = 1
        position = stop + 1
        lines += 1
    return lines, OK


@kernel()
def split_words(arena, offsets, count, words, flat, bounds):
    """Split phrases into interned words.

    Args:
        arena: ``uint8``, the phrases one after the other; words are separated by spaces.
        offsets: ``int64`` [count + 1]; phrase p is arena[offsets[p]:offsets[p + 1]].
        count: number of phrases.
        words: intern table of words, with capacity for all words.
        flat: ``int32``, filled with the word ids.
        bounds: ``int64`` [count + 1], filled except for bounds[0], which must be 0: the words of phrase p are
            flat[bounds[p]:bounds[p + 1]].

    Returns:
        The number of words.
    """
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
