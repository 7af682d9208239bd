"""Packing of a tuned system into one self-contained archive: text tables, ARPA files, vocabularies and safetensors."""

import hashlib
import io
import json
import tarfile
from contextlib import nullcontext
from dataclasses import replace
from gzip import GzipFile
from pathlib import Path

from rnnsmt.base.errors import InputError
from rnnsmt.base.opening import sha256
from rnnsmt.base.writing import atomic_path
from rnnsmt.formats.ini import LANGUAGE_MODELS
from rnnsmt.lm.arpa import check_header
from rnnsmt.translation.archives import SUMS
from rnnsmt.translation.description import CARD, FILE, INI, Description, read_ini

GZIP, PLAIN = (".tar.gz", ".tgz"), ".tar"

RNN_FILES = ("rnn.safetensors", "vocab.source.txt", "vocab.target.txt")
"""Names in the archive of the RNN Encoder-Decoder and its vocabularies."""


def pack_system(directory: Path, output: Path, card: str | None = None) -> dict[str, object]:
    """Write the archive of a tuned system; it has one directory, named like the archive without its extension.

    Args:
        output: the archive, with one of the extensions ``GZIP`` or ``PLAIN``.
        card: text of its ``MODEL_CARD.md``; None to pack the file of this name in the directory, if there is one.
    """
    ending = next((ending for ending in (*GZIP, PLAIN) if output.name.endswith(ending)), "")
    name = output.name.removesuffix(ending)
    if not ending or name in ("", ".", ".."):
        raise InputError(f"--output {output}: the name must end in {', '.join(GZIP)} or {PLAIN}")
    description, ini = Description.read(directory), read_ini(directory)
    description.check_tokenizer(directory)
    description.print_warnings()
    files: dict[str, Path] = {}

    def taken(path: Path, called: str) -> str:
        """Add a file to the archive under a name, and return the name."""
        if not path.is_file():
            raise InputError(f"{directory}: requires {path}, which is missing; run the workflow again")
        if called in files:
            raise InputError(f"{directory}: the system has two files with the name {called}; rename one")
        files[called] = path
        return called

    for feature in ini.features:
        if "path" in feature.options:
            path = ini.located(feature)
            if feature.kind in LANGUAGE_MODELS:
                check_header(path)
            called = path.name if feature.network is None else f"{feature.network}.safetensors"
            feature.options["path"] = taken(path, called)
    truecaser = description.truecaser
    packed = replace(
        description,
        truecaser=None if truecaser is None else taken(directory / truecaser, f"truecaser.{description.source}"),
        rnn=[taken(directory / path, called) for path, called in zip(description.rnn, RNN_FILES, strict=False)],
    )
    ini.directory = Path()
    texts = {INI: ini.text_for(Path()), FILE: json.dumps(packed.content(), indent=2, ensure_ascii=False) + "\n"}
    if card is not None:
        texts[CARD] = card
    elif (directory / CARD).exists():
        taken(directory / CARD, CARD)
    sums = {called: hashlib.sha256(text.encode("utf-8")).hexdigest() for called, text in texts.items()}
    sums |= {called: sha256(source) for called, source in files.items()}
    texts[SUMS] = "".join(f"{digest}  {called}\n" for called, digest in sums.items())
    with atomic_path(output) as path, path.open("wb") as stream:
        # reproducible: without times and user names, the same system gives the same bytes
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
    """Remove user and time from an archive member, and make it readable for all users."""
    about_file.mtime = 0
    about_file.uid = about_file.gid = 0
    about_file.uname = about_file.gname = ""
    about_file.mode = 0o644
    return about_file
