"""Files: reading by content, writing whole or not at all, and the one exception for bad input.

Text is UTF-8, one segment a line, lines end in ``\\n``. Reading recognises gzip, bzip2 and xz by their first bytes,
whatever the file is called; writing compresses by the suffix ``.gz``, ``.bz2`` or ``.xz``. Control characters, ``|||``
and empty lines are dealt with in ``rnnsmt.corpus`` only.
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
import shutil
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO, TextIO, cast

MAX_LINE_BYTES = 1 << 24
"""A longer line is not text: reading stops with a sentence instead of filling the memory."""

_MAGIC = {".gz": b"\x1f\x8b", ".bz2": b"BZh", ".xz": b"\xfd7zXZ\0"}
"""The first bytes of a compressed file, by the suffix that it should have."""

_ZIP = (b"PK\x03\x04", b"PK\x05\x06")

_DAMAGED = (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error)

_FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
"""What a full disk, a limit of size and a quota say, without the name of the file."""


TEMPORARY = ".tmp-"
"""The beginning of the names of files that are not whole yet."""

SCRATCH = "RNNSMT_SCRATCH"
"""The environment variable that names the folder for scratch files."""


def is_full(error: OSError) -> bool:
    """Whether an error of the system says that there is no room for a file."""
    return error.errno in _FULL


class InputError(Exception):
    """Bad input: one sentence that names the file, the line and what to do. Ends a stage with exit code 2."""


def open_binary(path: str | Path) -> BinaryIO:
    """Open a file for reading bytes, decompressed where its first bytes are those of gzip, bzip2 or xz.

    Raises:
        InputError: the file is missing, a folder, or not compressed although its suffix says so.
    """
    path = Path(path)
    try:
        raw = path.open("rb")
        start = raw.peek(6)[:6] if raw.seekable() else b""
        for suffix, open_compressed in ((".gz", gzip.open), (".bz2", bz2.open), (".xz", lzma.open)):
            if start.startswith(_MAGIC[suffix]) and (suffix != ".bz2" or start[3:4].isdigit()):
                raw.close()
                return cast(BinaryIO, open_compressed(path, "rb"))
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise InputError(f"{path}: is a folder, a file is needed") from None
    except PermissionError:
        raise InputError(f"{path}: may not be read (permissions)") from None
    if path.suffix in _MAGIC and start:
        raw.close()
        raise InputError(
            f"{path}: damaged, or not compressed at all (it begins with {start!r}); make or fetch it again, or take "
            f"{path.suffix} out of its name"
        )
    return raw


def open_text(path: str | Path) -> BinaryIO:
    """``open_binary`` of a file that has lines of text in it.

    Raises:
        InputError: as ``open_binary``, or it is a zip archive.
    """
    stream = open_binary(path)
    if isinstance(stream, io.BufferedReader) and stream.peek(4)[:4] in _ZIP:
        stream.close()
        raise InputError(f"{path}: is a zip archive; unpack it, and give the text file that is in it")
    return stream


def sha256(path: str | Path) -> str:
    """The SHA-256 of a file as it lies on the disk, in hexadecimal digits."""
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def read_byte_lines(path: str | Path) -> Iterator[bytes]:
    """Yield the lines of a file as bytes, without their ``\\n``.

    Raises:
        InputError: the file is missing, truncated, damaged, or a line is longer than ``MAX_LINE_BYTES``.
    """
    for number, line in enumerate(read_bounded_lines(path, MAX_LINE_BYTES), 1):
        if line is None:
            raise InputError(
                f"{path}, line {number}: longer than {MAX_LINE_BYTES} bytes; "
                "is this a text file with one segment a line?"
            )
        yield line


def read_bounded_lines(path: str | Path, limit: int) -> Iterator[bytes | None]:
    """Yield the lines of a file as bytes, without their ``\\n``; ``None`` for a line of more than ``limit`` bytes.

    However long a line is, no more than ``limit`` bytes of it are held.

    Raises:
        InputError: the file is missing, truncated or damaged.
    """
    number = 0
    with open_text(path) as raw:
        stream = io.BufferedReader(cast(io.RawIOBase, raw), 1 << 18)
        while True:
            try:
                line = stream.readline(limit + 1)
                too_long = len(line) > limit and not line.endswith(b"\n")
                part = line if too_long else b"\n"
                while part and not part.endswith(b"\n"):
                    part = stream.readline(limit + 1)
            except _DAMAGED as error:
                raise _damaged(path, number, error) from None
            except OSError as error:
                if error.errno is not None:
                    raise
                raise _damaged(path, number, error) from None
            if not line:
                return
            number += 1
            if too_long:
                yield None
            else:
                yield line[:-1] if line.endswith(b"\n") else line


def check_utf8(block: bytes, path: str | Path, lines: int) -> None:
    """See that a block of whole lines is UTF-8. lines: how many there were before it.

    Raises:
        InputError: it is not; names the line.
    """
    try:
        block.decode()
    except UnicodeDecodeError as error:
        number = lines + block.count(b"\n", 0, error.start) + 1
        start = error.start - (block.rfind(b"\n", 0, error.start) + 1)
        raise InputError(f"{path}, line {number}: not UTF-8 at byte {start}; convert it first") from None


def read_line_blocks(path: str | Path, size: int = 1 << 21) -> Iterator[bytes]:
    """Yield a file in blocks of about ``size`` bytes that hold whole lines, their ``\\n`` included.

    For large files, where a Python step for every line is too slow. The last line gets a ``\\n`` where it has none.

    Raises:
        InputError: as ``read_byte_lines``.
    """
    lines = 0
    rest = b""
    with open_text(path) as raw:
        while True:
            try:
                data = raw.read(size)
            except _DAMAGED as error:
                raise _damaged(path, lines, error) from None
            except OSError as error:
                if error.errno is not None:
                    raise
                raise _damaged(path, lines, error) from None
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
                    "is this a text file with one segment a line?"
                )
    if rest:
        yield rest + b"\n"


def _damaged(path: str | Path, lines: int, error: Exception) -> InputError:
    return InputError(f"{path}: damaged after line {lines} ({error}); make or fetch it again")


STANDARD_STREAM = "-"
"""In place of a path, where a command can be part of a pipe."""


def read_lines_or_stdin(path: str | Path) -> Iterator[str]:
    """``read_lines``, or the lines of standard input where the path is ``-``."""
    if str(path) != STANDARD_STREAM:
        yield from read_lines(path)
        return
    for number, line in enumerate(sys.stdin.buffer, 1):
        yield decoded(line.removesuffix(b"\n"), "standard input", number)


def write_lines_or_stdout(path: str | Path, lines: Iterable[str]) -> None:
    """``write_lines``, or to standard output where the path is ``-``."""
    if str(path) != STANDARD_STREAM:
        write_lines(path, lines)
        return
    for line in lines:
        sys.stdout.buffer.write(line.encode("utf-8") + b"\n")
    sys.stdout.buffer.flush()


def read_lines(path: str | Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 file without their ``\\n``.

    Raises:
        InputError: as ``read_byte_lines``, or a line is not UTF-8.
    """
    for number, line in enumerate(read_byte_lines(path), 1):
        yield decoded(line, path, number)


