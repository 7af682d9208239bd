"""Writing the lines that the kernels put into byte buffers, compressed where the suffix says ``.gz``."""

import struct
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from rnnsmt.io import atomic_binary, atomic_path
from rnnsmt.phrases.packing import Packing

BUFFER_BYTES = 1 << 22
"""Bytes of lines that are compressed at once."""

LEVEL = 4
"""zlib level: the tables are read far more often than sent, and level 6 takes twice the time for 7 % less."""

_WINDOW = 1 << 15


def _deflate(data: bytes, before: bytes) -> bytes:
    """One piece of a deflate stream that ends on a byte border; ``before`` is the text that it may refer to."""
    packer = zlib.compressobj(LEVEL, zlib.DEFLATED, -15, 9, zlib.Z_DEFAULT_STRATEGY, before)
    return packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH)


class GzipPieces:
    """A gzip stream of one member whose pieces are compressed in threads: the bytes do not depend on their number."""

    def __init__(self, raw: BinaryIO, threads: int) -> None:
        self.raw = raw
        self.crc, self.size, self.before = 0, 0, b""
        self.threads = threads
        self.pool = ThreadPoolExecutor(max(1, threads))
        self.waiting: deque[Future[bytes]] = deque()
        raw.write(b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff")

    def write(self, data: bytes) -> None:
        """Add one piece; waits where twice as many pieces as threads are under way."""
        self.waiting.append(self.pool.submit(_deflate, data, self.before))
        self.crc = zlib.crc32(data, self.crc)
        self.size += len(data)
        self.before = data[-_WINDOW:]
        while len(self.waiting) > 2 * self.threads:
            self.raw.write(self.waiting.popleft().result())

    def close(self, whole: bool) -> None:
        """End the threads and, where ``whole``, the stream."""
        if whole:
            while self.waiting:
                self.raw.write(self.waiting.popleft().result())
            self.raw.write(b"\x03\x00" + struct.pack("<LL", self.crc, self.size & 0xFFFFFFFF))
        self.pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def open_table(path: str, threads: int) -> Iterator[BinaryIO | GzipPieces]:
    """Open a table for writing in pieces, whole or not at all; ``.gz`` is compressed in ``threads`` threads."""
    if not path.endswith(".gz"):
        with atomic_binary(path) as out:
            yield out
        return
    with atomic_path(path) as temporary, temporary.open("wb") as raw:
        pieces = GzipPieces(raw, threads)
        whole = False
        try:
            yield pieces
            whole = True
        finally:
            pieces.close(whole)
            raw.flush()


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


def write_pieces(
    out: BinaryIO | GzipPieces, kernel: Callable[..., tuple[int, int]], lines: int, arguments: tuple[Any, ...]
) -> None:
    """Let ``kernel(start, *arguments, buffer)`` write ``lines`` lines buffer by buffer."""
    buffer = np.empty(BUFFER_BYTES, np.uint8)
    start = 0
    while start < lines:
        reached, filled = kernel(start, *arguments, buffer)
        if reached == start:
            buffer = np.empty(2 * len(buffer), np.uint8)  # one line with endless words
            continue
        out.write(buffer[:filled].tobytes())
        start = reached
