"""Download one corpus file, check its sha256 and put it in place whole.

The URL is tried first, then the mirrors in their order. A file that is already there with the right sum stays.
http(s), ftp and file URLs work.
"""

import hashlib
import lzma
import shutil
import tarfile
import urllib.error
import urllib.request
import zlib
from pathlib import Path

from rnnsmt.progress import Meter

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


def sha256(path: Path) -> str:
    """The sum of a file, in hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


DAMAGED = (tarfile.TarError, EOFError, OSError, lzma.LZMAError, zlib.error)


def take(path: str, wanted: str, output: Path, seen: list[str]) -> int | None:
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
