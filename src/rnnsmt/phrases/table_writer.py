"""From extract files to the lines of tables: what the kernels need, and their buffers written piece by piece."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnnsmt.parallel_gzip import Writer
from rnnsmt.phrases.packing import Packing

BUFFER_BYTES = 1 << 20
"""Bytes of lines that are handed on at once."""


def packing_array(packings: tuple[Packing, Packing]) -> NDArray[np.int64]:
    """(width, per_key, stop) of both sides for the kernels, int64 [2, 3]."""
    return np.array([(packing.width, packing.per_key, packing.stop) for packing in packings], np.int64)


def word_texts(packings: tuple[Packing, Packing]) -> Any:
    """(text uint8, offsets int64 [V + 1]) of both sides' words by code, for the kernels."""
    texts = []
    for packing in packings:
        offsets = np.zeros(len(packing.words) + 1, np.int64)
        np.cumsum([len(word) for word in packing.words], out=offsets[1:])
        texts.append((np.frombuffer(b"".join(packing.words), np.uint8), offsets))
    return tuple(texts)


def write_pieces(out: Writer, kernel: Callable[..., tuple[int, int]], lines: int, arguments: tuple[Any, ...]) -> None:
    """Let ``kernel(start, *arguments, buffer)`` write ``lines`` lines buffer by buffer."""
    buffer = np.empty(BUFFER_BYTES, np.uint8)
    start = 0
    while start < lines:
        reached, filled = kernel(start, *arguments, buffer)
        if reached == start:
            buffer = np.empty(2 * len(buffer), np.uint8)  # one line with endless words
            continue
        out.write(buffer[:filled].data)
        start = reached
