"""File input and output: decompression by content, atomic writing, and the exception for invalid input.

Text is UTF-8 with one segment per line and lines ending in ``\\n``. When reading, gzip, bzip2, xz and lzma are
recognised by their first bytes, not by the file name; when writing, files are compressed according to the suffix
``.gz``, ``.bz2`` or ``.xz``. Control characters and ``|||`` are removed by ``rnnsmt.corpus``; a tokenised text with
them is rejected where aligners, tables and the search read it (``check_tokenised``).
"""

import bz2
import errno
import gzip
import hashlib
import io
import json
import lzma
import os
import platform
import re
import shutil
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO, TextIO, cast

MAX_LINE_BYTES = 1 << 24
"""Maximum line length in bytes. A longer line is not text; an error is raised before it fills the memory."""

KENLM_MAGIC = b"mmap lm http://kheafield.com/code"
"""First bytes of KenLM's binary files."""

_MAGIC = {".gz": b"\x1f\x8b", ".bz2": b"BZh", ".xz": b"\xfd7zXZ\0"}
"""First bytes of compressed files by suffix."""

_LZMA = b"\x5d\0\0"
"""First bytes of the format that preceded xz: its usual properties, and a dictionary of at least 64 KiB."""

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
"""Message for a file of a format that is not read, by the first bytes of the file."""

_OFFICE = {
    "xl/workbook.": "is a spreadsheet; save it as tab-separated text (TSV)",
    "word/document.": "is a document of an office program; save its text in a text file",
    "ppt/presentation.": "is a presentation; save its text in a text file",
    "META-INF/manifest.xml": "is an OpenDocument file; save a table as tab-separated text (TSV), and other text in a "
    "text file",
    "META-INF/container.xml": "is an electronic book; save its text in a text file",
}
"""Message for a zip archive that is a document of an office program, by the beginning of the name of a member."""

_JUNK = (".DS_Store", "Thumbs.db", "desktop.ini")
"""Names of files in which macOS and Windows store the appearance of a folder."""

MAX_RATIO = 100
"""Maximum ratio of decompressed to compressed size; text, tables and models have ratios of 3 to 20."""

ALWAYS_UNPACKED = 1 << 26
"""Decompressed size in bytes up to which any ratio is accepted."""

_FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
"""Error numbers for a full disk, a file size limit and a quota; these errors do not name the file."""


TEMPORARY = ".tmp-"
"""Prefix of the names of incomplete files."""

SCRATCH = "RNNSMT_SCRATCH"
"""Environment variable for the directory of scratch files."""


def is_full(error: OSError) -> bool:
    """Return whether a system error means that there is no space left for a file."""
    return error.errno in _FULL


class InputError(ValueError):
    """Invalid input. The message is one sentence that names the file, the line and a remedy; the exit status is 2.

    Functions that read files or check options raise it; docstrings of other functions than operations do not repeat
    this.
    """


class DamagedError(InputError):
    """A compressed file is damaged; the cause is the exception of the decompressor."""


_DECOMPRESSOR = (EOFError, gzip.BadGzipFile, lzma.LZMAError, zipfile.BadZipFile, zlib.error, OSError, ValueError)
"""Exceptions of the decompressors for damaged files; an ``OSError`` with ``errno`` is an error of the operating system.
"""

DAMAGED = (DamagedError, *_DECOMPRESSOR)
"""Exceptions raised when a damaged file is read."""


class _Unpacked(io.RawIOBase):
    """Decompressed content of a file of ``size`` bytes; reading fails if it is much larger than the file."""

    def __init__(self, stream: BinaryIO, path: Path, size: int, raw: BinaryIO | None = None) -> None:
        """Read from ``stream``; ``raw`` is the file that it decompresses, which is closed with it."""
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
    """Return whether a path that comes from a file is a regular file; False if its name is too long."""
    try:
        return path.is_file()
    except OSError:
        return False


def foreign_format(start: bytes) -> str | None:
    """Return what a file is that begins with these bytes, and a remedy, or None if it has no format of ``_FOREIGN``."""
    return next((what for magic, what in _FOREIGN.items() if start.startswith(magic)), None)


