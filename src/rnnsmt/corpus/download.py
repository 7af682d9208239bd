"""Download of corpus files by curl, resumed and checked by SHA-256; extraction of one file from an archive.

The data received are kept in ``FILE.KEY.part`` until the file is complete. KEY is the beginning of the expected
SHA-256, so that every mirror continues the download; without a SHA-256, that of the URL, so that the data of two URLs
are not mixed. A broken connection, a killed process or a full disk therefore do not lose data.
"""

import difflib
import hashlib
import shutil
import subprocess
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from rnnsmt.base.errors import InputError
from rnnsmt.base.opening import DAMAGED, damage, is_junk, open_binary, open_zip, open_zip_member, sha256
from rnnsmt.base.progress import say
from rnnsmt.base.writing import atomic_path, check_output

RETRIES = 4
"""Number of retries of curl if a server is busy, after 1, 2, 4 and 8 seconds."""

STALLED = 60
"""Seconds without data after which a connection is closed.

It is also the time during which curl retries: later, curl would discard what it has received before it retries.
"""

CANNOT_RESUME = (33, 36)
"""Exit statuses of curl if the server does not support ranges, or if the file is shorter than the data received."""


def fetch_first(urls: Sequence[str], expected: str | None, output: Path) -> tuple[int, str, str]:
    """Download a file from the first address that works, in the given order.

    Args:
        expected: required SHA-256; None to accept any.

    Returns:
        Number of bytes, SHA-256, address.
    """
    check_output(output)
    output.parent.mkdir(parents=True, exist_ok=True)
    failures, kept = [], ""
    for url in urls:
        key = expected or hashlib.sha256(url.encode()).hexdigest()
        part = output.with_name(f"{output.name}.{key[:10]}.part")
        say(f"downloading {url}")
        try:
            digest = _download(url, part, expected)
        except InputError:
            raise
        except ValueError as error:
            failures.append(f"{url}: {error}")
            say(f"failed: {failures[-1]}")
            if part.exists():
                kept = f"; {part.stat().st_size:,} bytes are kept in {part}"
            continue
        part.replace(output)
        return output.stat().st_size, digest, url
    raise InputError(f"{output} cannot be downloaded; check the URL and the SHA-256 ({'; '.join(failures)}){kept}")


def _download(url: str, part: Path, expected: str | None) -> str:
    """Download the rest of a file; return the SHA-256 of the file.

    Raises:
        ValueError: curl failed, or the file does not have the expected SHA-256; it is discarded.
    """
    words = ["curl", "--globoff", "--fail", "--location", "--silent", "--show-error", "--continue-at", "-"]
    words += ["--retry", str(RETRIES), "--retry-max-time", str(STALLED)]
    words += ["--speed-limit", "1", "--speed-time", str(STALLED), "--output", str(part), "--url", url]
    is_old = part.exists()  # of an earlier run, since which the file on the server may have changed
    while True:
        part.touch()
        begun = part.stat().st_size
        try:
            done = subprocess.run(words, stderr=subprocess.PIPE, text=True, errors="replace", check=False)
        except FileNotFoundError:
            raise InputError(f"{url} cannot be downloaded, because curl is not installed; install curl") from None
        message, size = done.stderr.strip().rpartition("\n")[2], part.stat().st_size
        if done.returncode == 0:
            digest = sha256(part)
            if expected in (None, digest):
                return digest
            part.unlink()
            if not is_old:
                raise ValueError(f"its sha256 is {digest}, not {expected}")
            say(f"{url}: the {size:,} bytes do not have the SHA-256 {expected}; downloading again from the beginning")
            is_old = False
        elif begun and (done.returncode in CANNOT_RESUME or message.endswith(" 416")):  # 416: no data after these
            say(f"{url}: cannot be resumed ({message}); downloading again from the beginning")
            part.unlink()
        elif size > begun:
            say(f"{url}: {message}; resuming after {size:,} bytes")
        else:
            if not size:
                part.unlink()
            raise ValueError(message or f"curl ended with exit status {done.returncode}")


