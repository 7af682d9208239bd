"""Sorting and counting n-grams as packed integers, compiled.

An n-gram of order k is the pair (number of its last k - 1 words among the (k - 1)-grams, its first word), so that one
64-bit key holds it whatever k is, and sorting the keys sorts the n-grams by their words read from the last to the
first.
"""

import numpy as np

from rnnsmt.kernels.decorator import kernel

NONE = np.uint32(0xFFFFFFFF)
"""In place of an n-gram's number where no n-gram of that order ends: too near to the beginning of the sentence."""

DIGIT = 11


@kernel()
def collect(words, suffixes, low, high, shift, keys, contexts):
    """Gather the n-grams of one order whose suffix lies in ``low <= suffix < high``.

    Args:
        words: int32 [n + 1], word numbers; the n-gram at ``i`` begins at ``words[i]``.
        suffixes: uint32 [1 + n], number of the (order - 1)-gram that ends at each position, one position more in front.
        shift: bits of a word.
        keys: uint64 [n or more]; contexts: uint32 [n or more], number of the first order - 1 words.

    Returns:
        How many were written.
    """
    written = 0
    for i in range(len(suffixes) - 1):
        suffix = suffixes[i + 1]
        if suffix == NONE or suffix < low or suffix >= high or words[i + 1] == 1:
            continue
        keys[written] = (np.uint64(suffix - low) << np.uint64(shift)) | np.uint64(words[i])
        contexts[written] = suffixes[i]
        written += 1
    return written


@kernel()
def spread(words, suffixes, low, high, values, out):
    """Write n-gram numbers, in text order, back to the positions that ``collect`` took; return how many were used."""
    used = 0
    for i in range(len(suffixes) - 1):
        suffix = suffixes[i + 1]
        if suffix == NONE or suffix < low or suffix >= high or words[i + 1] == 1:
            continue
        out[i] = values[used]
        used += 1
    return used


@kernel()
def sort_keys(keys, bits):
    """Radix sort of uint64 keys of at most ``bits`` bits; returns (sorted keys, uint32 positions before), stable."""
    n = len(keys)
    source, target = keys.copy(), np.empty(n, np.uint64)
    origin, moved = np.empty(n, np.uint32), np.empty(n, np.uint32)
    for i in range(n):
        origin[i] = i
    passes = max((bits + DIGIT - 1) // DIGIT, 1)
    width = (bits + passes - 1) // passes
    size = 1 << width
    mask = np.uint64(size - 1)
    ends = np.empty(size, np.int64)
    for turn in range(passes):
        shift = np.uint64(turn * width)
        ends[:] = 0
        for i in range(n):
            ends[(source[i] >> shift) & mask] += 1
        total = 0
        for digit in range(size):
            count = ends[digit]
            ends[digit] = total
            total += count
        for i in range(n):
            digit = (source[i] >> shift) & mask
            at = ends[digit]
            ends[digit] = at + 1
            target[at] = source[i]
            moved[at] = origin[i]
        source, target = target, source
        origin, moved = moved, origin
    return source, origin


@kernel()
def distinct(keys, origin, contexts, low, shift, base, numbers):
    """Make the distinct n-grams of sorted keys.

    Args:
        keys, origin: as ``sort_keys`` returns them; contexts: uint32 [n] in the order before sorting.
        base: number of the first n-gram; numbers: uint32 [n] or empty, receives each occurrence's n-gram number.

    Returns:
        first word int32, suffix uint32, context uint32, count uint32, each [distinct]
    """
    n = len(keys)
    total = 0
    for i in range(n):
        if i == 0 or keys[i] != keys[i - 1]:
            total += 1
    first = np.empty(total, np.int32)
    suffix = np.empty(total, np.uint32)
    context = np.empty(total, np.uint32)
    count = np.zeros(total, np.uint32)
    mask = np.uint64((1 << shift) - 1)
    at = -1
    for i in range(n):
        if i == 0 or keys[i] != keys[i - 1]:
            at += 1
            first[at] = np.int32(keys[i] & mask)
            suffix[at] = np.uint32(keys[i] >> np.uint64(shift)) + np.uint32(low)
            context[at] = contexts[origin[i]]
        count[at] += np.uint32(1)
        if len(numbers):
            numbers[origin[i]] = base + at
    return first, suffix, context, count
