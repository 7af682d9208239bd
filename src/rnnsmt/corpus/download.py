"""Download of corpus files, resumed as often as necessary and checked by SHA-256; extraction of files from archives.

A file is stored as ``FILE.part`` until it is complete; ``FILE.part.json`` records its address and version. A broken
connection, a killed process or a full disk therefore do not lose data: the next attempt, or the next run of the
command, requests the rest (a range, RFC 9110 section 14). If the server does not support ranges or its file has
changed, the download starts from the beginning.
"""

import difflib
import http.client
import os
import shutil
import ssl
import tarfile
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from rnnsmt.base.io import (
    DAMAGED,
    DamagedError,
    InputError,
    atomic_path,
    check_output,
    is_full,
    open_binary,
    open_zip,
    open_zip_member,
    read_json,
    sha256,
    write_json,
)
from rnnsmt.base.progress import Meter, say
from rnnsmt.base.resuming import lock_or_wait

BLOCK = 1 << 20
"""Number of bytes read at once."""

TIMEOUT = 60.0
"""Seconds without data after which an attempt is abandoned."""

PAUSES = (2.0, 8.0, 30.0, 60.0)
"""Seconds to wait after each consecutive failure of an address; then the next address is tried.

A connection that delivered at least ``BLOCK`` new bytes resets the count of failures.
"""

TRANSIENT = (408, 425, 429, 500, 502, 503, 504)
"""HTTP status codes of errors that may be temporary."""


class BrokenOffError(Exception):
    """An attempt that ended before the file was complete and may be resumed."""


