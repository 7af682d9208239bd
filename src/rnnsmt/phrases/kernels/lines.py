"""Compiled writing of the words of table lines into byte buffers."""

from typing import Any

import numpy as np

from rnnsmt.kernels.decorator import kernel


@kernel()
def put_separator(buffer: Any, at: int) -> int:
    """Write `` ||| ``; return the place after it."""
    buffer[at] = 32
    buffer[at + 1] = 124
    buffer[at + 2] = 124
    buffer[at + 3] = 124
    buffer[at + 4] = 32
    return at + 5


@kernel()
def unpack(keys: Any, row: int, width: int, per_key: int, stop: int, codes: Any) -> int:
    """Put the word codes of phrase ``row`` of ``keys`` (int64 [K, N]) into ``codes``; return how many."""
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
    """The bytes of a phrase with a blank after each word."""
    size = length
    for n in range(length):
        size += offsets[codes[n]] - offsets[codes[n] - 1]
    return size


@kernel()
def put_phrase(buffer: Any, at: int, codes: Any, length: int, text: Any, offsets: Any) -> int:
    """Write the words of a phrase, one blank between them; return the place after them.

    ``text`` uint8 holds the words by code from 1, ``offsets`` int64 [V + 1] where each begins.
    """
    for n in range(length):
        if n:
            buffer[at] = 32
            at += 1
        for place in range(offsets[codes[n] - 1], offsets[codes[n]]):
            buffer[at] = text[place]
            at += 1
    return at
