"""Opening of files for reading: decompression by content, zip archives, damaged files."""

import bz2
import errno
import gzip
import hashlib
import io
import lzma
import os
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO, cast

from rnnsmt.base.errors import DamagedError, InputError
from rnnsmt.base.paths import StrPath

KENLM_MAGIC = b"mmap lm http://kheafield.com/code"
"""First bytes of KenLM's binary files."""

_MAGIC = {".gz": b"\x1f\x8b", ".bz2": b"BZh", ".xz": b"\xfd7zXZ\0"}
"""First bytes of compressed files by suffix."""

_LZMA = b"\x5d\0\0"
"""First bytes of the lzma format, the predecessor of xz, with default properties and a dictionary of 64 KiB or more."""

_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
"""First bytes of zip archives."""

_FOREIGN = {
    b"\x28\xb5\x2f\xfd": "is zstd-compressed; decompress it first",
    b"P*M\x18": "is zstd-compressed; decompress it first",  # a frame of pzstd
    b"\x04\x22\x4d\x18": "is lz4-compressed; decompress it first",
    b"\x1f\x9d": "is compressed by `compress`; decompress it first",
    b"LZIP\x01": "is lzip-compressed; decompress it first",
    b"7z\xbc\xaf\x27\x1c": "is a 7z archive; extract the file first",
    b"Rar!\x1a\x07": "is a RAR archive; extract the file first",
    b"%PDF-": "is a PDF document; save its text in a text file",
    b"{\\rtf": "is a document in Rich Text Format; save its text in a text file",
    b"\xd0\xcf\x11\xe0": "is a document of an office program; save its text in a text file",
}
"""Messages for files of unsupported formats, by the first bytes of the file."""

_OFFICE = {
    "xl/workbook.": "is a spreadsheet; save it as tab-separated text (TSV)",
    "word/document.": "is a document of an office program; save its text in a text file",
    "ppt/presentation.": "is a presentation; save its text in a text file",
    "META-INF/manifest.xml": "is an OpenDocument file; save a table as tab-separated text (TSV), and other text in a "
    "text file",
    "META-INF/container.xml": "is an electronic book; save its text in a text file",
}
"""Messages for zip archives that are documents of office programs, by the beginning of the name of a member."""

_JUNK = (".DS_Store", "Thumbs.db", "desktop.ini")
"""Names of files in which macOS and Windows store the appearance of a folder."""

MAX_RATIO = 100
"""Maximum ratio of decompressed to compressed size; text, tables and models have ratios of 3 to 20."""

ALWAYS_UNPACKED = 1 << 26
"""Decompressed size in bytes up to which any ratio is accepted."""


