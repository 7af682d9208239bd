"""Packing of a tuned system into one self-contained archive."""

import hashlib
import io
import json
import tarfile
from contextlib import nullcontext
from dataclasses import replace
from gzip import GzipFile
from pathlib import Path

from rnnsmt.base.io import InputError, atomic_path, sha256
from rnnsmt.moses.ini import NEURAL_MODELS, MosesIni
from rnnsmt.translation.system import FILE, INI, SUMS, Description

GZIP, PLAIN = (".tar.gz", ".tgz"), ".tar"

RNN_FILES = ("rnn.pt", "vocab.source.txt", "vocab.target.txt")
"""Names in the archive of the RNN Encoder-Decoder and its vocabularies."""


def pack_system(folder: Path, output: Path) -> dict[str, object]:
    """Write the archive of a tuned system; it has one directory, named like the archive without its extension.

    Args:
        folder: directory of the system.
        output: the archive, with one of the extensions ``GZIP`` or ``PLAIN``.

    Raises:
        InputError: ``folder`` is not that of a tuned system, a file is missing, two files have the same name, or the
            extension is unknown.
    """
    ending = next((ending for ending in (*GZIP, PLAIN) if output.name.endswith(ending)), "")
    name = output.name.removesuffix(ending)
    if not ending or name in ("", ".", ".."):
        raise InputError(f"--output {output}: give a name that ends in {', '.join(GZIP)} or {PLAIN}")
    about, ini = Description.read(folder), MosesIni.read(folder / INI)
    files: dict[str, Path] = {}

    def taken(path: Path, called: str) -> str:
        """Add a file to the archive under a name, and return the name."""
        if not path.is_file():
            raise InputError(f"{folder}: needs {path}, which is missing; run the workflow again")
        if called in files:
            raise InputError(f"{folder}: needs two files with the name {called}; rename one")
        files[called] = path
        return called

    for feature in ini.features:
        if "path" in feature.options:
            path = ini.located(feature)
            feature.options["path"] = taken(
                path, f"{feature.kind.lower()}.pt" if feature.kind in NEURAL_MODELS else path.name
            )
    packed = replace(
        about,
        truecaser=None if about.truecaser is None else taken(folder / about.truecaser, f"truecaser.{about.source}"),
        rnn=[taken(folder / path, called) for path, called in zip(about.rnn, RNN_FILES, strict=False)],
    )
    ini.folder = Path()
    texts = {INI: ini.text_for(Path()), FILE: json.dumps(packed.content(), indent=2, ensure_ascii=False) + "\n"}
    sums = {called: hashlib.sha256(text.encode("utf-8")).hexdigest() for called, text in texts.items()}
    sums |= {called: sha256(source) for called, source in files.items()}
    texts[SUMS] = "".join(f"{digest}  {called}\n" for called, digest in sums.items())
    with atomic_path(output) as path, path.open("wb") as stream:
        # reproducible: no times and no user names, so that the same system gives the same bytes
        packed_stream = GzipFile("", "wb", fileobj=stream, mtime=0) if ending in GZIP else nullcontext(stream)
        with packed_stream as inner, tarfile.open(fileobj=inner, mode="w", dereference=True) as archive:
            for called, text in texts.items():
                about_file = tarfile.TarInfo(f"{name}/{called}")
                about_file.size = len(text.encode("utf-8"))
                archive.addfile(about_file, io.BytesIO(text.encode("utf-8")))
            for called, source in files.items():
                archive.add(source, f"{name}/{called}", filter=_of_nobody)
    return {"files": len(files) + len(texts), "bytes": output.stat().st_size}


def _of_nobody(about_file: tarfile.TarInfo) -> tarfile.TarInfo:
    """Remove user and time from an archive member, and make it readable for everybody."""
    about_file.mtime = 0
    about_file.uid = about_file.gid = 0
    about_file.uname = about_file.gname = ""
    about_file.mode = 0o644
    return about_file
