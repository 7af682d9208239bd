"""Take one file out of a tar archive (plain, .gz, .bz2 or .xz), as the corpora of WMT come.

The archive is read from its beginning to the file that is wanted, and nothing else of it is written anywhere. A file
that is compressed inside the archive stays compressed.
"""

import argparse
import difflib
import lzma
import shutil
import tarfile
import zlib
from pathlib import Path

from rnnsmt.io import InputError, atomic_path, open_binary

_DAMAGED = (tarfile.TarError, EOFError, OSError, lzma.LZMAError, zlib.error)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``rnnsmt corpus unpack``."""
    parser.add_argument("--archive", required=True, metavar="FILE")
    parser.add_argument("--member", required=True, metavar="PATH", help="the file inside the archive")
    parser.add_argument("--output", required=True, metavar="FILE")


def run(args: argparse.Namespace) -> dict[str, object]:
    """Find the file and copy it."""
    open_binary(args.archive).close()  # a missing file is one sentence, here as everywhere
    seen: list[str] = []
    with atomic_path(args.output) as temporary:
        try:
            size = _take(args.archive, args.member, temporary, seen)
        except _DAMAGED as error:
            if isinstance(error, OSError) and error.errno is not None and not isinstance(error, tarfile.TarError):
                raise
            raise InputError(
                f"{args.archive}: not a tar archive, or damaged after {len(seen)} file(s) ({error}); fetch it again"
            ) from None
        if size is None:
            near = difflib.get_close_matches(args.member, seen, 1)
            hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(seen[:5]) or 'no files'}"
            raise InputError(f"{args.archive}: no file {args.member} in it; {hint}")
    return {"bytes": size, "files passed": len(seen) - 1}


def _take(path: str, wanted: str, output: Path, seen: list[str]) -> int | None:
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
