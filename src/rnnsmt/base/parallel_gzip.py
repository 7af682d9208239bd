"""Parallel writing of gzip files: several threads compress blocks of a single gzip stream.

The result is one ordinary member (RFC 1952), which every reader accepts. Its bytes depend on the content only, not on
the number of threads or on the sizes of the writes.
"""

import struct
import zlib
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol

from rnnsmt.base.io import atomic_binary, atomic_path

BLOCK_BYTES = 1 << 20
"""Bytes of content per block; blocks are compressed independently."""
LEVEL = 4
"""Compression level of zlib: about twice as fast as 6 on ARPA files and phrase tables, and 5 % larger."""

_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"  # deflate, no name, no time, unknown operating system


class Writer(Protocol):
    """Interface of the object returned by ``atomic_blocks``."""

    def write(self, data: bytes | memoryview, /) -> object:
        """Write bytes."""


class _GzipWriter:
    """Writer that cuts its input into blocks and compresses them in a thread pool, in order."""

    def __init__(self, out: BinaryIO, threads: int, level: int) -> None:
        self._out, self._threads, self._level = out, threads, level
        self._pool = ThreadPoolExecutor(threads)
        self._waiting: deque[Future[bytes]] = deque()
        self._rest = bytearray()
        self._crc = self._size = 0
        out.write(_HEADER)

    def write(self, data: bytes | memoryview, /) -> None:
        """Add data; compress full blocks."""
        self._rest += data
        while len(self._rest) >= BLOCK_BYTES:
            block = bytes(self._rest[:BLOCK_BYTES])
            del self._rest[:BLOCK_BYTES]
            self._submit(block)

    def _submit(self, block: bytes) -> None:
        """Submit a block for compression, and write finished blocks if too many are waiting."""
        self._crc = zlib.crc32(block, self._crc)
        self._size += len(block)
        self._waiting.append(self._pool.submit(_deflate, block, self._level))
        while len(self._waiting) > 2 * self._threads:
            self._out.write(self._waiting.popleft().result())

    def finish(self) -> None:
        """Write the remaining data and the end of the stream."""
        if self._rest:
            self._submit(bytes(self._rest))
        while self._waiting:
            self._out.write(self._waiting.popleft().result())
        # an empty final deflate block, then CRC-32 and size modulo 2^32 of the content
        self._out.write(zlib.compressobj(self._level, zlib.DEFLATED, -15).flush())
        self._out.write(struct.pack("<II", self._crc, self._size & 0xFFFFFFFF))

    def close(self) -> None:
        """Stop the threads."""
        self._pool.shutdown(cancel_futures=True)


def _deflate(block: bytes, level: int) -> bytes:
    """Compress one block to raw deflate data that ends at a byte boundary without a final block.

    Such pieces can be concatenated to a single stream.
    """
    stream = zlib.compressobj(level, zlib.DEFLATED, -15)
    return stream.compress(block) + stream.flush(zlib.Z_SYNC_FLUSH)


@contextmanager
def atomic_blocks(path: str | Path, threads: int = 1, level: int = LEVEL) -> Iterator[Writer]:
    """Write a binary file atomically; ``.gz`` is compressed in threads, other suffixes as by ``atomic_binary``."""
    if Path(path).suffix != ".gz":
        with atomic_binary(path) as plain:
            yield plain
        return
    with atomic_path(path) as temporary, temporary.open("wb") as out:
        writer = _GzipWriter(out, threads, level)
        try:
            yield writer
            writer.finish()
        finally:
            writer.close()