def _decompressor(start: bytes) -> Callable[..., Any] | None:
    """Return the function that opens compressed files with these first bytes."""
    if start.startswith(_MAGIC[".gz"]):
        return gzip.open
    if start.startswith(_MAGIC[".bz2"]) and start[3:4].isdigit():
        return bz2.open
    return lzma.open if start.startswith((_MAGIC[".xz"], _LZMA)) else None


def open_binary(path: str | Path) -> io.BufferedReader:
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


def open_text(path: str | Path) -> io.BufferedReader:
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


def _document(path: str | Path) -> str | None:
    """Return what a zip archive is if it is a document, see ``office_document``."""
    try:
        with zipfile.ZipFile(path) as archive:
            return office_document(archive.namelist())
    except (*DAMAGED, NotImplementedError):
        return None


def refuse_pipe(path: str | Path) -> None:
    """Reject a pipe, for text that is read more than once: its beginning is examined, or its hash is computed."""
    if Path(path).is_fifo():
        raise InputError(f"{path}: is a pipe, but this text is read more than once; write it to a file first")


@contextmanager
def open_zip(path: str | Path) -> Iterator[zipfile.ZipFile | None]:
    """Open a zip archive, or provide None if the file does not begin like a zip archive."""
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
    """Return what a zip archive with these members is, and a remedy, or None if it is not a document."""
    names = list(names)
    return next((what for start, what in _OFFICE.items() if any(name.startswith(start) for name in names)), None)


def is_junk(name: str) -> bool:
    """Return whether a member of an archive was added by macOS or Windows, and is no file of its author."""
    parts = PurePosixPath(name).parts
    return "__MACOSX" in parts or (bool(parts) and (parts[-1].startswith("._") or parts[-1] in _JUNK))


def open_zip_member(archive: zipfile.ZipFile, path: str | Path, name: str) -> io.BufferedReader:
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


def _zip_damage(path: str | Path, error: Exception) -> Exception:
    """Return the error for a zip archive that cannot be opened; EINVAL: its central directory has invalid offsets."""
    if isinstance(error, OSError) and error.errno == errno.EINVAL:
        error = zipfile.BadZipFile("its central directory points outside of the file")
    return damage(path, None, error)


def sha256(path: str | Path) -> str:
    """Return the SHA-256 of a file as stored, without decompression, in hexadecimal."""
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def read_byte_lines(path: str | Path) -> Iterator[bytes]:
    """Yield the lines of a file as bytes without their ``\\n``."""
    with open_text(path) as stream:
        yield from byte_lines(stream, path)


def byte_lines(raw: io.BufferedReader, path: str | Path) -> Iterator[bytes]:
    """Yield the lines of an open file as ``read_byte_lines``; ``path`` is its name in messages."""
    for number, line in enumerate(bounded_lines(raw, path, MAX_LINE_BYTES), 1):
        if line is None:
            raise InputError(
                f"{path}, line {number}: longer than {MAX_LINE_BYTES} bytes; "
                "is this a text file with one segment per line?"
            )
        yield line


def read_bounded_lines(path: str | Path, limit: int) -> Iterator[bytes | None]:
    """Yield the lines of a file as bytes without their ``\\n``, or ``None`` for a line of more than ``limit`` bytes.

    At most ``limit`` bytes of a line are held in memory.
    """
    with open_text(path) as stream:
        yield from bounded_lines(stream, path, limit)


def bounded_lines(raw: io.BufferedReader, path: str | Path, limit: int) -> Iterator[bytes | None]:
    """Yield the lines of an open file as ``read_bounded_lines``; ``path`` is its name in messages."""
    number = 0
    stream = io.BufferedReader(cast(io.RawIOBase, raw), 1 << 18)
    while True:
        try:
            line = stream.readline(limit + 1)
            too_long = len(line) > limit and not line.endswith(b"\n")
            rest = line if too_long else b"\n"
            while rest and not rest.endswith(b"\n"):
                rest = stream.readline(limit + 1)
        except DAMAGED as error:
            raise damage(path, number, error) from None
        if not line:
            return
        number += 1
        if too_long:
            yield None
        else:
            yield line[:-1] if line.endswith(b"\n") else line


def check_utf8(block: bytes, path: str | Path, lines: int) -> None:
    """Check that a block of whole lines is UTF-8.

    Args:
        path: the file, for the message.
        lines: number of lines before the block.
    """
    try:
        block.decode()
    except UnicodeDecodeError as error:
        number = lines + block.count(b"\n", 0, error.start) + 1
        start = error.start - (block.rfind(b"\n", 0, error.start) + 1)
        raise InputError(f"{path}, line {number}: not UTF-8 at byte {start}; convert the file to UTF-8") from None


