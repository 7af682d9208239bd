"""Kernels that unpack phrases and write them into byte buffers."""

from typing import Any

import numpy as np

from rnnsmt.base.kernels.decorator import kernel


@kernel()
def put_separator(buffer: Any, at: int) -> int:
    """Write `` ||| ``; return the index after it."""
    buffer[at] = 32
    buffer[at + 1] = 124
    buffer[at + 2] = 124
    buffer[at + 3] = 124
    buffer[at + 4] = 32
    return at + 5


@kernel()
def unpack(keys: Any, row: int, width: int, per_key: int, stop: int, codes: Any) -> int:
    """Unpack phrase ``row`` of ``keys`` into word codes; return the number of words.

    Args:
        keys: int64 [K, N], as filled by ``pack_phrases``.
        row: the phrase.
        width, per_key, stop: as in ``pack_phrases``.
        codes: int64, filled.
    """
    mask = (np.int64(1) << width) - 1
    length = 0
    for key in range(keys.shape[0]):
        packed = keys[key, row]
        for slot in range(per_key - 1, -1, -1):
            code = (packed >> (slot * width)) & mask
            if code in (stop, 0):
                return length
            codes[length] = code
            length += 1
    return length


@kernel()
def phrase_bytes(codes: Any, length: int, offsets: Any) -> int:
    """Return the number of bytes of a phrase with a space after each word."""
    size = length
    for n in range(length):
        size += offsets[codes[n]] - offsets[codes[n] - 1]
    return size


@kernel()
def put_phrase(buffer: Any, at: int, codes: Any, length: int, text: Any, offsets: Any) -> int:
    """Write the words of a phrase, separated by spaces; return the index after them.

    Args:
        buffer: uint8, output.
        at: index where the phrase begins.
        codes: word codes, from 1.
        length: number of words.
        text: uint8, the words of the vocabulary in the order of their codes.
        offsets: int64 [V + 1], where each word begins; word c is ``text[offsets[c - 1]:offsets[c]]``.
    """
    for n in range(length):
        if n:
            buffer[at] = 32
            at += 1
        for place in range(offsets[codes[n] - 1], offsets[codes[n]]):
            buffer[at] = text[place]
            at += 1
    return at