def decoded(line: bytes, path: str | Path, number: int) -> str:
    """A line as text; path and number (from 1) are for the error's sentence.

    Raises:
        InputError: it is not UTF-8.
    """
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}, line {number}: not UTF-8 at byte {error.start}; convert it first") from None


def words_of(sentence: str) -> list[str]:
    """The words of a tokenised sentence: what stands between ASCII spaces, as in the tables."""
    return [word for word in sentence.split(" ") if word]


def read_parallel(*paths: str | Path) -> Iterator[tuple[str, ...]]:
    """Yield the lines of several files side by side.

    Raises:
        InputError: as ``read_lines``, or the files do not have the same number of lines.
    """
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
                    f"{path} ends after line {number}, but {longer} goes on; "
                    "parallel files need the same number of lines"
                )
        number += 1
        yield tuple(cast(list[str], row))


def write_plain(paths: Iterable[str | Path], output: Path) -> int:
    """Write texts, decompressed, one after the other, for programs that read nothing else; the number of lines."""
    lines = 0
    with output.open("wb") as out:
        for path in paths:
            for line in read_byte_lines(path):
                out.write(line + b"\n")
                lines += 1
    return lines


def count_lines(path: str | Path) -> int:
    """The number of lines of a file."""
    return sum(1 for _ in read_byte_lines(path))


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Give a temporary path beside ``path``; on success fsync and rename it, on any exception remove it.

    The temporary name keeps the suffixes of ``path``, so that compression by suffix works on it, and its parent folder
    is made where it is missing. A link stays one: what it leads to is replaced. What a process that was killed on this
    machine left of ``path`` is removed.

    Raises:
        InputError: the place is none for a file, or cannot be written (a full disk, permissions).
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
        places = {str(place) for place in (temporary, path, *path.parents)}
        if str(error.filename) in places or is_full(error):
            raise InputError(
                f"{path}: could not be written ({error.strerror}); what was there before is kept: make room or choose "
                "another place, and run the same command again"
            ) from None
        raise
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


