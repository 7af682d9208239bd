"""Archives of tuned systems as the argument of ``--system``: a file, or a URL with the SHA-256 of the file.

An archive is unpacked once into the cache of the user, in a directory named after its SHA-256. It may come from an
untrusted source. Therefore it must have one directory of the regular files in its ``SHA256SUMS``, without binary forms
(``*.binary.safetensors``), which the search would trust: the other files are text and networks, and are checked when
read. The hashes are those of the bytes that are unpacked: no file is hashed and then opened again.

The binary forms of the tables and LMs are then written beside the unpacked files, so that processes start without
reading text.
"""

import hashlib
import io
import math
import os
import re
import tarfile
import unicodedata
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from rnnsmt.base.errors import InputError
from rnnsmt.base.opening import decompressed, sha256
from rnnsmt.base.paths import StrPath
from rnnsmt.base.progress import say, warn
from rnnsmt.base.reading import read_lines
from rnnsmt.base.writing import TEMPORARY
from rnnsmt.corpus.download import TAR_DAMAGED, fetch_first, is_plain, open_tar
from rnnsmt.formats.binary_forms import SUFFIX as BINARY
from rnnsmt.registries import SEARCH_FEATURES

SUMS = "SHA256SUMS"
"""Name of the list of checksums in an archive, in the format of ``sha256sum``."""

CACHE = "RNNSMT_CACHE"
"""Environment variable for the directory of downloaded and unpacked archives."""

MOST_FILES = 1000
"""Maximum number of files in an archive."""

MOST_NAME = 255
"""Maximum number of bytes of a name, as on all usual file systems."""

BLOCK = 1 << 20
"""Number of bytes that are copied at a time."""


def cache_directory() -> Path:
    """Return the directory of unpacked archives: that of ``CACHE``, or ``rnnsmt`` in the cache of the user."""
    if configured := os.environ.get(CACHE):
        return Path(configured)
    home = os.environ.get("XDG_CACHE_HOME") or str(Path("~/.cache").expanduser())
    return Path(home) / "rnnsmt"