def least_size(content: int) -> int:
    """Return the minimum compressed size of a file with ``content`` decompressed bytes that ``open_binary`` accepts."""
    return -(-content // MAX_RATIO) if content > ALWAYS_UNPACKED else 0


_DECOMPRESSOR = (EOFError, gzip.BadGzipFile, lzma.LZMAError, zipfile.BadZipFile, zlib.error, OSError, ValueError)
"""Exceptions of decompressors for damaged files; an ``OSError`` with ``errno`` is an error of the operating system."""

DAMAGED = (DamagedError, *_DECOMPRESSOR)
"""Exceptions raised when a damaged file is read."""


class _Unpacked(io.RawIOBase):
    """Decompressed content of a file of ``size`` bytes; reading fails if it is much larger than the file."""

    def __init__(self, stream: BinaryIO, path: Path, size: int, raw: BinaryIO | None = None) -> None:
        """Create a reader of ``stream``; ``raw`` is the compressed file, which is closed together with the reader."""
        super().__init__()
        self._stream, self._path, self._limit, self._read = stream, path, max(ALWAYS_UNPACKED, MAX_RATIO * size), 0
        self._raw = raw

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read bytes into a buffer; return their number."""
        try:
            count: int = self._stream.readinto(buffer)  # type: ignore[attr-defined]
        except _DECOMPRESSOR as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise DamagedError(f"{self._path}: damaged ({error}); create or download it again") from error
        self._read += count
        if self._read > self._limit:
            raise InputError(
                f"{self._path}: expands to more than {MAX_RATIO} times its size; if this is intended, decompress it "
                "first"
            )
        return count

    def close(self) -> None:
        """Close the file."""
        self._stream.close()
        if self._raw is not None:
            self._raw.close()
        super().close()


def is_file(path: Path) -> bool:
    """Return whether a path that was read from a file is the path of a regular file; False if it is too long."""
    try:
        return path.is_file()
    except OSError:
        return False


def foreign_format(start: bytes) -> str | None:
    """Return the message for a file that begins with these bytes, or None if its format is not in ``_FOREIGN``."""
    return next((what for magic, what in _FOREIGN.items() if start.startswith(magic)), None)


def _decompressor(start: bytes) -> Callable[..., Any] | None:
    """Return the function that opens compressed files with these first bytes, or None if they are not compressed."""
    if start.startswith(_MAGIC[".gz"]):
        return gzip.open
    if start.startswith(_MAGIC[".bz2"]) and start[3:4].isdigit():
        return bz2.open
    return lzma.open if start.startswith((_MAGIC[".xz"], _LZMA)) else None


def open_binary(path: StrPath) -> io.BufferedReader:
    """Open a file for reading bytes, decompressing it if its first bytes are those of gzip, bzip2, xz or lzma.

    Reading raises ``InputError`` if the content exceeds ``ALWAYS_UNPACKED`` bytes and ``MAX_RATIO`` times the size of
    the compressed file, so that a small file cannot fill memory or disk, and ``DamagedError`` if the file is damaged.
    """
    path = Path(path)
    try:
        return decompressed(path.open("rb"), path)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise InputError(f"{path}: is a directory, not a file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None


def decompressed(raw: "io.BufferedReader[Any]", path: Path) -> io.BufferedReader:
    """Return the content of an open file, decompressed as ``open_binary`` does; ``path`` is its name in messages."""
    start = raw.peek(6)[:6] if raw.seekable() else b""
    if open_compressed := _decompressor(start):
        size = os.fstat(raw.fileno()).st_size
        unpacked = _Unpacked(cast(BinaryIO, open_compressed(raw, "rb")), path, size, raw)
        return io.BufferedReader(unpacked, 1 << 18)
    if what := foreign_format(start):
        raw.close()
        raise InputError(f"{path}: {what}")
    if path.suffix in _MAGIC and start:
        raw.close()
        raise InputError(
            f"{path}: damaged or not compressed (it begins with {start!r}); create or download it again, or remove "
            f"the suffix {path.suffix}"
        )
    return raw


def open_text(path: StrPath) -> io.BufferedReader:
    """Open a text file for reading bytes; see ``open_binary``."""
    stream = open_binary(path)
    start = b""
    with suppress(DamagedError):  # reported when the file is read
        start = stream.peek(6)[:6]
    what = foreign_format(start)  # of a pipe, or of the content of a compressed file
    if start[:4] in _ZIP:
        what = _document(path) or (
            "is a zip archive; extract the text file, or, if it contains source and target text, use the key `file` "
            "in the configuration (`rnnsmt corpus prepare --bitext`)"
        )
    elif _decompressor(start):
        what = "its content is compressed; decompress it first"
    if what:
        stream.close()
        raise InputError(f"{path}: {what}")
    return stream


def _document(path: StrPath) -> str | None:
    """Return the message for a zip archive that is a document, or None; see ``office_document``."""
    try:
        with zipfile.ZipFile(path) as archive:
            return office_document(archive.namelist())
    except (*DAMAGED, NotImplementedError):
        return None


def refuse_pipe(path: StrPath) -> None:
    """Reject a pipe, for text that is read more than once, e.g. to examine its beginning or to compute its hash."""
    if Path(path).is_fifo():
        raise InputError(f"{path}: is a pipe, but this text is read more than once; write it to a file first")


@contextmanager
def open_zip(path: StrPath) -> Iterator[zipfile.ZipFile | None]:
    """Open a zip archive, or provide None if the first bytes are not those of a zip archive."""
    refuse_pipe(path)
    with open_binary(path) as stream:
        if not isinstance(stream.raw, io.FileIO) or stream.peek(4)[:4] not in _ZIP:
            yield None
            return
        try:
            archive = zipfile.ZipFile(cast(IO[bytes], stream))
        except (*DAMAGED, NotImplementedError) as error:
            raise _zip_damage(path, error) from None
        with archive:
            yield archive


def office_document(names: Iterable[str]) -> str | None:
    """Return the message for a zip archive with these members, or None if it is not a document."""
    names = list(names)
    return next((what for start, what in _OFFICE.items() if any(name.startswith(start) for name in names)), None)


def is_junk(name: str) -> bool:
    """Return whether a member of an archive is a metadata file that macOS or Windows added."""
    parts = PurePosixPath(name).parts
    return "__MACOSX" in parts or (bool(parts) and (parts[-1].startswith("._") or parts[-1] in _JUNK))


def open_zip_member(archive: zipfile.ZipFile, path: StrPath, name: str) -> io.BufferedReader:
    """Open a member of a zip archive for reading bytes; a member such as ``text.gz`` is not decompressed further."""
    member = archive.getinfo(name)
    if member.is_dir():
        raise InputError(f"{path}: {name} is a directory, not a file; choose another member")
    if member.flag_bits & 1:
        raise InputError(f"{path}: {name} is encrypted; extract it and use the text file")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2):
        raise InputError(f"{path}: {name} uses an unsupported compression method; extract it and use the text file")
    size = Path(path).stat().st_size
    try:
        stream = archive.open(member)
    except (*DAMAGED, NotImplementedError) as error:
        raise _zip_damage(path, error) from None
    return io.BufferedReader(_Unpacked(cast(BinaryIO, stream), Path(path), size), 1 << 18)


def _zip_damage(path: StrPath, error: Exception) -> Exception:
    """Return the error for a zip archive that cannot be opened; EINVAL means wrong offsets in its central directory."""
    if isinstance(error, OSError) and error.errno == errno.EINVAL:
        error = zipfile.BadZipFile("its central directory points outside of the file")
    return damage(path, None, error)


def sha256(path: StrPath) -> str:
    """Return the SHA-256 of a file as stored, without decompression, in hexadecimal."""
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def damage(path: StrPath, lines: int | None, error: Exception) -> Exception:
    """Return the error for a file that is damaged after ``lines`` lines; return errors of other kinds unchanged."""
    if isinstance(error, OSError) and error.errno is not None:
        return error
    if isinstance(error, DamagedError):
        error = cast(Exception, error.__cause__)
    elif isinstance(error, InputError):
        return error
    after = "" if lines is None else f" after line {lines}"
    return InputError(f"{path}: damaged{after} ({error}); create or download it again")
