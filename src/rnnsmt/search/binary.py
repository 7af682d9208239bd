"""Binary form of a model, ``model.binary`` beside its phrase table, shared by all processes of a machine.

The file holds the flat arrays that result from reading the tables and LMs as text. It is memory-mapped: a process
starts at once, and all processes share the pages in physical memory.

Layout: the first line has the version of the format, the length of the header in bytes and its SHA-256. The header is
JSON: byte order, the text files that the arrays were made from with their sizes, modification times and SHA-256, and
the arrays with their dtypes, shapes and offsets. Each array begins at a multiple of ``ALIGNMENT`` bytes.

The file is used only if it was made from the text files that the ini names. A text file is identified by its size and
modification time. If the time differs or is a whole number of seconds, as archives and some file systems store it, the
SHA-256 decides.
"""

import hashlib
import json
import mmap
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rnnsmt.base.io import InputError, atomic_binary, sha256
from rnnsmt.base.kernels.strings import Interner, InternTable
from rnnsmt.base.progress import say
from rnnsmt.lm.automaton import ROW, STATE, UNIGRAM, Automaton, LmArrays
from rnnsmt.search.table_reader import Affiliations, PhraseTable, ReorderingTable

NAME = "model.binary"

LARGE = 1 << 24
"""Bytes of a block that is allocated and freed once when a file is mapped.

glibc serves an allocation from its heap if it is at most as large as the largest mapped block freed so far (the dynamic
threshold of mallopt(3)), otherwise with new pages of the system. Reading text frees such blocks, mapping a file does
not; without this block every array of a sentence would be a new mapping."""

FORMAT = 1
"""Version of the format, to be increased if old files become unreadable: other arrays, other hash functions, or another
meaning of the values."""

ALIGNMENT = 64
"""Arrays begin at multiples of this number of bytes."""

_START = b"rnnsmt binary model "

_FIRST_LINE = re.compile(_START + rb"(\d{1,9}) (\d{1,12}) ([0-9a-f]{64})\n")

_LONGEST_FIRST_LINE = 128

_TICK = 50_000_000
"""Time in ns after which rewriting a file is sure to change its modification time."""


class ModelText(NamedTuple):
    """A text file of a model.

    Attributes:
        kind: kind of its feature.
        columns: number of score columns, 0 for an LM.
        path: the file.
        links: whether the model needs the word alignment of the phrase pairs in it.
    """

    kind: str
    columns: int
    path: Path
    links: bool = False


class ModelTables(NamedTuple):
    """Content of the text files of a model: pairs of all phrase tables, reordering table and n-gram LMs."""

    phrases: PhraseTable
    reordering: ReorderingTable
    lms: list[Automaton]


def make_binary(
    path: Path, texts: Sequence[ModelText], read: Callable[[Sequence[ModelText]], ModelTables]
) -> tuple[ModelTables, int]:
    """Read the text files of a model and write them atomically as one binary file.

    Args:
        path: the binary file.
        texts: the text files.
        read: function that reads the text files.

    Returns:
        The tables, and the size of the binary file in bytes.

    Raises:
        InputError: as ``read``; a text file was changed in the meantime; the file cannot be written.
    """
    before = [_state(text) for text in texts]
    hashes = [sha256(text.path) for text in texts]
    tables = read(texts)
    # wait until a later change of a text file cannot have the modification time that is recorded here
    age = time.time_ns() - max(changed for _, changed in before)
    if 0 <= age < _TICK:
        time.sleep((_TICK - age) / 1e9)
    for text, state in zip(texts, before, strict=True):
        if _state(text) != state:
            raise InputError(f"{text.path}: was changed while it was read; run the same command again")
    described = [
        {"kind": text.kind, "columns": text.columns, "name": text.path.name, "bytes": size, "mtime_ns": changed,
         "sha256": digest}
        for text, (size, changed), digest in zip(texts, before, hashes, strict=True)
    ]  # fmt: skip
    return tables, _write(path, described, tables)


def _state(text: ModelText) -> tuple[int, int]:
    """Return the size in bytes and the modification time in ns of a text file."""
    found = text.path.stat()
    return found.st_size, found.st_mtime_ns