def system_directory(system: StrPath) -> Path:
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
        raise InputError(f"{address}: must be a directory, an archive, or an https:// or http:// URL")
    match = re.fullmatch(r"sha256=([0-9a-fA-F]{64})", fragment)
    if match is None:
        raise InputError(
            f"{address}: a URL requires the SHA-256 of the archive, as published: write {url}#sha256= "
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


class _HashedFile(io.FileIO):
    """A file with the SHA-256 of what was read from it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.digest = hashlib.sha256()

    def readinto(self, buffer: Any) -> int:
        """Read bytes into a buffer; return their number."""
        count = super().readinto(buffer) or 0
        self.digest.update(memoryview(buffer)[:count])
        return count


def _unpack(archive: Path, name: str, directory: Path) -> None:
    """Unpack the files of an archive into a directory, which is created atomically.

    Args:
        name: name of the archive in messages.
        directory: its name is the SHA-256 of the archive.
    """
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=TEMPORARY, dir=directory.parent) as temporary:
            unpacked = Path(temporary) / "files"
            unpacked.mkdir()
            hashed = _HashedFile(archive)
            with io.BufferedReader(hashed) as raw:
                with decompressed(raw, archive) as stream, open_tar(stream) as members:
                    digests = _extract(members, unpacked, name)
                    while stream.read(BLOCK) or raw.read(BLOCK):  # the rest, for the hash
                        pass
                if hashed.digest.hexdigest() != directory.name:
                    raise InputError(f"{name}: was changed while it was read; run the same command again")
            _check_sums(unpacked, digests, name)
            _check_networks(unpacked, name)
            try:
                unpacked.rename(directory)
            except OSError:
                if not directory.is_dir():  # otherwise another process has just unpacked it
                    raise
                return
    except InputError:
        raise
    except TAR_DAMAGED as error:
        raise InputError(
            f"{name}: damaged, or not an archive written by `rnnsmt pack` ({error}); download it again"
        ) from None
    except OSError as error:
        raise InputError(
            f"{directory.parent}: cannot unpack {name} into it ({error.strerror}); free disk space, or set {CACHE} to "
            "another directory"
        ) from None
    say(f"unpacked {name} into {directory}")
    _binarize(directory)


def _binarize(directory: Path) -> None:
    """Write the binary forms of an unpacked model into its directory, unless its ini names files elsewhere.

    Without them, for example after an interruption, the text files are read.
    """
    from rnnsmt.formats.ini import PHRASE_DICTIONARY, MosesIni
    from rnnsmt.search.model import binarize

    try:
        ini = MosesIni.read(directory / "moses.ini")
        texts = [one for one in ini.features if one.is_lm or one.kind in (PHRASE_DICTIONARY, "LexicalReordering")]
        if all(ini.located(text, directory).parent == directory for text in texts):
            binarize(ini, directory, directory)
    except (InputError, OSError, MemoryError) as error:
        warn(f"the binary files of {directory} are not written: {error}")


def _extract(members: tarfile.TarFile, directory: Path, name: str) -> dict[str, str]:
    """Write the files of an archive into a directory; return the SHA-256 of each by its name.

    Args:
        name: name of the archive in messages.
    """
    digests: dict[str, str] = {}
    tops: set[str] = set()
    folded: set[str] = set()  # names as file systems compare them that ignore case
    for member in members:
        top, *rest = PurePosixPath(member.name).parts or ("",)
        tops.add(top)
        if member.isdir() and not rest:
            continue
        if not is_plain(member) or len(rest) != 1 or ".." in (top, *rest) or top == "/" or len(tops) > 1:
            raise InputError(
                f"{name}: {member.name[:100]!r} is a link, a directory, a sparse file or outside of the one directory "
                "that `rnnsmt pack` writes; if you trust it, unpack it and specify the directory"
            )
        if rest[0].casefold().endswith(BINARY) or len(digests) == MOST_FILES:
            raise InputError(
                f"{name}: contains a binary model or more than {MOST_FILES:,} files, which `rnnsmt pack` does not "
                "write; if you trust it, unpack it and specify the directory"
            )
        key = unicodedata.normalize("NFC", rest[0]).casefold()
        if key in folded or len(os.fsencode(rest[0])) > MOST_NAME or not math.isfinite(member.mtime):
            raise ValueError(
                "a name is too long or occurs twice, also with other capital letters, or a time is not finite"
            )
        folded.add(key)
        content = members.extractfile(member)
        assert content is not None
        digest = hashlib.sha256()
        with content, (directory / rest[0]).open("xb") as out:
            while block := content.read(BLOCK):
                digest.update(block)
                out.write(block)
        digests[rest[0]] = digest.hexdigest()
    return digests


def _check_sums(directory: Path, digests: dict[str, str], name: str) -> None:
    """Check that unpacked files are those in their ``SUMS``, with these checksums.

    Args:
        digests: the SHA-256 of each file.
        name: name of the archive in messages.
    """
    if SUMS not in digests:
        raise InputError(f"{name}: not an archive written by `rnnsmt pack`, which has one directory with {SUMS}")
    lines = (directory / SUMS).read_bytes().decode("utf-8").split("\n")[:-1]
    listed = {called: digest for digest, _, called in (line.partition("  ") for line in lines)}
    for called, digest in digests.items():
        if called != SUMS and listed.pop(called, None) != digest:
            raise InputError(
                f"{name}: {called[:100]!r} does not have the checksum in {SUMS}; download the archive again"
            )
    if listed:
        raise InputError(f"{name}: {next(iter(listed))[:100]!r} in {SUMS} is missing; download the archive again")
    # under a name that this file system does not distinguish from it
    if any(file.name.casefold().endswith(BINARY) for file in directory.iterdir()):
        raise InputError(f"{name}: contains a binary model; if you trust it, unpack it and specify the directory")


def _check_networks(directory: Path, name: str) -> None:
    """Refuse networks of the search that are read by code of another package, which an archive must not load.

    name: name of the archive in messages.
    """
    try:
        words = [line.split() for line in read_lines(directory / "moses.ini")]
    except InputError:
        return  # no command reads such a model
    for kind in {line[0] for line in words if line}:
        if kind == kind.upper() and (package := SEARCH_FEATURES.package(kind.lower())):
            raise InputError(
                f"{name}: its feature {kind} is computed by code of the package {package}; if you trust the archive, "
                "unpack it and specify the directory"
            )