_CONTROLS = bytes([*range(10), *range(11, 32), 127])
"""Control characters other than the line feed, as bytes."""

_UNFIT = re.compile(rb"[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\|\|\|")
"""Control characters and the separator of the fields of tables."""

_C1 = re.compile(b"\xc2[\x80-\x9f]")


def check_tokenised(block: bytes, path: str | Path, lines: int = 0) -> None:
    """Check that lines of a tokenised text are UTF-8 without control characters and ``|||``; see ``check_utf8``.

    A carriage return or a tab would become part of a word, and the separator would break the lines of the tables.
    """
    check_utf8(block, path, lines)
    # three fast tests: the search of all alternatives takes ten times as long
    if b"|||" not in block and len(block.translate(None, _CONTROLS)) == len(block) and not _C1.search(block):
        return
    found = _UNFIT.search(block)
    assert found
    line = lines + block.count(b"\n", 0, found.start()) + 1
    if found[0] == b"|||":
        raise InputError(f"{path}, line {line}: contains |||, the field separator of Moses; escape it")
    raise InputError(
        f"{path}, line {line}: control character U+{ord(found[0].decode()):04X}; "
        "clean the text with `rnnsmt corpus prepare --keep-all` first"
    )


def read_line_blocks(path: str | Path, size: int = 1 << 21) -> Iterator[bytes]:
    """Yield a file in blocks of whole lines of about ``size`` bytes, including their ``\\n``.

    For large files, for which a Python loop over lines is too slow. A missing ``\\n`` at the end of the file is added.
    """
    lines = 0
    rest = b""
    with open_text(path) as raw:
        while True:
            try:
                data = raw.read(size)
            except DAMAGED as error:
                raise damage(path, lines, error) from None
            if not data:
                break
            rest += data
            end = rest.rfind(b"\n") + 1
            if end:
                block, rest = rest[:end], rest[end:]
                lines += block.count(b"\n")
                yield block
            if len(rest) > MAX_LINE_BYTES:
                raise InputError(
                    f"{path}, line {lines + 1}: longer than {MAX_LINE_BYTES} bytes; "
                    "is this a text file with one segment per line?"
                )
    if rest:
        yield rest + b"\n"


def read_whole(path: str | Path, limit: int) -> bytes | None:
    """Return the content of a file, or None if it has more than ``limit`` bytes."""
    with open_text(path) as stream:
        try:
            content = stream.read(limit + 1)
        except DAMAGED as error:
            raise damage(path, None, error) from None
    return content if len(content) <= limit else None


def damage(path: str | Path, lines: int | None, error: Exception) -> Exception:
    """Return the error for a file that is damaged after ``lines`` lines; any other error remains unchanged."""
    if isinstance(error, OSError) and error.errno is not None:
        return error
    if isinstance(error, DamagedError):
        error = cast(Exception, error.__cause__)
    elif isinstance(error, InputError):
        return error
    after = "" if lines is None else f" after line {lines}"
    return InputError(f"{path}: damaged{after} ({error}); create or download it again")


STANDARD_STREAM = "-"
"""Path that denotes standard input or output."""


