"""Corpus files from elsewhere: downloaded and checked by their sha256, or taken out of a tar archive."""

import difflib
import hashlib
import http.client
import lzma
import shutil
import tarfile
import urllib.error
import urllib.request
import zlib
from collections.abc import Sequence
from pathlib import Path

from rnnsmt.io import InputError, atomic_path, open_binary
from rnnsmt.progress import Meter, say

BLOCK = 1 << 20

TIMEOUT = 60.0
"""Seconds without a byte until a server is given up."""


def download(url: str, path: Path) -> tuple[int, str]:
    """Copy what a URL gives to a file.

    Returns:
        Number of bytes and their sha256.

    Raises:
        ValueError: not a URL, or the connection ended early.
        OSError: the server or the disk failed.
    """
    digest = hashlib.sha256()
    size = 0
    request = urllib.request.Request(url, headers={"User-Agent": "rnnsmt"})
    with urllib.request.urlopen(request, timeout=TIMEOUT) as response, path.open("wb") as out:
        length = response.headers.get("Content-Length")
        meter = Meter("downloading", int(length) if length else None, "bytes")
        while block := response.read(BLOCK):
            out.write(block)
            digest.update(block)
            size += len(block)
            meter.add(len(block))
    if length and size != int(length):
        raise ValueError(f"ended after {size} of {length} bytes")
    return size, digest.hexdigest()


def fetch_first(urls: Sequence[str], expected: str | None, output: Path) -> tuple[int, str, str]:
    """Put what the first address gives that works, in the order of the addresses, in its place whole.

    Args:
        expected: the sha256 that it must have; None: any.

    Returns:
        Number of bytes, their sha256, the address.

    Raises:
        InputError: no address gives such a file.
    """
    failures = []
    for url in urls:
        try:
            with atomic_path(output) as temporary:
                size, digest = download(url, temporary)
                if expected not in (None, digest):
                    raise ValueError(f"its sha256 is {digest}, not {expected}")
            return size, digest, url
        except (ValueError, urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
            failures.append(f"{url}: {error}")
            say(f"failed: {failures[-1]}")
    raise InputError(f"{output} could not be fetched; check the address and the sha256 ({'; '.join(failures)})")


def extract_member(path: str, wanted: str, output: str) -> tuple[int, int]:
    """Copy one file of a tar archive, which is read up to there and no further.

    Returns:
        Its size in bytes, and how many files were passed before it.

    Raises:
        InputError: the archive is missing or damaged, or has no such file.
    """
    open_binary(path).close()  # a missing file is one sentence, here as everywhere
    seen: list[str] = []
    with atomic_path(output) as temporary:
        try:
            size = _copy_member(path, wanted, temporary, seen)
        except _DAMAGED as error:
            if isinstance(error, OSError) and error.errno is not None and not isinstance(error, tarfile.TarError):
                raise
            raise InputError(
                f"{path}: not a tar archive, or damaged after {len(seen)} file(s) ({error}); fetch it again"
            ) from None
        if size is None:
            near = difflib.get_close_matches(wanted, seen, 1)
            hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(seen[:5]) or 'no files'}"
            raise InputError(f"{path}: no file {wanted} in it; {hint}")
    return size, len(seen) - 1


_DAMAGED = (tarfile.TarError, EOFError, OSError, lzma.LZMAError, zlib.error)


def _copy_member(path: str, wanted: str, output: Path, seen: list[str]) -> int | None:
    """Copy a file of the archive and return its size; none where it is not there. seen: the names passed."""
    with tarfile.open(path, "r|*") as archive:
        for member in archive:
            seen.append(member.name)
            stream = archive.extractfile(member) if _plain(member.name) == _plain(wanted) else None
            if stream is not None:
                with output.open("wb") as out:
                    shutil.copyfileobj(stream, out, 1 << 20)
                return member.size
    return None


def _plain(name: str) -> str:
    return name.removeprefix("./")
