"""Archives of tuned systems as the argument of ``--system``: a file, or a URL with the SHA-256 of the file.

An archive is unpacked once into the cache of the user, in a directory named after its SHA-256. It may come from an
untrusted source. Therefore it must have one directory of the regular files in its ``SHA256SUMS``, without a
``model.binary``, which the search would trust: the other files are text and safetensors, and are checked when read.
"""

import os
import re
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

from rnnsmt.base.io import TEMPORARY, InputError, open_binary, read_lines, sha256
from rnnsmt.base.progress import say
from rnnsmt.corpus.download import fetch_first
from rnnsmt.search.binary import NAME as BINARY

SUMS = "SHA256SUMS"
"""Name of the list of checksums in an archive, in the format of ``sha256sum``."""

CACHE = "RNNSMT_CACHE"
"""Environment variable for the directory of downloaded and unpacked archives."""


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
        name: name of the archive in messages.
    """
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=TEMPORARY, dir=directory.parent) as temporary:
            with open_binary(archive) as stream, tarfile.open(fileobj=stream, mode="r|") as members:
                members.extractall(temporary, filter="data")
            found = list(Path(temporary).iterdir())
            if len(found) != 1 or not (found[0] / SUMS).is_file():
                raise InputError(
                    f"{name}: not an archive written by `rnnsmt pack`, which has one directory with {SUMS}"
                )
            check_sums(found[0], name)
            try:
                found[0].rename(directory)
            except OSError:
                if not directory.is_dir():  # otherwise another process has just unpacked it
                    raise
    except InputError:
        raise
    except (tarfile.TarError, ValueError) as error:
        raise InputError(
            f"{name}: damaged, or not an archive written by `rnnsmt pack` ({error}); download it again"
        ) from None
    except OSError as error:
        raise InputError(
            f"{directory.parent}: cannot unpack {name} into it ({error.strerror}); free disk space, or set {CACHE} to "
            "another directory"
        ) from None
    say(f"unpacked {name} into {directory}")


def check_sums(directory: Path, name: str) -> None:
    """Check that a directory has exactly the regular files in its ``SUMS``, with these checksums.

    Args:
        name: name of the archive in messages.
    """
    digests = {called: digest for digest, _, called in (line.partition("  ") for line in read_lines(directory / SUMS))}
    for path in directory.iterdir():
        if path.is_symlink() or not path.is_file() or path.name == BINARY:
            raise InputError(
                f"{name}: {path.name} is a link, a directory or a binary model, which `rnnsmt pack` does not write; "
                "if you trust it, unpack it and specify the directory"
            )
        if path.name != SUMS and digests.pop(path.name, None) != sha256(path):
            raise InputError(f"{name}: {path.name} does not have the checksum in {SUMS}; download the archive again")
    if digests:
        raise InputError(f"{name}: {next(iter(digests))} in {SUMS} is missing; download the archive again")