def _write(path: Path, texts: list[dict[str, Any]], tables: ModelTables) -> int:
    arrays = dict(_arrays(tables))
    places, end = {}, 0
    for name, array in arrays.items():
        # relative to the aligned end of the header, whose length depends on the offsets in it
        places[name] = {"dtype": _type_of(array.dtype), "shape": array.shape, "offset": end}
        end = _aligned(end + array.nbytes)
    header = {
        "byte_order": sys.byteorder,
        "texts": texts,
        "longest_source": tables.phrases.longest_source,
        "lms": [{"order": lm.order, "start": lm.start, "unk": lm.unk, "end": lm.end} for lm in tables.lms],
        "arrays": places,
        "bytes": end,
    }
    content = json.dumps(header, ensure_ascii=False).encode("utf-8")
    digest = hashlib.sha256(content).hexdigest()
    first_line = b"%s%d %d %s\n" % (_START, FORMAT, len(content), digest.encode())
    with atomic_binary(path) as out:
        written = out.write(first_line) + out.write(content)
        for array in arrays.values():
            out.write(bytes(_aligned(written) - written))
            out.write(np.ascontiguousarray(array).view(np.uint8).data if array.size else b"")
            written = _aligned(written) + array.nbytes
        out.write(bytes(_aligned(written) - written))
    return path.stat().st_size


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _type_of(dtype: DTypeLike) -> object:
    """Return the JSON representation of a dtype; tuples of NumPy's description become lists."""
    return json.loads(json.dumps(np.lib.format.dtype_to_descr(np.dtype(dtype))))


def _arrays(tables: ModelTables) -> Iterator[tuple[str, NDArray[Any]]]:
    table = tables.phrases
    yield from _strings("sources", table.sources)
    yield from _strings("targets", table.targets)
    for name in ("source_of", "target_of", "log_scores", "table_of", "first"):
        yield f"pairs.{name}", getattr(table, name)
    if table.affiliations is not None:
        for name, array in table.affiliations._asdict().items():
            yield f"affiliations.{name}", array
    # many pairs have the same scores, e.g. those that were extracted once; store every distinct row once
    scores, numbers = np.unique(tables.reordering.log_scores, axis=0, return_inverse=True)
    yield "reordering.log_scores", scores
    yield "reordering.row_of", numbers.reshape(-1).astype(np.int32)[tables.reordering.row_of]
    for number, lm in enumerate(tables.lms):
        yield from _strings(f"lm{number}.words", lm.words)
        for name, array in lm.arrays._asdict().items():
            yield f"lm{number}.{name}", array


def _strings(name: str, strings: Interner) -> Iterator[tuple[str, NDArray[Any]]]:
    for part, array in strings.without_room()._asdict().items():
        if part != "size":
            yield f"{name}.{part}", array


def fitting_tables(folders: Iterable[Path], texts: Sequence[ModelText]) -> ModelTables | None:
    """Return the tables of the first binary file that was made from these text files, or None if there is none.

    Binary files that were made from other text files are reported in the log.

    Args:
        folders: directories to look in, in this order.
        texts: the text files.

    Raises:
        InputError: a binary file is damaged, incomplete, or was written by another version of this program.
    """
    for folder in dict.fromkeys(folders):
        path = folder / NAME
        if path.is_file():
            binary = _Binary(path)
            misfit = _misfit(binary.header, texts)
            if misfit is None:
                np.empty(LARGE, np.uint8)  # freed at once; see LARGE
                return binary.tables()
            say(f"warning: {path}: {misfit}; the text files are used instead; run rnnsmt search binarise, or remove it")
    return None


def _misfit(header: dict[str, Any], texts: Sequence[ModelText]) -> str | None:
    """Return the reason why a binary file with this header does not match ``texts``, None if it does."""
    described = header["texts"]
    if any(text.links for text in texts) and "affiliations.places" not in header["arrays"]:
        return "has no word alignment of the phrase pairs, which the joint model needs"
    if [(one["kind"], one["columns"]) for one in described] != [(text.kind, text.columns) for text in texts]:
        return "was made of other files than this moses.ini names"
    for one, text in zip(described, texts, strict=True):
        size, changed = _state(text)
        if size == one["bytes"] and changed == one["mtime_ns"] and changed % 1_000_000_000:
            continue
        if size != one["bytes"] or sha256(text.path) != one["sha256"]:
            return f"was not made of {text.path} as it is now"
    return None


