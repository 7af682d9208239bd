"""Kernels that sort and count n-grams as packed integers.

An n-gram of order k is the pair (number of its last k - 1 words among the (k - 1)-grams, its first word). Therefore, a
64-bit key suffices for any k, and sorting the keys sorts the n-grams in suffix order, by their words from the last to
the first.
"""

import numpy as np

from rnnsmt.base.kernels.decorator import kernel

NONE = np.uint32(0xFFFFFFFF)
"""Placeholder at positions where no n-gram of an order ends, because they are too close to the beginning of the
sentence."""

DIGIT = 11
"""Maximum number of bits of a radix-sort digit: 2^11 int64 bucket offsets (16 KiB) fit in the L1 cache."""


@kernel()
def collect(words, suffixes, low, high, shift, keys, contexts):
    """Collect the n-grams of one order whose suffix is in ``low <= suffix < high``.

    Args:
        words: int32 [n + 1], word numbers; the n-gram i begins at ``words[i]``.
        suffixes: uint32 [n + 1]: ``suffixes[i + 1]`` is the number of the (order - 1)-gram that ends at the last word
            of n-gram i, ``suffixes[i]`` that of the one that ends a word before, or ``NONE``.
        low, high: range of suffixes.
        shift: number of bits of a word.
        keys: uint64 [n or more], filled with (suffix - low) << shift | first word.
        contexts: uint32 [n or more], filled with the number of the first order - 1 words.

    Returns:
        The number of n-grams.
    """
    written = 0
    for i in range(len(suffixes) - 1):
        suffix = suffixes[i + 1]
        # words[i + 1] == 1: the second word is <s>, so that the n-gram spans two sentences
        if suffix == NONE or suffix < low or suffix >= high or words[i + 1] == 1:
            continue
        keys[written] = (np.uint64(suffix - low) << np.uint64(shift)) | np.uint64(words[i])
        contexts[written] = suffixes[i]
        written += 1
    return written


@kernel()
def spread(words, suffixes, low, high, values, out):
    """Write n-gram numbers, in text order, to the positions that ``collect`` selected; return how many were used.

    Args:
        words, suffixes, low, high: as in ``collect``.
        values: uint32, n-gram numbers of the selected positions.
        out: uint32 [n], updated at the selected positions.
    """
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
    """Sort uint64 keys of at most ``bits`` bits (LSD radix sort, stable).

    Returns:
        The sorted keys uint64 [n], and their positions before sorting, uint32 [n].
    """
    n = len(keys)
    source, target = keys.copy(), np.empty(n, np.uint64)
    origin, moved = np.empty(n, np.uint32), np.empty(n, np.uint32)
    for i in range(n):
        origin[i] = i
    # the smallest number of passes, with digits of equal width
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
        # bucket sizes to bucket offsets
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
    """Group the distinct n-grams of sorted keys.

    Args:
        keys, origin: as returned by ``sort_keys``.
        contexts: uint32 [n], in the order before sorting.
        low, shift: as in ``collect``.
        base: number of the first n-gram.
        numbers: uint32 [n], filled with the n-gram number of each occurrence, in the order before sorting; or empty.

    Returns:
        First word int32, suffix uint32, context uint32 and count uint32, each [distinct].
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
