"""Atomic writing of files, compressed according to their suffix; temporary files."""

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
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, BinaryIO, TextIO, cast

from rnnsmt.base.errors import InputError
from rnnsmt.base.opening import least_size
from rnnsmt.base.paths import StrPath
from rnnsmt.base.reading import STANDARD_STREAM, read_byte_lines

_FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
"""Error numbers for a full disk, a file size limit and a quota; these errors do not name the file."""


TEMPORARY = ".tmp-"
"""Prefix of the names of incomplete files."""

SCRATCH = "RNNSMT_SCRATCH"
"""Environment variable for the directory of scratch files."""


def is_full(error: OSError) -> bool:
    """Return whether a system error means that there is no space left for a file."""
    return error.errno in _FULL


def write_lines_or_stdout(path: StrPath, lines: Iterable[str]) -> None:
    """Write lines to a file like ``write_lines``, or to standard output if the path is ``-``."""
    if str(path) != STANDARD_STREAM:
        write_lines(path, lines)
        return
    for line in lines:
        sys.stdout.buffer.write(line.encode("utf-8") + b"\n")
    sys.stdout.buffer.flush()


def write_plain(paths: Iterable[StrPath], output: Path) -> int:
    """Decompress and concatenate text files, for programs that cannot decompress; return the number of lines."""
    lines = 0
    with output.open("wb") as out:
        for path in paths:
            for line in read_byte_lines(path):
                out.write(line + b"\n")
                lines += 1
    return lines


@contextmanager
def atomic_path(path: StrPath) -> Iterator[Path]:
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
def scratch_directory(output: StrPath) -> Iterator[Path]:
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
    """Return the path of the scratch directory of an output, without the prefix that distinguishes processes."""
    if not (configured := os.environ.get(SCRATCH)):
        return output.with_name(f"{output.name}.scratch")
    directory = Path(os.path.expandvars(configured))
    if not directory.is_dir():
        raise InputError(f"{SCRATCH}={configured}: {directory} is not a directory; create it or unset the variable")
    outputs_name = hashlib.sha256(str(output.absolute()).encode()).hexdigest()[:16]
    return directory / f"{outputs_name}-{output.name}.scratch"


def check_output(path: StrPath) -> Path:
    """Return the path of an output file; reject devices, pipes, directories and paths that are not writable."""
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path}: is a directory; specify the path of a file")
    if path.exists() and not path.is_file():
        raise InputError(f"{path}: is not a regular file and cannot be replaced; choose another output")
    check_output_directory(path.parent)
    return path


def check_name(path: StrPath) -> None:
    """Check that a path is UTF-8, as duckdb requires."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise InputError(f"{path}: the name is not UTF-8; rename the file or directory") from None


def check_output_directory(path: StrPath) -> None:
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
def atomic_binary(path: StrPath) -> Iterator[BinaryIO]:
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
            if isinstance(stream, gzip.GzipFile) and raw.tell() < (size := least_size(stream.tell())):
                stream.flush()  # ends a block at a byte boundary
                pad(raw, size)
            if stream is not raw:
                stream.close()
            raw.flush()


_EMPTY_BLOCK = b"\0\0\0\xff\xff"
"""Empty block of a deflate stream, from a byte boundary."""


def pad(out: BinaryIO, size: int) -> None:
    """Extend a gzip file to at least ``size`` bytes by empty blocks, see ``least_size``.

    Otherwise, ``open_binary`` would reject compressed files with many equal lines, such as an alignment in which all
    lines are ``0-0``: gzip compresses them by a factor of about 1,000. The file must end at a byte boundary.
    """
    while out.tell() < size:
        out.write(_EMPTY_BLOCK * 1000)


@contextmanager
def atomic_text(path: StrPath) -> Iterator[TextIO]:
    """Write a UTF-8 text file atomically, compressed according to the suffix of ``path``."""
    with atomic_binary(path) as binary:
        text = io.TextIOWrapper(binary, encoding="utf-8", newline="\n", write_through=False)
        try:
            yield text
            text.flush()
        except UnicodeEncodeError as error:  # all text that was read is UTF-8, but names of files may not be
            name = next(word for word in error.object.split() if not word.isprintable())
            raise InputError(f"{path}: cannot name the file {name}, which is not UTF-8; rename it first") from None
        text.detach()


def write_lines(path: StrPath, lines: Iterable[str]) -> int:
    """Write lines (without ``\\n``) to a file atomically; return their number."""
    number = 0
    with atomic_text(path) as out:
        for line in lines:
            out.write(line)
            out.write("\n")
            number += 1
    return number


def write_json(path: StrPath, value: object) -> None:
    """Write a value as indented JSON atomically; bytes of file names that are not UTF-8 become ``\\udc..``."""
    with atomic_binary(path) as out:
        out.write(f"{json.dumps(value, indent=2, ensure_ascii=False)}\n".encode(errors="backslashreplace"))


def write_report(path: StrPath, figures: Mapping[str, object]) -> None:
    """Write the figures of a stage as JSON, without CPU seconds, so that equal runs write equal files.

    Times are in the last line of the log.
    """
    write_json(path, {name: value for name, value in figures.items() if "seconds" not in name})