class _Binary:
    """A memory-mapped binary file."""

    def __init__(self, path: Path) -> None:
        """Map a file; only its header is read.

        Raises:
            InputError: as ``fitting_tables``.
        """
        self.path = path
        with path.open("rb") as stream:
            size = path.stat().st_size
            start = stream.read(_LONGEST_FIRST_LINE)
            if not start.startswith(_START):
                raise self._unusable("is not a binary model")
            line = _FIRST_LINE.match(start)
            if line is not None and int(line[1]) != FORMAT:
                raise self._unusable(f"has the format {int(line[1])}, but this version of rnnsmt reads {FORMAT}")
            if line is None:
                raise self._unusable("is damaged in its first line")
            stream.seek(line.end())
            content = stream.read(int(line[2]))
            if hashlib.sha256(content).hexdigest().encode() != line[3]:
                raise self._unusable("is damaged in its header, or not complete")
            self.header = json.loads(content)
            self._begin = _aligned(line.end() + len(content))
            if self.header["byte_order"] != sys.byteorder:
                raise self._unusable("was made on a machine with another byte order")
            if size != self._begin + self.header["bytes"]:
                raise self._unusable(f"is not complete: {size:,} of {self._begin + self.header['bytes']:,} bytes")
            # kernels are compiled for writeable arrays, so the mapping is copy-on-write; pages that are never written
            # stay shared between processes, and need no swap reserve
            flags = mmap.MAP_PRIVATE | getattr(mmap, "MAP_NORESERVE", 0)
            self._map = mmap.mmap(stream.fileno(), size, flags, mmap.PROT_READ | mmap.PROT_WRITE)

    def _unusable(self, why: str) -> InputError:
        return InputError(
            f"{self.path}: {why}; run rnnsmt search binarise again, or remove the file to use the text files"
        )

    def tables(self) -> ModelTables:
        """Return the tables, whose arrays are views of the mapped file."""
        array, numbers = self._array, self.header
        phrases = PhraseTable(
            self._strings("sources"),
            self._strings("targets"),
            array("pairs.source_of", np.int32),
            array("pairs.target_of", np.int32),
            array("pairs.log_scores", np.float64),
            array("pairs.table_of", np.int8),
            array("pairs.first", np.int64),
            numbers["longest_source"],
        )
        if "affiliations.places" in numbers["arrays"]:
            phrases.affiliations = Affiliations(
                array("affiliations.bounds", np.int64), array("affiliations.places", np.int8)
            )
        reordering = ReorderingTable(array("reordering.log_scores", np.float64), array("reordering.row_of", np.int32))
        lms = []
        for number, lm in enumerate(numbers["lms"]):
            types = (("rows", ROW), ("states", STATE), ("unigrams", UNIGRAM))
            arrays = LmArrays(*(array(f"lm{number}.{name}", dtype) for name, dtype in types))
            words = self._strings(f"lm{number}.words")
            lms.append(Automaton(arrays, words, lm["order"], lm["start"], lm["unk"], lm["end"]))
        return ModelTables(phrases, reordering, lms)

    def _array(self, name: str, dtype: DTypeLike) -> NDArray[Any]:
        place = self.header["arrays"][name]
        if place["dtype"] != _type_of(dtype):
            raise self._unusable(f"has {name} as {place['dtype']}")
        shape = tuple(place["shape"])
        if not prod(shape):
            return np.zeros(shape, dtype)
        found = np.frombuffer(self._map, dtype, prod(shape), self._begin + place["offset"])
        return found.reshape(shape)

    def _strings(self, name: str) -> Interner:
        hashes = self._array(f"{name}.hashes", np.uint64)
        return Interner.of(
            InternTable(
                self._array(f"{name}.slots", np.int32),
                hashes,
                self._array(f"{name}.offsets", np.int64),
                self._array(f"{name}.arena", np.uint8),
                np.array([len(hashes)], np.int64),
            )
        )
