"""Binary form of a model, ``model.binary`` in the directory of its phrase table, shared by all processes of a machine.

The file contains the flat arrays that result from reading the tables and LMs as text. It is memory-mapped: a process
starts immediately, and all processes share the pages in physical memory.

Layout: the first line has the version of the format, the length of the header and that of the arrays in bytes. The
header is JSON: the text files that the arrays were made from with their sizes, modification times and SHA-256, and the
arrays with their shapes and offsets. Each array begins at a multiple of ``ALIGNMENT`` bytes.

The file is a local one: it is trusted like the text files beside it, and is never packed or downloaded.

The file is used only if it was made from the text files that the ini names. A text file is identified by its size and
modification time. If the time differs or is a whole number of seconds, as archives and some file systems store it, the
SHA-256 is compared instead.
"""

import json
import mmap
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rnnsmt.base.arrays import release_pages
from rnnsmt.base.errors import InputError
from rnnsmt.base.kernels.strings import Interner, InternTable
from rnnsmt.base.opening import sha256
from rnnsmt.base.progress import warn
from rnnsmt.base.writing import atomic_binary
from rnnsmt.lm.automaton import ROW, STATE, UNIGRAM, Automaton, LmArrays
from rnnsmt.search.phrase_pairs import Affiliations, PhraseTable, ReorderingTable

NAME = "model.binary"

LARGE = 1 << 24
"""Bytes of a block that is allocated and freed once when a file is mapped.

glibc serves an allocation from its heap if it is at most as large as the largest mapped block freed so far (the dynamic
threshold of mallopt(3)), otherwise with a new memory mapping. Reading text frees large blocks, mapping a file does not;
without this block, every array of a sentence would be a new memory mapping."""

FORMAT = 6
"""Version of the format, to be increased if old files become unreadable: other arrays, other hash functions, or another
meaning of the values."""

ALIGNMENT = 64
"""Arrays begin at multiples of this number of bytes."""

_START = b"rnnsmt binary model "

_FIRST_LINE = re.compile(_START + rb"(\d+) (\d+) (\S+)\n")


class ModelText(NamedTuple):
    """A text file of a model.

    Attributes:
        kind: kind of its feature.
        columns: number of score columns, 0 for an LM.
        links: whether the model needs the word alignment of the phrase pairs in it.
    """

    kind: str
    columns: int
    path: Path
    links: bool = False


class ModelTables(NamedTuple):
    """Content of the text files of a model: phrase pairs, reordering table and n-gram LMs.

    release: function that unmaps the pages of a binary file that were read so far; later reads map them again.
    """

    phrases: PhraseTable
    reordering: ReorderingTable
    lms: list[Automaton]
    release: Callable[[], None] = lambda: None


def make_binary(
    path: Path, texts: Sequence[ModelText], read: Callable[[Sequence[ModelText]], ModelTables]
) -> tuple[ModelTables, int]:
    """Read the text files of a model and write them atomically as one binary file.

    Returns:
        The tables, and the size of the binary file in bytes.
    """
    described = []
    for text in texts:  # before they are read, so the file does not match texts that are changed meanwhile
        size, changed = _state(text)
        described.append(
            {"kind": text.kind, "columns": text.columns, "name": text.path.name, "bytes": size, "mtime_ns": changed,
             "sha256": sha256(text.path)}
        )  # fmt: skip
    tables = read(texts)
    return tables, _write(path, described, tables)


def _state(text: ModelText) -> tuple[int, int]:
    status = text.path.stat()
    return status.st_size, status.st_mtime_ns


def _write(path: Path, texts: list[dict[str, Any]], tables: ModelTables) -> int:
    arrays = dict(_arrays(tables))
    places, end = {}, 0
    for name, array in arrays.items():
        # relative to the aligned end of the header, whose length depends on the offsets in it
        places[name] = {"shape": array.shape, "offset": end}
        end = _aligned(end + array.nbytes)
    header = {
        "texts": texts,
        "longest_source": tables.phrases.longest_source,
        "lms": [{"order": lm.order, "start": lm.start, "unk": lm.unk, "end": lm.end} for lm in tables.lms],
        "arrays": places,
    }
    content = json.dumps(header, ensure_ascii=False).encode("utf-8")
    first_line = b"%s%d %d %d\n" % (_START, FORMAT, len(content), end)
    with atomic_binary(path) as out:
        written = out.write(first_line + content)
        for array in arrays.values():
            out.write(bytes(_aligned(written) - written))
            out.write(np.ascontiguousarray(array).view(np.uint8).data if array.size else b"")
            written = _aligned(written) + array.nbytes
        out.write(bytes(_aligned(written) - written))
    return path.stat().st_size


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _arrays(tables: ModelTables) -> Iterator[tuple[str, NDArray[Any]]]:
    table = tables.phrases
    yield from _strings("sources", table.sources)
    yield from _strings("targets", table.targets)
    for name in ("source_of", "target_of", "log_scores", "first"):
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
    for field, array in strings.compacted()._asdict().items():
        if field != "size":
            yield f"{name}.{field}", array