def read_lines_or_stdin(path: str | Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 file as ``read_lines``, or of standard input if the path is ``-``."""
    if str(path) != STANDARD_STREAM:
        yield from read_lines(path)
        return
    for number, line in enumerate(sys.stdin.buffer, 1):
        yield decoded(line.removesuffix(b"\n"), "standard input", number)


def write_lines_or_stdout(path: str | Path, lines: Iterable[str]) -> None:
    """Write lines to a file as ``write_lines``, or to standard output if the path is ``-``."""
    if str(path) != STANDARD_STREAM:
        write_lines(path, lines)
        return
    for line in lines:
        sys.stdout.buffer.write(line.encode("utf-8") + b"\n")
    sys.stdout.buffer.flush()


def read_lines(path: str | Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 file without their ``\\n``."""
    for number, line in enumerate(read_byte_lines(path), 1):
        yield decoded(line, path, number)


def decoded(line: bytes, path: str | Path, number: int) -> str:
    """Decode a line; path and line number (from 1) are used in the error message."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}, line {number}: not UTF-8 at byte {error.start}; convert the file to UTF-8") from None


def words_of(sentence: str) -> list[str]:
    """Return the words of a tokenised sentence, separated by ASCII spaces as in phrase tables."""
    return [word for word in sentence.split(" ") if word]


def read_parallel(*paths: str | Path) -> Iterator[tuple[str, ...]]:
    """Yield tuples of corresponding lines of several files."""
    streams = [read_lines(path) for path in paths]
    number = 0
    while True:
        row = [next(stream, None) for stream in streams]
        if all(line is None for line in row):
            return
        for path, line in zip(paths, row, strict=True):
            if line is None:
                longer = next(p for p, other in zip(paths, row, strict=True) if other is not None)
                raise InputError(
                    f"{path} ends after line {number}, but {longer} has more lines; "
                    "parallel files must have the same number of lines"
                )
        number += 1
        yield tuple(cast(list[str], row))


def write_plain(paths: Iterable[str | Path], output: Path) -> int:
    """Concatenate text files, decompressed, for programs that cannot decompress; return the number of lines."""
    lines = 0
    with output.open("wb") as out:
        for path in paths:
            for line in read_byte_lines(path):
                out.write(line + b"\n")
                lines += 1
    return lines


def count_lines(path: str | Path) -> int:
    """Return the number of lines of a file."""
    return sum(1 for _ in read_byte_lines(path))


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Provide a temporary path next to ``path``; on success fsync and rename it, on an exception remove it.

    The temporary name keeps the suffixes of ``path``, so compression by suffix works. A missing parent directory
    is created. If ``path`` is a symbolic link, its target is replaced. Temporary files of ``path`` left on this machine
    by killed processes are removed.
    """
    path = check_output(path)
    if path.is_symlink():
        path = path.resolve()
    temporary = _temporary(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(path)
        yield temporary
        descriptor = os.open(temporary, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.replace(path)
    except OSError as error:
        places = {str(candidate) for candidate in (temporary, path, *path.parents)}
        if str(error.filename) in places or is_full(error):
            raise InputError(
                f"{path}: cannot be written ({error.strerror}); the previous file was not changed; free disk space "
                "or choose another output file, then run the same command again"
            ) from None
        raise
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


@contextmanager
def scratch_directory(output: str | Path) -> Iterator[Path]:
    """Provide an empty directory for temporary files of a stage; it is removed at the end.

    It is created next to ``output``, or in the directory given by the environment variable ``RNNSMT_SCRATCH``, e.g. on
    a local disk; variables in its value are expanded on the machine of the stage (``RNNSMT_SCRATCH='$TMPDIR'``). Every
    process has a separate directory, so two processes with the same output do not interfere. Directories left on this
    machine by killed processes are removed.
    """
    path = _scratch_place(Path(output))
    check_output_directory(path.parent)
    directory = _temporary(path)
    directory.parent.mkdir(parents=True, exist_ok=True)
    _remove_leftovers(path)
    shutil.rmtree(directory, ignore_errors=True)  # left by an earlier process with the same process id
    directory.mkdir()
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _scratch_place(output: Path) -> Path:
    """Return the path of the scratch directory of an output, without the part that distinguishes processes."""
    if not (configured := os.environ.get(SCRATCH)):
        return output.with_name(f"{output.name}.scratch")
    directory = Path(os.path.expandvars(configured))
    if not directory.is_dir():
        raise InputError(f"{SCRATCH}={configured}: {directory} is not a directory; create it or unset the variable")
    outputs_name = hashlib.sha256(str(output.absolute()).encode()).hexdigest()[:16]
    return directory / f"{outputs_name}-{output.name}.scratch"


def check_output(path: str | Path) -> Path:
    """Return the path if it can be an output file: devices, pipes and directories are not replaced."""
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path}: is a directory; specify the path of a file")
    if path.exists() and not path.is_file():
        raise InputError(f"{path}: is not a regular file and cannot be replaced; choose another output")
    check_output_directory(path.parent)
    return path


def check_name(path: str | Path) -> None:
    """Check that a path is UTF-8, as duckdb requires."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise InputError(f"{path}: the name is not UTF-8; rename the file or directory") from None


def check_output_directory(path: str | Path) -> None:
    """Check that files can be written into a directory, which need not exist, without creating it."""
    parent = next(parent for parent in [Path(path), *Path(path).parents] if parent.exists())
    if not parent.is_dir():
        raise InputError(f"{parent} is a file, not a directory; choose another output")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise InputError(f"the directory {parent.resolve()} is not writable; choose another output")


def _temporary(path: Path) -> Path:
    """Return the temporary name under which this process writes ``path``."""
    return path.with_name(f"{_temporary_prefix()}{os.getpid()}-{path.name}")


def _temporary_prefix() -> str:
    """Return the prefix of temporary names on this machine."""
    return f"{TEMPORARY}{platform.node()}-"


def _remove_leftovers(path: Path) -> None:
    """Remove temporary files and directories of ``path`` whose process no longer exists."""
    prefix, suffix = _temporary_prefix(), f"-{path.name}"
    for other in path.parent.iterdir():
        process = other.name[len(prefix) : -len(suffix)]
        ours = other.name.startswith(prefix) and other.name.endswith(suffix)
        if ours and process.isdecimal() and not _alive(int(process)):
            if other.is_dir():
                shutil.rmtree(other, ignore_errors=True)
            else:
                other.unlink(missing_ok=True)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it exists, and belongs to another user
        pass
    return True


@contextmanager
def atomic_binary(path: str | Path) -> Iterator[BinaryIO]:
    """Write a binary file atomically, compressed according to the suffix of ``path``.

    Compressed files contain neither name nor time, so equal contents give equal bytes.
    """
    with atomic_path(path) as temporary:
        suffix = Path(path).suffix
        with temporary.open("wb") as raw:
            stream: IO[bytes]
            if suffix == ".gz":
                stream = cast(IO[bytes], gzip.GzipFile("", "wb", 6, raw, 0))
            elif suffix == ".bz2":
                stream = cast(IO[bytes], bz2.BZ2File(raw, "wb"))
            elif suffix == ".xz":
                stream = cast(IO[bytes], lzma.LZMAFile(raw, "wb"))  # noqa: SIM115
            else:
                stream = raw
            buffered = io.BufferedWriter(cast(io.RawIOBase, stream), 1 << 18)
            yield cast(BinaryIO, buffered)
            buffered.flush()
            if stream is not raw:
                stream.close()
            raw.flush()


@contextmanager
def atomic_text(path: str | Path) -> Iterator[TextIO]:
    """Write a UTF-8 text file atomically, compressed according to the suffix of ``path``."""
    with atomic_binary(path) as binary:
        text = io.TextIOWrapper(binary, encoding="utf-8", newline="\n", write_through=False)
        try:
            yield text
            text.flush()
        except UnicodeEncodeError as error:  # text that was read is UTF-8, names of files need not be
            name = next(word for word in error.object.split() if not word.isprintable())
            raise InputError(f"{path}: cannot name the file {name}, which is not UTF-8; rename it first") from None
        text.detach()


def write_lines(path: str | Path, lines: Iterable[str]) -> int:
    """Write lines (without ``\\n``) to a file atomically; return their number."""
    number = 0
    with atomic_text(path) as out:
        for line in lines:
            out.write(line)
            out.write("\n")
            number += 1
    return number


def write_json(path: str | Path, value: object) -> None:
    """Write a value as indented JSON atomically; bytes of file names that are not UTF-8 become ``\\udc..``."""
    with atomic_binary(path) as out:
        out.write(f"{json.dumps(value, indent=2, ensure_ascii=False)}\n".encode(errors="backslashreplace"))


def write_report(path: str | Path, figures: Mapping[str, object]) -> None:
    """Write the figures of a stage as JSON, without CPU seconds, so that equal runs write equal files.

    Times are in the last line of the log.
    """
    write_json(path, {name: value for name, value in figures.items() if "seconds" not in name})


def read_json(path: str | Path) -> Any:
    """Read a JSON file."""
    text = "\n".join(read_lines(path))
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        where, what = f"{path}, line {error.lineno}", error.msg
    except RecursionError:
        where, what = f"{path}", "nested too deeply"
    except ValueError:  # int() has a limit
        where, what = f"{path}", "a number has too many digits"
    raise InputError(f"{where}: not valid JSON ({what}); remove the file and run the command again")
