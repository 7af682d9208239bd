"""Packing of a tuned system into one self-contained archive.

A system from an untrusted source can name any file of this machine, or contain links to it. Therefore, every file is
checked to be of the kind that the system requires, so that private files do not get into an archive that is published.
"""

import hashlib
import io
import json
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from gzip import GzipFile
from pathlib import Path

from rnnsmt.base.io import InputError, atomic_path, check_utf8, read_whole, sha256
from rnnsmt.base.progress import say
from rnnsmt.corpus.tokenizer import Truecaser
from rnnsmt.lm.arpa import check_header
from rnnsmt.moses.ini import LANGUAGE_MODELS, NEURAL_MODELS, PHRASE_DICTIONARY, Feature, feature_count
from rnnsmt.networks.data import Vocabulary
from rnnsmt.phrases.table import read_phrase_table, read_reordering_table
from rnnsmt.translation.system import CARD, FILE, INI, SUMS, Description, read_ini

GZIP, PLAIN = (".tar.gz", ".tgz"), ".tar"

RNN_FILES = ("rnn.safetensors", "vocab.source.txt", "vocab.target.txt")
"""Names in the archive of the RNN Encoder-Decoder and its vocabularies."""


Check = Callable[[Path], object]
"""Function that raises ``InputError`` for a file of another kind."""


MOST_CARD_BYTES = 1 << 20
"""Maximum size of the model card of a system."""


def pack_system(directory: Path, output: Path, card: str | None = None) -> dict[str, object]:
    """Write the archive of a tuned system; it has one directory, named like the archive without its extension.

    Args:
        directory: directory of the system.
        output: the archive, with one of the extensions ``GZIP`` or ``PLAIN``.
        card: text of its ``MODEL_CARD.md``; None to pack the file of this name in the directory, if there is one.

    Raises:
        InputError: ``directory`` is not that of a tuned system, a file is missing or not of the kind that the system
            requires, two files have the same name, or the extension is unknown.
    """
    ending = next((ending for ending in (*GZIP, PLAIN) if output.name.endswith(ending)), "")
    name = output.name.removesuffix(ending)
    if not ending or name in ("", ".", ".."):
        raise InputError(f"--output {output}: the name must end in {', '.join(GZIP)} or {PLAIN}")
    description, ini = Description.read(directory), read_ini(directory)
    description.print_warnings()
    files: dict[str, Path] = {}

    def taken(path: Path, called: str, check: Check) -> str:
        """Check a file, add it to the archive under a name, and return the name."""
        if not path.is_file():
            raise InputError(f"{directory}: requires {path}, which is missing; run the workflow again")
        if called in files:
            raise InputError(f"{directory}: the system has two files with the name {called}; rename one")
        check(path)
        if path.is_symlink():
            say(f"{path} is a link; packing the content of {path.resolve()}")
        files[called] = path
        return called

    for feature in ini.features:
        if "path" in feature.options:
            path = ini.located(feature)
            called = f"{feature.kind.lower()}.safetensors" if feature.kind in NEURAL_MODELS else path.name
            feature.options["path"] = taken(path, called, _check_of(feature, str(ini.path)))
    packed = replace(
        description,
        truecaser=None
        if description.truecaser is None
        else taken(directory / description.truecaser, f"truecaser.{description.source}", Truecaser),
        rnn=[
            taken(directory / path, called, check)
            for path, called, check in zip(
                description.rnn, RNN_FILES, (_check_network, Vocabulary.read, Vocabulary.read), strict=False
            )
        ],
    )
    ini.directory = Path()
    texts = {INI: ini.text_for(Path()), FILE: json.dumps(packed.content(), indent=2, ensure_ascii=False) + "\n"}
    if card is not None:
        texts[CARD] = card
    elif (directory / CARD).exists():
        taken(directory / CARD, CARD, _check_card)
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


def _check_of(feature: Feature, where: str) -> Check:
    """Return the check of the file of a feature. where: path of the ini."""
    if feature.kind in LANGUAGE_MODELS:
        return check_header
    if feature.kind in NEURAL_MODELS:
        return _check_network
    read = read_phrase_table if feature.kind == PHRASE_DICTIONARY else read_reordering_table
    return partial(_check_first_line, read, feature_count(feature, where))


def _check_first_line(read: Callable[[Path, int], Iterator[object]], scores: int, path: Path) -> None:
    """Check the first line of a table with ``read``; an empty table is accepted."""
    next(read(path, scores), None)


def _check_network(path: Path) -> None:
    """Check that a file was written by ``torch.save``.

    Raises:
        InputError: the file was not written by ``torch.save``.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, RuntimeError):
        names = []
    if not any(name.endswith("/data.pkl") for name in names):
        raise InputError(f"{path}: not a network model file; train the network again")


def _check_card(path: Path) -> None:
    """Check that a file is a UTF-8 text of at most ``MOST_CARD_BYTES`` and not a symbolic link.

    Raises:
        InputError: the file is too large, a link, or not UTF-8.
    """
    if path.is_symlink() or (text := read_whole(path, MOST_CARD_BYTES)) is None:
        raise InputError(f"{path}: is a link, or larger than {MOST_CARD_BYTES:,} bytes; replace it with a short text")
    check_utf8(text, path, 0)


def _of_nobody(about_file: tarfile.TarInfo) -> tarfile.TarInfo:
    """Remove user and time from an archive member, and make it readable for all users."""
    about_file.mtime = 0
    about_file.uid = about_file.gid = 0
    about_file.uname = about_file.gname = ""
    about_file.mode = 0o644
    return about_file