@contextmanager
def scratch_folder(output: str | Path) -> Iterator[Path]:
    """Give an empty folder for what a stage keeps on disk while it works; it is removed at the end.

    It lies beside ``output``, or in the folder that the environment variable ``RNNSMT_SCRATCH`` names, as on a local
    disk; variables in it are looked up where the stage runs (``RNNSMT_SCRATCH='$TMPDIR'``). Every process has its own,
    so that two that make the same output do not disturb each other. What a process that was killed on this machine left
    is removed.

    Raises:
        InputError: no folder can be made there.
    """
    output = Path(output)
    _check_parents(output)
    path = _scratch_place(output)
    _check_parents(path)
    folder = _temporary(path)
    folder.parent.mkdir(parents=True, exist_ok=True)
    _remove_leftovers(path)
    shutil.rmtree(folder, ignore_errors=True)  # of an earlier process with the same number
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _scratch_place(output: Path) -> Path:
    """What the scratch folder of an output is called, without what tells processes apart."""
    if not (said := os.environ.get(SCRATCH)):
        return output.with_name(f"{output.name}.scratch")
    place = Path(os.path.expandvars(said))
    if not place.is_dir():
        raise InputError(f"{SCRATCH}={said}: {place} is no folder here; make it, or take the variable away")
    outputs_name = hashlib.sha256(str(output.absolute()).encode()).hexdigest()[:16]
    return place / f"{outputs_name}-{output.name}.scratch"


def check_output(path: str | Path) -> Path:
    """The path, if a file can have this place: devices, pipes and folders are not replaced.

    Raises:
        InputError: it has no name, is no ordinary file, or lies below something that is no folder.
    """
    path = Path(path)
    if not path.name:
        raise InputError(f"an output is called '{path}'; give it the name of a file")
    try:
        if path.is_dir():
            raise InputError(f"{path}: is a folder; an output needs the name of a file")
        if path.exists() and not path.is_file():
            raise InputError(f"{path}: is no ordinary file and cannot be replaced; choose another output")
        _check_parents(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be an output ({error.strerror}); choose another") from None
    return path


def _check_parents(path: Path, itself: bool = False) -> None:
    """itself: the path is that of a folder."""
    parent = next(parent for parent in [*[path] * itself, *path.parents] if parent.exists())
    if not parent.is_dir():
        raise InputError(f"{path}: {parent} is a file, not a folder; choose another output")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise InputError(f"{path}: {parent} may not be written to (permissions); choose another output")


def check_output_folder(path: str | Path) -> None:
    """Refuse what cannot be a folder of outputs, without making it.

    Raises:
        InputError: as ``check_output``.
    """
    try:
        _check_parents(Path(path), itself=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be a folder of outputs ({error.strerror}); choose another") from None


def _temporary(path: Path) -> Path:
    """The name under which this process writes ``path``."""
    return path.with_name(f"{_temporary_prefix()}{os.getpid()}-{path.name}")


def _temporary_prefix() -> str:
    return f"{TEMPORARY}{platform.node()}-"


def _remove_leftovers(path: Path) -> None:
    """Remove temporary files and folders of ``path`` whose process is gone."""
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
    """Whether a process still runs; one that ended and was not waited for does not."""
    try:
        os.kill(process, 0)
        status = Path(f"/proc/{process}/stat").read_bytes()
    except ProcessLookupError:
        return False
    except (PermissionError, FileNotFoundError):
        return True
    return status.rpartition(b")")[2].split()[:1] not in ([b"Z"], [b"X"])


@contextmanager
def atomic_binary(path: str | Path) -> Iterator[BinaryIO]:
    """Write a binary file whole or not at all, compressed by the suffix of ``path``.

    Compressed files carry neither a name nor a time, so that the same content gives the same bytes.
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
    """Write a UTF-8 text file whole or not at all, compressed by the suffix of ``path``."""
    with atomic_binary(path) as binary:
        text = io.TextIOWrapper(binary, encoding="utf-8", newline="\n", write_through=False)
        yield text
        text.flush()
        text.detach()


def write_lines(path: str | Path, lines: Iterable[str]) -> int:
    """Write lines (without ``\\n``) to a file, whole or not at all; return how many."""
    number = 0
    with atomic_text(path) as out:
        for line in lines:
            out.write(line)
            out.write("\n")
            number += 1
    return number


def write_json(path: str | Path, value: object) -> None:
    """Write a value as readable JSON, whole or not at all."""
    with atomic_text(path) as out:
        json.dump(value, out, indent=2, ensure_ascii=False)
        out.write("\n")


def read_json(path: str | Path) -> Any:
    """Read a JSON file; ``InputError`` where it is missing or damaged."""
    text = "\n".join(read_lines(path))
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{path}, line {error.lineno}: not JSON ({error.msg}); remove it and run again") from None
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, thousands of open brackets
        raise InputError(f"{path}: not JSON of this project ({error}); remove it and run again") from None
