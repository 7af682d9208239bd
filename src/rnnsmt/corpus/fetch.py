"""Download one corpus file, check its sha256 and put it in place whole.

The URL is tried first, then the mirrors in their order. A file that is already there with the right sum stays.
http(s), ftp and file URLs work.
"""

import argparse
import hashlib
import http.client
import re
import urllib.error
import urllib.request
from pathlib import Path

from rnnsmt.io import InputError, atomic_path
from rnnsmt.progress import Meter, say

BLOCK = 1 << 20
TIMEOUT = 60.0
"""Seconds without a byte until a server is given up."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The stage's options."""
    parser.add_argument("--url", required=True)
    parser.add_argument(
        "--mirror", nargs="+", action="extend", default=[], metavar="URL", help="other places of the same file"
    )
    parser.add_argument("--sha256", required=True, metavar="HEX", help='or "none", which is not checked')
    parser.add_argument("--output", required=True, metavar="FILE")


def run(args: argparse.Namespace) -> dict[str, object]:
    """Fetch one file."""
    expected = args.sha256.lower()
    if expected != "none" and not re.fullmatch("[0-9a-f]{64}", expected):
        raise InputError(f'--sha256 {args.sha256}: 64 hexadecimal digits or "none" are needed')
    output = Path(args.output)
    if expected != "none" and output.is_file() and sha256(output) == expected:
        return {"bytes": output.stat().st_size, "sha256": expected, "from": "the file that was there"}
    failures = []
    for url in [args.url, *args.mirror]:
        try:
            with atomic_path(output) as temporary:
                size, digest = download(url, temporary)
                if expected not in ("none", digest):
                    raise ValueError(f"its sha256 is {digest}, not {expected}")
            return {"bytes": size, "sha256": digest, "from": url}
        except (ValueError, urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
            failures.append(f"{url}: {error}")
            say(f"failed: {failures[-1]}")
    raise InputError(f"{output} could not be fetched; check the address and the sha256 ({'; '.join(failures)})")


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
