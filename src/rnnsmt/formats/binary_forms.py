"""Binary forms of the text files of a model: ``NAME.binary.safetensors`` beside, or in place of, ``NAME.gz``.

One binary form contains the phrase table and the scores of the reordering table (``rnnsmt.phrases.table``); each n-gram
LM has another one (``rnnsmt.lm.automaton_file``). Binary forms are mapped into memory: a process starts immediately,
and all processes on a machine share the pages.

Binary forms are local files, trusted like the text files beside them, and are never packed or downloaded.

A binary form that was created from text files is used only if the text files have not changed. A text file is
identified by its size and modification time. If the time differs or is a whole number of seconds, as archives and some
file systems store it, the SHA-256 is compared instead. Missing text files are not compared, because a job may have only
the binary form. Text files are not compared either if the binary form is a table that `phrases select` selected.
"""

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from rnnsmt.base.opening import sha256
from rnnsmt.base.progress import warn

SUFFIX = ".binary.safetensors"

REMEDY = "create it again with `rnnsmt search binarize`, or remove it to use the text file"

LARGE = 1 << 24
"""Size in bytes of a block that is allocated and freed once when a file is mapped.

glibc serves an allocation from its heap if it is at most as large as the largest mapped block freed so far (the dynamic
threshold of mallopt(3)), otherwise by a new memory mapping. Reading a text file frees large blocks, but mapping a
binary file does not; without this block, every array of a sentence would be a new memory mapping."""


def binary_name(path: Path) -> str:
    """Return the name of the binary form of a text file, without its suffixes ``.arpa``, ``.gz``, ``.bz2``, ``.xz``."""
    return re.sub(r"(\.arpa)?(\.(gz|bz2|xz))?$", "", path.name) + SUFFIX


def describe_texts(paths: Iterable[Path]) -> str:
    """Return names, sizes, modification times and SHA-256 of text files, as JSON.

    Call this before the files are read, so that changes made in the meantime are detected.
    """
    described = []
    for path in paths:
        status = path.stat()
        described.append(
            {"name": path.name, "bytes": status.st_size, "mtime_ns": status.st_mtime_ns, "sha256": sha256(path)}
        )
    return json.dumps(described, ensure_ascii=False)


def changed_text(description: str, paths: Sequence[Path]) -> str | None:
    """Return why a binary form does not match the text files ``paths``, or None if it does.

    Args:
        description: result of ``describe_texts`` that is stored in the binary form; empty if there were no text files.
    """
    described = json.loads(description) if description else []
    if described and len(described) != len(paths):
        return "was created from other files than those of this moses.ini"
    for entry, path in zip(described, paths, strict=False):
        if not path.is_file():
            continue
        status = path.stat()
        same_size, same_time = status.st_size == entry["bytes"], status.st_mtime_ns == entry["mtime_ns"]
        if same_size and same_time and status.st_mtime_ns % 1_000_000_000:
            continue
        if not same_size or sha256(path) != entry["sha256"]:
            return f"was created before {path} was changed"
    return None


def refuse_form(path: Path, reason: str) -> None:
    """Log a warning that a binary form is not used."""
    warn(f"{path}: {reason}; using the text files instead; run `rnnsmt search binarize`, or remove it")


def free_large_block() -> None:
    """Allocate and free a large block after a file was mapped; see ``LARGE``."""
    np.empty(LARGE, np.uint8)  # freed immediately