class Partial:
    """The file ``FILE.part`` with the data received so far, locked against other processes while it is open."""

    def __init__(self, output: Path) -> None:
        self.path = output.with_name(f"{output.name}.part")
        self._about = output.with_name(f"{output.name}.part.json")
        self.file: BinaryIO

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Wait until no other process downloads the same file, and lock it. An empty file is removed at the end."""
        while True:
            self.file = self.path.open("ab", buffering=0)
            lock_or_wait(self.file, self.path, "downloading")
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(self.file.fileno()), self.path.stat()):
                    break
            self.file.close()  # the other process has finished and removed or renamed it
        try:
            yield
        finally:
            if not self.size:
                self.path.unlink(missing_ok=True)
            if not self.path.exists():
                self._about.unlink(missing_ok=True)
            self.file.close()

    @property
    def size(self) -> int:
        """Return the number of bytes received."""
        return os.fstat(self.file.fileno()).st_size

    def validator(self, url: str) -> str | None:
        """Return the version (ETag or date) of the received data; None if it is unknown or the address differs."""
        with suppress(InputError, TypeError, AttributeError):
            record = read_json(self._about) if self._about.exists() else {}
            if record.get("url") == url:
                return str(record["validator"]) if record.get("validator") else None
        return None

    def begin(self, url: str, validator: str | None) -> None:
        """Discard the received data, and record the address and version of the data that follow."""
        self.file.truncate(0)
        write_json(self._about, {"url": url, "validator": validator})

    def write(self, block: bytes) -> None:
        """Append a block; if the disk is full, the part that fits is kept."""
        left = memoryview(block)
        while left:
            left = left[self.file.write(left) :]

    def finish(self, output: Path) -> None:
        """Rename the complete file."""
        os.fsync(self.file.fileno())
        self.path.replace(output)


def download(url: str, partial: Partial, known: bool) -> None:
    """Download the missing part of a file.

    Args:
        url: the address.
        partial: the data received so far.
        known: whether the SHA-256 of the file is known. If so, data from another address or of an unknown version are
            also continued, since the hash detects a mismatch.

    Raises:
        BrokenOffError: the connection ended early, or the server reported a temporary error.
        OSError, ValueError, http.client.HTTPException: the address cannot be used, or the disk is full.
    """
    begun, version = partial.size, partial.validator(url)
    headers = {"User-Agent": "rnnsmt", "Accept-Encoding": "identity"}
    if begun and (known or version):
        headers["Range"] = f"bytes={begun}-"
        if version:
            headers["If-Range"] = version
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=TIMEOUT) as response:
            length = _receive(response, url, partial)
    except urllib.error.HTTPError as error:
        if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE and begun:
            if error.headers.get("Content-Range") == f"bytes */{begun}":
                return  # the file is already complete
            partial.begin(url, None)
            raise BrokenOffError("the file on the server is shorter than the incomplete download") from None
        if error.code in TRANSIENT:
            raise BrokenOffError(str(error)) from None
        raise
    except urllib.error.URLError as error:
        late = isinstance(error.reason, OSError) and not isinstance(error.reason, ssl.SSLCertVerificationError)
        if late and url.lower().startswith(("http:", "https:", "ftp:")):
            raise BrokenOffError(str(error)) from None
        raise
    except (http.client.IncompleteRead, ssl.SSLError, ConnectionError, TimeoutError) as error:
        raise BrokenOffError(str(error) or type(error).__name__) from None
    if length is not None and partial.size != length:
        raise BrokenOffError(f"the download ended after {partial.size} of {length} bytes")


def _receive(response: "http.client.HTTPResponse", url: str, partial: Partial) -> int | None:
    """Store the body of a response; return the length of the complete file, or None if the server does not send it."""
    size = response.headers.get("Content-Length")
    rest = int(size) if size and size.isdecimal() else None
    ranges = response.headers.get("Content-Range", "")
    if getattr(response, "status", None) != http.client.PARTIAL_CONTENT:
        etag = response.headers.get("ETag", "")
        partial.begin(url, etag if etag.startswith('"') else response.headers.get("Last-Modified"))
    elif not ranges.startswith(f"bytes {partial.size}-"):
        partial.begin(url, None)
        raise BrokenOffError(f"the server sent a different range ({ranges})")
    begun = partial.size
    if begun:
        say(f"resuming after {begun:,} bytes")
    meter = Meter("downloading", rest, "bytes")
    while block := response.read(BLOCK):
        partial.write(block)
        meter.add(len(block))
    return None if rest is None else begun + rest


def fetch_first(urls: Sequence[str], expected: str | None, output: Path) -> tuple[int, str, str]:
    """Download a file from the first address that works, in the given order.

    Args:
        urls: addresses.
        expected: required SHA-256; None to accept any.
        output: the file.

    Returns:
        Number of bytes, SHA-256, address.

    Raises:
        InputError: no address provides the file, or there is not enough space.
    """
    check_output(output)
    if output.is_symlink():
        output = output.resolve()
    partial = Partial(output)
    failures = []
    before = _identity(output)
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with partial.lock():
            if _identity(output) != before and expected in (None, digest := sha256(output)):
                return output.stat().st_size, digest, "another process, which has just downloaded it"
            for url in urls:
                try:
                    size, digest = _fetch(url, partial, expected)
                except (ValueError, urllib.error.URLError, http.client.HTTPException, BrokenOffError) as error:
                    failures.append(f"{url}: {error}")
                    say(f"failed: {failures[-1]}")
                    continue
                partial.finish(output)
                return size, digest, url
            hint = f"; {partial.size:,} bytes are kept in {partial.path}" if partial.size else ""
    except OSError as error:
        if is_full(error) or str(error.filename) in {
            str(candidate) for candidate in (partial.path, output, *output.parents)
        }:
            raise InputError(
                f"{output}: cannot be written ({error.strerror}); the incomplete download is kept in {partial.path}; "
                "free disk space or choose another output file, then run the same command again"
            ) from None
        raise
    raise InputError(f"{output} cannot be downloaded; check the URL and the SHA-256 ({'; '.join(failures)}){hint}")


def _identity(path: Path) -> tuple[int, int] | None:
    """Return inode and modification time of a file, or None if it does not exist."""
    with suppress(FileNotFoundError):
        status = path.stat()
        return status.st_ino, status.st_mtime_ns
    return None


def _fetch(url: str, partial: Partial, expected: str | None) -> tuple[int, str]:
    """Download from one address, with repeated attempts; return size and SHA-256.

    Raises:
        BrokenOffError: too many attempts failed.
        ValueError: the file does not have the expected SHA-256; it is discarded.
    """
    continued = partial.size > 0
    failed, most = 0, partial.size
    while True:
        try:
            download(url, partial, expected is not None)
        except BrokenOffError as error:
            continued = continued or partial.size > 0
            if partial.size >= most + BLOCK:
                failed, most = 0, partial.size
            if failed == len(PAUSES):
                raise
            say(f"{url}: {error}; retrying in {PAUSES[failed]:g} s")
            time.sleep(PAUSES[failed])
            failed += 1
            continue
        digest = sha256(partial.path)
        if expected in (None, digest):
            return partial.size, digest
        size = partial.size
        partial.begin(url, None)
        if not continued:
            raise ValueError(f"its sha256 is {digest}, not {expected}")
        continued = False
        say(f"{url}: the {size:,} bytes do not have the SHA-256 {expected}; downloading again from the beginning")


def extract_member(path: str, name: str, output: str) -> tuple[int, int]:
    """Copy one file of a tar or zip archive; a tar archive is not read beyond it.

    Args:
        path: the archive.
        name: name of the file in the archive.
        output: the copy.

    Returns:
        Size of the file in bytes, and number of members before it.

    Raises:
        InputError: the archive is missing, damaged, or too large when decompressed; it has no such file; the member is
            a link, a directory or a device; or the name is not a path inside the archive.
    """
    if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
        raise InputError(f"--member {name}: must be a path inside the archive, without .. and without a leading /")
    seen: list[str] = []
    with atomic_path(output) as temporary:
        try:
            size = _copy_member(path, name, temporary, seen)
        except (tarfile.TarError, *DAMAGED) as error:
            if isinstance(error, OSError) and error.errno is not None and not isinstance(error, tarfile.TarError):
                raise
            reason = error.__cause__ if isinstance(error, DamagedError) else error
            raise InputError(
                f"{path}: not a tar or zip archive, or damaged after {len(seen)} file(s) ({reason}); download it again"
            ) from None
        if size is None:
            near = difflib.get_close_matches(name, seen, 1)
            hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(seen[:5]) or 'no files'}"
            raise InputError(f"{path}: the archive contains no file {name}; {hint}")
    return size, len(seen) - 1


def _copy_member(path: str, name: str, output: Path, seen: list[str]) -> int | None:
    """Copy a file of the archive; return its size, or None if it is not found. Names are appended to ``seen``."""
    with open_zip(path) as zipped:
        if zipped is not None:
            return _copy_zip_member(zipped, path, name, output, seen)
    with open_binary(path) as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
        for member in archive:
            seen.append(member.name)
            if _plain(member.name) != _plain(name):
                continue
            content = archive.extractfile(member) if member.isreg() else None
            if content is None:
                raise InputError(f"{path}: {name} is {_kind(member)}, not a file; choose another member")
            with output.open("wb") as out:
                shutil.copyfileobj(content, out, 1 << 20)
            return member.size
    return None


def _copy_zip_member(archive: zipfile.ZipFile, path: str, name: str, output: Path, seen: list[str]) -> int | None:
    """Copy a file of a zip archive, see ``_copy_member``."""
    for member in archive.infolist():
        seen.append(member.filename)
        if _plain(member.filename) == _plain(name):
            with open_zip_member(archive, path, member.filename) as content, output.open("wb") as out:
                shutil.copyfileobj(content, out, 1 << 20)
            return member.file_size
    return None


def _kind(member: tarfile.TarInfo) -> str:
    """Describe a member that is not a regular file."""
    if member.issym() or member.islnk():
        return f"a link to {member.linkname}"
    return "a directory" if member.isdir() else "a device or a pipe"


def _plain(name: str) -> str:
    return name.removeprefix("./")
