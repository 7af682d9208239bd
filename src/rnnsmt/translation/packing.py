"""A tuned system in one archive, whose files lead nowhere else."""

import io
import json
import tarfile
from contextlib import nullcontext
from dataclasses import replace
from gzip import GzipFile
from pathlib import Path

from rnnsmt.io import InputError, atomic_path
from rnnsmt.moses.ini import NEURAL_MODELS, MosesIni
from rnnsmt.translation.system import FILE, INI, Description

GZIP, PLAIN = (".tar.gz", ".tgz"), ".tar"

RNN_FILES = ("rnn.pt", "vocab.source.txt", "vocab.target.txt")


def pack_system(folder: Path, output: Path) -> dict[str, object]:
    """Write the archive; it has one folder, called as the archive without its ending.

    Raises:
        InputError: no folder of a tuned system, a file that it names is missing, two of one name, an unknown ending.
    """
    ending = next((ending for ending in (*GZIP, PLAIN) if output.name.endswith(ending)), "")
    name = output.name.removesuffix(ending)
    if not ending or name in ("", ".", ".."):
        raise InputError(f"--output {output}: give a name that ends in {', '.join(GZIP)} or {PLAIN}")
    about, ini = Description.read(folder), MosesIni.read(folder / INI)
    files: dict[str, Path] = {}

    def taken(path: Path, called: str) -> str:
        """The name in the archive of a file that goes into it."""
        if not path.is_file():
            raise InputError(f"{folder}: needs {path}, which is missing; run the workflow again")
        if called in files:
            raise InputError(f"{folder}: needs two files called {called}; rename one")
        files[called] = path
        return called

    for feature in ini.features:
        if "path" in feature.options:
            path = ini.located(feature)
            feature.options["path"] = taken(path, "cslm.pt" if feature.kind in NEURAL_MODELS else path.name)
    packed = replace(
        about,
        truecaser=None if about.truecaser is None else taken(folder / about.truecaser, f"truecaser.{about.source}"),
        rnn=[taken(folder / path, called) for path, called in zip(about.rnn, RNN_FILES, strict=False)],
    )
    ini.folder = Path()
    texts = {INI: ini.text_for(Path()), FILE: json.dumps(packed.content(), indent=2, ensure_ascii=False) + "\n"}
    with atomic_path(output) as path, path.open("wb") as stream:
        # the same system gives the same bytes: no times, no names of users
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
    """Without the user's name and the time, readable for everybody."""
    about_file.mtime = 0
    about_file.uid = about_file.gid = 0
    about_file.uname = about_file.gname = ""
    about_file.mode = 0o644
    return about_file