def extract_member(path: str, name: str, output: str) -> int:
    """Copy one file of a tar or zip archive, and return its size in bytes; a tar archive is not read beyond it."""
    if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
        raise InputError(f"--member {name}: must be a path inside the archive, without .. and without a leading /")
    with atomic_path(output) as temporary:
        try:
            with _member(path, name.removeprefix("./")) as content, temporary.open("wb") as out:
                shutil.copyfileobj(content, out, 1 << 20)
        except DAMAGED as error:
            raise damage(path, None, error) from None
        except InputError:
            raise
        except TAR_DAMAGED as error:
            raise InputError(f"{path}: not a tar or zip archive, or damaged ({error}); download it again") from None
        return temporary.stat().st_size


@contextmanager
def _member(path: str, name: str) -> Iterator[IO[bytes]]:
    """Open a file of an archive."""
    seen: list[str] = []
    with open_zip(path) as zipped:
        if zipped is not None:
            seen.extend(zipped.namelist())
            stored = next((other for other in seen if other.removeprefix("./") == name), None)
            if stored is not None:
                with open_zip_member(zipped, path, stored) as stream:
                    yield stream
                return
    if zipped is None:
        with open_binary(path) as archive_stream, open_tar(archive_stream) as archive:
            for member in archive:
                seen.append(member.name)
                if member.name.removeprefix("./") == name:
                    content = archive.extractfile(member) if is_plain(member) else None
                    if content is None:
                        raise InputError(f"{path}: {name} is {_kind(member)}, not a file; choose another member")
                    yield content
                    return
    files = [other for other in seen if not is_junk(other)]
    near = difflib.get_close_matches(name, files, 1)
    hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(files[:5]) or 'no files'}"
    raise InputError(f"{path}: the archive contains no file {name}; {hint}")


def _kind(member: tarfile.TarInfo) -> str:
    """Describe a member that is not a regular file."""
    if member.issym() or member.islnk():
        return f"a link to {member.linkname}"
    if member.issparse():
        return "a sparse file"
    return "a directory" if member.isdir() else "a device or a pipe"


TAR_DAMAGED = (tarfile.TarError, ValueError, OverflowError, LookupError, RecursionError)
"""Exceptions of ``tarfile`` for damaged and forged archives."""

MOST_HEADER = 1 << 20
"""Maximum size of a long name or of the further attributes (pax) of a member, which ``tarfile`` reads into memory."""


_METADATA = (
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
    *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
)
"""Types of headers whose content ``tarfile`` reads into memory."""

_HOLES = "it has a sparse file with a list of holes"

_EXTENDED = 482
"""Position in the header of a sparse file in GNU format: whether a list of any length follows it."""


class _Header(tarfile.TarInfo):
    """A header of a tar archive whose name and attributes have a limited size, without a list of holes after it."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> "_Header":
        """Parse a header."""
        header = super().frombuf(buf, encoding, errors)
        if header.type in _METADATA and header.size > MOST_HEADER:
            raise tarfile.ReadError("a name or the attributes of a member are too long")
        if header.type == tarfile.GNUTYPE_SPARSE and buf[_EXTENDED]:
            raise tarfile.ReadError(_HOLES)
        return header

    def _proc_gnusparse_10(self, *_: object) -> None:
        """Refuse the list of holes in pax format, which ``tarfile`` would read into memory."""
        raise tarfile.ReadError(_HOLES)


def open_tar(stream: IO[bytes]) -> tarfile.TarFile:
    """Open a tar archive that is read once from its beginning; see ``TAR_DAMAGED``."""
    return tarfile.open(fileobj=stream, mode="r|", tarinfo=_Header)


def is_plain(member: tarfile.TarInfo) -> bool:
    """Return whether a member is a regular file, and not a sparse one, whose size may be far above that of its data."""
    return member.isreg() and not member.issparse()
