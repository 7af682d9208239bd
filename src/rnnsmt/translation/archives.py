"""Archives of tuned systems as the argument of ``--system``: a file, or a URL with the SHA-256 of the file.

An archive is unpacked once into the cache of the user, in a directory named after its SHA-256. An archive may come from
an untrusted source. Therefore, only members as written by ``rnnsmt pack`` are accepted: regular files in one directory.
"""

import os
import re
import shutil
import tarfile
import tempfile
from pathlib import Path, PurePosixPath

from rnnsmt.base.io import DAMAGED, TEMPORARY, DamagedError, InputError, open_binary, sha256
from rnnsmt.base.progress import say
from rnnsmt.corpus.download import fetch_first

CACHE = "RNNSMT_CACHE"
"""Environment variable for the directory of downloaded and unpacked archives."""

MOST_FILES = 1000
"""Maximum number of files of an archive."""


def cache_directory() -> Path:
    """Return the directory of unpacked archives: that of ``CACHE``, or ``rnnsmt`` in the cache of the user."""
    if configured := os.environ.get(CACHE):
        return Path(configured)
    home = os.environ.get("XDG_CACHE_HOME") or str(Path("~/.cache").expanduser())
    return Path(home) / "rnnsmt"


def system_directory(system: str | Path) -> Path:
    """Return the directory of a tuned system, after downloading and unpacking it if necessary.

    Args:
        system: a directory, which is returned; an archive of ``rnnsmt pack``; or ``https://HOST/FILE#sha256=DIGEST``,
            which is downloaded unless the cache contains an archive of this digest.

    Raises:
        InputError: the URL has no SHA-256 or another protocol, the download failed, the SHA-256 differs, or the file is
            not an archive of a system.
    """
    if re.match(r"[a-zA-Z][a-zA-Z0-9+.-]+://", str(system)):
        return _downloaded(str(system))
    path = Path(system)
    if not path.is_file():
        return path
    digest = sha256(path)
    directory = cache_directory() / digest
    if not directory.is_dir():
        _unpack(path, str(path), directory)
    return directory


def _downloaded(address: str) -> Path:
    """Return the cache directory of the archive at a URL."""
    url, _, fragment = address.partition("#")
    if not re.match(r"https?://", url, re.IGNORECASE):
        raise InputError(f"--system {address}: must be a directory, an archive, or an https:// or http:// URL")
    match = re.fullmatch(r"sha256=([0-9a-fA-F]{64})", fragment)
    if match is None:
        raise InputError(
            f"--system {address}: a URL requires the SHA-256 of the archive, as published: write {url}#sha256= "
            "and 64 hexadecimal digits"
        )
    digest = match[1].lower()
    directory = cache_directory() / digest
    if directory.is_dir():
        return directory
    archive = directory.with_name(f"{digest}.tar")
    say(f"downloading {url} to {cache_directory()}")
    fetch_first([url], digest, archive)
    _unpack(archive, url, directory)
    archive.unlink(missing_ok=True)
    return directory


def _unpack(archive: Path, name: str, directory: Path) -> None:
    """Unpack the files of an archive into a directory, which is created atomically.

    Args:
        archive: the file.
        name: name of the archive in messages.
        directory: the directory.

    Raises:
        InputError: the archive is damaged or not one of ``rnnsmt pack``, or there is not enough disk space.
    """
    temporary = None
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=TEMPORARY, dir=directory.parent))
        _extract(archive, name, temporary)
        temporary.chmod(0o755)
        say(f"unpacked {name} into {directory}")
        try:
            temporary.replace(directory)
        except OSError:
            if not directory.is_dir():  # otherwise another process has just unpacked it
                raise
    except (tarfile.TarError, *DAMAGED) as error:
        if isinstance(error, OSError) and error.errno is not None and not isinstance(error, tarfile.TarError):
            raise InputError(
                f"{directory.parent}: cannot unpack {name} into it ({error.strerror}); free disk space, or set "
                f"{CACHE} to "
                "another directory"
            ) from None
        reason = error.__cause__ if isinstance(error, DamagedError) else error
        raise InputError(
            f"{name}: damaged, or not an archive written by `rnnsmt pack` ({reason}); download it again"
        ) from None
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


def _extract(archive: Path, name: str, directory: Path) -> None:
    """Write the files of an archive into an existing directory, without the directory part of their names."""
    seen: set[tuple[str, ...]] = set()
    with open_binary(archive) as stream, tarfile.open(fileobj=stream, mode="r|") as members:
        for member in members:
            parts = PurePosixPath(member.name).parts
            content = members.extractfile(member) if member.type in (tarfile.REGTYPE, tarfile.AREGTYPE) else None
            if (
                content is None
                or len(parts) != 2
                or ".." in parts
                or parts[0] == "/"
                or "\0" in member.name
                or parts in seen
                or any(parts[0] != other[0] for other in seen)
                or len(seen) == MOST_FILES
            ):
                raise InputError(
                    f"{name}: {member.name!r} is not part of an archive written by `rnnsmt pack`, which has one "
                    f"directory with at most {MOST_FILES} files; if you trust it, unpack it and specify the directory"
                )
            seen.add(parts)
            with (directory / parts[1]).open("xb") as out:
                shutil.copyfileobj(content, out, 1 << 20)
    if not seen:
        raise InputError(f"{name}: empty archive; download it again")
