"""Corpus files from elsewhere: downloaded in as many pieces as it takes, and checked by their sha256.

What has come of FILE lies in ``FILE.part`` until it is whole; ``FILE.part.json`` says of which address and which
version of the file it is. So a connection that breaks off, a process that is killed and a full disk cost nothing that
has come: the next attempt, or the next run of the command, asks the server for the rest (a range, RFC 9110 section 14).
Where the server has no ranges, or the file has changed there, it begins anew.
"""

import fcntl
import http.client
import os
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from rnnsmt.io import InputError, check_output, is_full, read_json, sha256, write_json
from rnnsmt.progress import Meter, say

BLOCK = 1 << 20

TIMEOUT = 60.0
"""Seconds without a byte until an attempt is given up."""

PAUSES = (2.0, 8.0, 30.0, 60.0)
"""Seconds before an address is asked once more, failure by failure; then comes the next address. A connection that
brought at least a ``BLOCK`` that was not there yet is no failure: the pauses begin with the first again."""

TRANSIENT = (408, 425, 429, 500, 502, 503, 504)
"""Answers of a server that may be others later."""


class BrokenOffError(Exception):
    """An attempt that ended before the file was whole, at a place from which a further one may go on."""


class Partial:
    """``FILE.part``: what has come so far, locked against other processes while this object is open."""

    def __init__(self, output: Path) -> None:
        self.path = output.with_name(f"{output.name}.part")
        self._about = output.with_name(f"{output.name}.part.json")
        self.file: BinaryIO

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Wait until no other process fetches the same file. At the end, an empty one is removed."""
        while True:
            self.file = self.path.open("ab", buffering=0)
            try:
                fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say(f"another process fetches {self.path}; waiting until it ends")
                fcntl.flock(self.file, fcntl.LOCK_EX)
            except OSError as error:  # some file systems of clusters have no locks
                say(f"{self.path}: cannot be locked ({error.strerror}); take care that no other process fetches it")
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(self.file.fileno()), self.path.stat()):
                    break
            self.file.close()  # the other process was done with it
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
        """Bytes that have come."""
        return os.fstat(self.file.fileno()).st_size

    def validator(self, url: str) -> str | None:
        """The version (ETag or date) of the file at this address that the bytes are of; none where it is not known."""
        with suppress(InputError, TypeError, AttributeError):
            about = read_json(self._about) if self._about.exists() else {}
            if about.get("url") == url:
                return str(about["validator"]) if about.get("validator") else None
        return None

    def begin(self, url: str, validator: str | None) -> None:
        """Throw away what has come, and note of what the next bytes are."""
        self.file.truncate(0)
        write_json(self._about, {"url": url, "validator": validator})

    def write(self, block: bytes) -> None:
        """Add bytes; where the disk is full, those that have room."""
        left = memoryview(block)
        while left:
            left = left[self.file.write(left) :]

    def finish(self, output: Path) -> None:
        """Give the whole file its name."""
        os.fsync(self.file.fileno())
        self.path.replace(output)


def download(url: str, part: Partial, known: bool) -> None:
    """Fetch what is missing of a file.

    Args:
        known: the sum of the whole file is known. Then bytes from another address, or of a version that cannot be told,
            are continued too: what does not fit together shows in the sum.

    Raises:
        BrokenOffError: the connection ended early, or the server asks to come again later.
        OSError, ValueError, http.client.HTTPException: it is of no use to ask this address again; or the disk is full.
    """
    begun, version = part.size, part.validator(url)
    headers = {"User-Agent": "rnnsmt", "Accept-Encoding": "identity"}
    if begun and (known or version):
        headers["Range"] = f"bytes={begun}-"
        if version:
            headers["If-Range"] = version
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=TIMEOUT) as response:
            length = _receive(response, url, part)
    except urllib.error.HTTPError as error:
        if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE and begun:
            if error.headers.get("Content-Range") == f"bytes */{begun}":
                return  # it is whole
            part.begin(url, None)
            raise BrokenOffError("the server has less than what had come") from None
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
    if length is not None and part.size != length:
        raise BrokenOffError(f"ended after {part.size} of {length} bytes")


def _receive(response: "http.client.HTTPResponse", url: str, part: Partial) -> int | None:
    """Put what an answer holds where it belongs; the length of the whole file, where the server says it."""
    size = response.headers.get("Content-Length")
    rest = int(size) if size and size.isdecimal() else None
    ranges = response.headers.get("Content-Range", "")
    if getattr(response, "status", None) != http.client.PARTIAL_CONTENT:
        etag = response.headers.get("ETag", "")
        part.begin(url, etag if etag.startswith('"') else response.headers.get("Last-Modified"))
    elif not ranges.startswith(f"bytes {part.size}-"):
        part.begin(url, None)
        raise BrokenOffError(f"the server answered with another range ({ranges})")
    begun = part.size
    if begun:
        say(f"going on after {begun:,} bytes")
    meter = Meter("downloading", rest, "bytes")
    while block := response.read(BLOCK):
        part.write(block)
        meter.add(len(block))
    return None if rest is None else begun + rest


def fetch_first(urls: Sequence[str], expected: str | None, output: Path) -> tuple[int, str, str]:
    """Put what the first address gives that works, in the order of the addresses, in its place whole.

    Args:
        expected: the sha256 that it must have; None: any.

    Returns:
        Number of bytes, their sha256, the address.

    Raises:
        InputError: no address gives such a file, or it has no room.
    """
    check_output(output)
    if output.is_symlink():
        output = output.resolve()
    part = Partial(output)
    failures = []
    before = _identity(output)
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with part.lock():
            if _identity(output) != before and expected in (None, digest := sha256(output)):
                return output.stat().st_size, digest, "another process, which has just fetched it"
            for url in urls:
                try:
                    size, digest = _fetch(url, part, expected)
                except (ValueError, urllib.error.URLError, http.client.HTTPException, BrokenOffError) as error:
                    failures.append(f"{url}: {error}")
                    say(f"failed: {failures[-1]}")
                    continue
                part.finish(output)
                return size, digest, url
            kept = f"; {part.size:,} bytes are kept in {part.path}" if part.size else ""
    except OSError as error:
        if is_full(error) or str(error.filename) in {str(place) for place in (part.path, output, *output.parents)}:
            raise InputError(
                f"{output}: could not be written ({error.strerror}); what has come is kept in {part.path}: make room "
                "or choose another place, and run the same command again"
            ) from None
        raise
    raise InputError(f"{output} could not be fetched; check the address and the sha256 ({'; '.join(failures)}){kept}")


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file lies in a place; none where there is none."""
    with suppress(FileNotFoundError):
        about = path.stat()
        return about.st_ino, about.st_mtime_ns
    return None


def _fetch(url: str, part: Partial, expected: str | None) -> tuple[int, str]:
    """Fetch from one address, in as many attempts as it is worth; size and sha256.

    Raises:
        BrokenOffError: it failed too often.
        ValueError: not the file that was expected; nothing of it is kept.
    """
    continued = part.size > 0
    failed, most = 0, part.size
    while True:
        try:
            download(url, part, expected is not None)
        except BrokenOffError as error:
            continued = continued or part.size > 0
            if part.size >= most + BLOCK:
                failed, most = 0, part.size
            if failed == len(PAUSES):
                raise
            say(f"{url}: {error}; again in {PAUSES[failed]:g} s")
            time.sleep(PAUSES[failed])
            failed += 1
            continue
        digest = sha256(part.path)
        if expected in (None, digest):
            return part.size, digest
        size = part.size
        part.begin(url, None)
        if not continued:
            raise ValueError(f"its sha256 is {digest}, not {expected}")
        continued = False
        say(f"{url}: the {size:,} bytes have another sha256 than {expected}; once more from the beginning")