def fitting_tables(directories: Iterable[Path], texts: Sequence[ModelText]) -> ModelTables | None:
    """Return the tables of the first binary file that was made from these text files, or None if there is none.

    Binary files that were made from other text files are reported in the log.
    """
    for directory in dict.fromkeys(directories):
        path = directory / NAME
        if path.is_file():
            binary = _Binary(path)
            misfit = _misfit(binary.header, texts)
            if misfit is None:
                np.empty(LARGE, np.uint8)  # freed immediately; see LARGE
                return binary.tables()
            warn(f"{path}: {misfit}; using the text files instead; run `rnnsmt search binarize`, or remove it")
    return None


def _misfit(header: dict[str, Any], texts: Sequence[ModelText]) -> str | None:
    """Return the reason why a binary file with this header does not match ``texts``, None if it does."""
    described = header["texts"]
    if any(text.links for text in texts) and "affiliations.places" not in header["arrays"]:
        return "has no word alignment of the phrase pairs, which the joint model requires"
    if [(entry["kind"], entry["columns"]) for entry in described] != [(text.kind, text.columns) for text in texts]:
        return "was created from other files than those of this moses.ini"
    for entry, text in zip(described, texts, strict=True):
        size, changed = _state(text)
        if size == entry["bytes"] and changed == entry["mtime_ns"] and changed % 1_000_000_000:
            continue
        if size != entry["bytes"] or sha256(text.path) != entry["sha256"]:
            return f"was created before {text.path} was changed"
    return None


class _Binary:
    """A memory-mapped binary file."""

    def __init__(self, path: Path) -> None:
        """Map a file; only its header is read."""
        self.path = path
        with path.open("rb") as stream:
            size = path.stat().st_size
            line = _FIRST_LINE.match(stream.readline())
            if line is None:
                raise self._unusable("is not a binary model")
            if int(line[1]) != FORMAT:
                raise self._unusable(f"has the format {int(line[1])}, but this version of rnnsmt reads {FORMAT}")
            self._begin = _aligned(line.end() + int(line[2]))
            if size != self._begin + int(line[3]):
                raise self._unusable(f"is not complete: {size:,} of {self._begin + int(line[3]):,} bytes")
            self.header = json.loads(stream.read(int(line[2])))
            # kernels are compiled for writeable arrays, so the mapping is copy-on-write; pages that are never written
            # stay shared between processes, and need no swap reserve
            flags = mmap.MAP_PRIVATE | getattr(mmap, "MAP_NORESERVE", 0)
            self._map = mmap.mmap(stream.fileno(), size, flags, mmap.PROT_READ | mmap.PROT_WRITE)

    def _unusable(self, why: str) -> InputError:
        return InputError(
            f"{self.path}: {why}; run `rnnsmt search binarize` again, or remove the file to use the text files"
        )

    def tables(self) -> ModelTables:
        """Return the tables, whose arrays are views of the mapped file."""
        lms = [self._lm(f"lm{number}", lm) for number, lm in enumerate(self.header["lms"])]
        reordering = ReorderingTable(
            self._array("reordering.log_scores", np.float64), self._array("reordering.row_of", np.int32)
        )
        return ModelTables(self._phrases(), reordering, lms, partial(release_pages, self._map))

    def _phrases(self) -> PhraseTable:
        phrases = PhraseTable(
            self._strings("sources"),
            self._strings("targets"),
            self._array("pairs.source_of", np.int32),
            self._array("pairs.target_of", np.int32),
            self._array("pairs.log_scores", np.float64),
            self._array("pairs.first", np.int64),
            self.header["longest_source"],
        )
        if "affiliations.places" in self.header["arrays"]:
            phrases.affiliations = Affiliations(
                self._array("affiliations.bounds", np.int64), self._array("affiliations.places", np.int8)
            )
        return phrases

    def _lm(self, name: str, about: dict[str, int]) -> Automaton:
        arrays = LmArrays(
            self._array(f"{name}.rows", ROW),
            self._array(f"{name}.states", STATE),
            self._array(f"{name}.unigrams", UNIGRAM),
            self._array(f"{name}.followers", np.uint64),
        )
        return Automaton(arrays, self._strings(f"{name}.words"), **about)

    def _array(self, name: str, dtype: DTypeLike) -> NDArray[Any]:
        location = self.header["arrays"][name]
        return np.ndarray(location["shape"], dtype, self._map, self._begin + location["offset"])

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
