"""Binary forms of the text files of a model: ``NAME.binary.safetensors`` beside, or in place of, ``NAME.gz``.

There is one for the phrase table, which has the reordering scores too (``rnnsmt.phrases.table``), and one for each
n-gram LM (``rnnsmt.lm.automaton_file``). They are mapped into memory: a process starts immediately, and all processes
on a machine share the pages.

They are local files, trusted like the text files beside them, and are never packed or downloaded.

A binary form that was read from text files is used only if it fits them. A text file is identified by its size and
modification time. If the time differs or is a whole number of seconds, as archives and some file systems store it, the
SHA-256 is compared instead. A text file that is not there is not compared: a job may have the binary form only. Neither
are those of a table that was selected from a store of phrase pairs (`phrases select`).
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
"""Bytes of a block that is allocated and freed once when a file is mapped.

glibc serves an allocation from its heap if it is at most as large as the largest mapped block freed so far (the dynamic
threshold of mallopt(3)), otherwise with a new memory mapping. Reading text frees large blocks, mapping a file does not;
without this block, every array of a sentence would be a new memory mapping."""


def binary_name(path: Path) -> str:
    """Return the name of the binary form of a text file: without ``.gz``, ``.bz2``, ``.xz`` and ``.arpa``."""
    return re.sub(r"(\.arpa)?(\.(gz|bz2|xz))?$", "", path.name) + SUFFIX


def describe_texts(paths: Iterable[Path]) -> str:
    """Return a description of text files, before they are read: it does not fit those that are changed meanwhile."""
    described = []
    for path in paths:
        status = path.stat()
        described.append(
            {"name": path.name, "bytes": status.st_size, "mtime_ns": status.st_mtime_ns, "sha256": sha256(path)}
        )
    return json.dumps(described, ensure_ascii=False)


def changed_text(description: str, paths: Sequence[Path]) -> str | None:
    """Return why a binary form with this description does not fit the text files ``paths``; None if it does."""
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
    """Report a binary form that is not used."""
    warn(f"{path}: {reason}; using the text files instead; run `rnnsmt search binarize`, or remove it")


def free_large_block() -> None:
    """Allocate and free a large block, after a file was mapped; see ``LARGE``."""
    np.empty(LARGE, np.uint8)  # freed immediately
