"""Extraction of a single file from a tar archive, such as those of the WMT corpora, without unpacking the rest."""

import difflib
import lzma
import shutil
import tarfile
import zlib
from pathlib import Path, PurePosixPath

from rnnsmt.base.io import InputError, atomic_path, open_binary


def extract_member(path: str, wanted: str, output: str) -> tuple[int, int]:
    """Copy one file of a tar archive; the archive is not read beyond it.

    Args:
        path: the archive.
        wanted: name of the file in the archive.
        output: the copy.

    Returns:
        Size of the file in bytes, and number of members before it.

    Raises:
        InputError: the archive is missing or damaged; it has no such file; the member is a link, a directory or a
            device; or the name leads out of the archive.
    """
    if PurePosixPath(wanted).is_absolute() or ".." in PurePosixPath(wanted).parts:
        raise InputError(
            f"--member {wanted}: is outside the archive; give a name without .. that does not begin with /"
        )
    open_binary(path).close()  # raises InputError if the file is missing
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
"""Exceptions of tarfile and the decompressors for damaged files."""


def _copy_member(path: str, wanted: str, output: Path, seen: list[str]) -> int | None:
    """Copy a file of the archive; return its size, or None if it is not found. Names are appended to ``seen``."""
    with tarfile.open(path, "r|*") as archive:
        for member in archive:
            seen.append(member.name)
            if _plain(member.name) != _plain(wanted):
                continue
            stream = archive.extractfile(member) if member.isreg() else None
            if stream is None:
                raise InputError(f"{path}: {wanted} is {_kind(member)}, not a file; give another member")
            with output.open("wb") as out:
                shutil.copyfileobj(stream, out, 1 << 20)
            return member.size
    return None


def _kind(member: tarfile.TarInfo) -> str:
    """Describe a member that is not a regular file."""
    if member.issym() or member.islnk():
        return f"a link to {member.linkname}"
    return "a directory" if member.isdir() else "a device or a pipe"


def _plain(name: str) -> str:
    return name.removeprefix("./")
