"""Binary form of a model, ``model.binary`` in the directory of its phrase table, shared by all processes of a machine.

The file contains the flat arrays that result from reading the tables and LMs as text. It is memory-mapped: a process
starts immediately, and all processes share the pages in physical memory.

Layout: the first line has the version of the format, the length of the header in bytes and its SHA-256. The header is
JSON: byte order, the text files that the arrays were made from with their sizes, modification times and SHA-256, the
arrays with their dtypes, shapes and offsets, and the checksum of all of them. Each array begins at a multiple of
``ALIGNMENT`` bytes.

The file may come from an untrusted source: everything that the kernels rely on is checked once, when the file is mapped
(``kernels.tables``).

The file is used only if it was made from the text files that the ini names. A text file is identified by its size and
modification time. If the time differs or is a whole number of seconds, as archives and some file systems store it, the
SHA-256 is compared instead.
"""

import hashlib
import json
import mmap
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rnnsmt.base.arrays import release_pages
from rnnsmt.base.io import InputError, atomic_binary, sha256
from rnnsmt.base.kernels.numbers import add_to_checksum, checksum_value, new_checksum
from rnnsmt.base.kernels.strings import STRING_FAULTS, Interner, InternTable
from rnnsmt.base.progress import say
from rnnsmt.lm.automaton import AUTOMATON_FAULTS, ROW, STATE, UNIGRAM, Automaton, LmArrays
from rnnsmt.search.kernels import tables as kernels
from rnnsmt.search.phrase_pairs import Affiliations, PhraseTable, ReorderingTable

NAME = "model.binary"

LARGE = 1 << 24
"""Bytes of a block that is allocated and freed once when a file is mapped.

glibc serves an allocation from its heap if it is at most as large as the largest mapped block freed so far (the dynamic
threshold of mallopt(3)), otherwise with a new memory mapping. Reading text frees large blocks, mapping a file does not;
without this block, every array of a sentence would be a new memory mapping."""

FORMAT = 5
"""Version of the format, to be increased if old files become unreadable: other arrays, other hash functions, or another
meaning of the values."""

ALIGNMENT = 64
"""Arrays begin at multiples of this number of bytes."""

_START = b"rnnsmt binary model "

_FIRST_LINE = re.compile(_START + rb"(\d{1,9}) (\d{1,12}) ([0-9a-f]{64})\n")

_CHECKED = 1 << 21
"""Number of words of 8 bytes that are added to the checksum before their pages are unmapped."""

_LONGEST_FIRST_LINE = 128

_LONGEST_HEADER = 1 << 20
"""Limit of the header in bytes; that of a model with one LM has about 3,000."""


_TICK = 50_000_000
"""Time in ns after which rewriting a file is certain to change its modification time."""


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
            raise InputError(f"{text.path}: was changed while being read; run the same command again")
    described = [
        {"kind": text.kind, "columns": text.columns, "name": text.path.name, "bytes": size, "mtime_ns": changed,
         "sha256": digest}
        for text, (size, changed), digest in zip(texts, before, hashes, strict=True)
    ]  # fmt: skip
    return tables, _write(path, described, tables)


def _state(text: ModelText) -> tuple[int, int]:
    """Return the size in bytes and the modification time in ns of a text file."""
    status = text.path.stat()
    return status.st_size, status.st_mtime_ns


def _write(path: Path, texts: list[dict[str, Any]], tables: ModelTables) -> int:
    arrays = dict(_arrays(tables))
    places, end = {}, 0
    for name, array in arrays.items():
        # relative to the aligned end of the header, whose length depends on the offsets in it
        places[name] = {"dtype": _type_of(array.dtype), "shape": array.shape, "offset": end}
        end = _aligned(end + array.nbytes)
    checksum = new_checksum()
    for array in arrays.values():
        _add(checksum, array)
    header = {
        "byte_order": sys.byteorder,
        "texts": texts,
        "longest_source": tables.phrases.longest_source,
        "lms": [{"order": lm.order, "start": lm.start, "unk": lm.unk, "end": lm.end} for lm in tables.lms],
        "arrays": places,
        "bytes": end,
        "checksum": f"{int(checksum_value(checksum)):016x}",
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


def _add(checksum: NDArray[np.uint64], array: NDArray[Any]) -> None:
    """Add an array, with the zero padding that follows it in the file, to a checksum."""
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8) if array.size else np.zeros(0, np.uint8)
    whole = len(data) - len(data) % ALIGNMENT
    rest = np.zeros(_aligned(len(data)) - whole, np.uint8)
    rest[: len(data) - whole] = data[whole:]
    for block in (data[:whole], rest):
        add_to_checksum(checksum, block.view(np.uint64))


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _type_of(dtype: DTypeLike) -> object:
    """Return the JSON representation of a dtype; tuples of NumPy's description become lists."""
    return json.loads(json.dumps(np.lib.format.dtype_to_descr(np.dtype(dtype))))


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

    Args:
        directories: directories to look in, in this order.
        texts: the text files.

    Raises:
        InputError: a binary file is damaged, incomplete, was written by another version of this program, or has invalid
            values.
    """
    for directory in dict.fromkeys(directories):
        path = directory / NAME
        if path.is_file():
            binary = _Binary(path)
            misfit = _misfit(binary.header, texts)
            if misfit is None:
                np.empty(LARGE, np.uint8)  # freed immediately; see LARGE
                return binary.tables(texts)
            say(f"warning: {path}: {misfit}; using the text files instead; run `rnnsmt search binarise`, or remove it")
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
            if line is None or int(line[2]) > _LONGEST_HEADER:
                raise self._unusable("is damaged in its first line")
            stream.seek(line.end())
            content = stream.read(int(line[2]))
            if hashlib.sha256(content).hexdigest().encode() != line[3]:
                raise self._unusable("is damaged in its header, or not complete")
            with self._valid_header():
                self.header = json.loads(content)
                self._check_header()
            self._begin = _aligned(line.end() + len(content))
            if size != self._begin + self.header["bytes"]:
                raise self._unusable(f"is not complete: {size:,} of {self._begin + self.header['bytes']:,} bytes")
            # kernels are compiled for writeable arrays, so the mapping is copy-on-write; pages that are never written
            # stay shared between processes, and need no swap reserve
            flags = mmap.MAP_PRIVATE | getattr(mmap, "MAP_NORESERVE", 0)
            self._map = mmap.mmap(stream.fileno(), size, flags, mmap.PROT_READ | mmap.PROT_WRITE)

    def _unusable(self, why: str) -> InputError:
        return InputError(
            f"{self.path}: {why}; run `rnnsmt search binarise` again, or remove the file to use the text files"
        )

    @contextmanager
    def _valid_header(self) -> Iterator[None]:
        """Convert the exceptions that missing or mistyped header entries cause to ``InputError``."""
        try:
            yield
        except (LookupError, TypeError, AttributeError, ValueError, RecursionError):
            raise self._unusable("has a header that was not written by rnnsmt") from None

    def _check_header(self) -> None:
        """Check types and ranges of the entries.

        Raises:
            InputError: the file was created on a machine with another byte order.
            LookupError, TypeError, AttributeError, ValueError: an entry is missing or not valid.
        """
        header = self.header
        if header["byte_order"] != sys.byteorder:
            raise self._unusable("was created on a machine with a different byte order")
        numbers = [header["bytes"], header["longest_source"]]
        texts = [(entry["kind"], entry["name"], entry["sha256"]) for entry in header["texts"]]
        numbers += [entry[name] for entry in header["texts"] for name in ("columns", "bytes")]
        numbers += [lm[name] for lm in header["lms"] for name in ("order", "start", "unk", "end")]
        for location in header["arrays"].values():
            numbers += [location["offset"], *location["shape"]]
            if location["offset"] % ALIGNMENT:
                raise ValueError
        if not all(type(number) is int and 0 <= number < 1 << 62 for number in numbers):
            raise ValueError
        if not all(isinstance(text, str) for text in sum(texts, ())) or header["bytes"] % ALIGNMENT:
            raise ValueError
        if not all(type(entry["mtime_ns"]) is int for entry in header["texts"]):
            raise ValueError
        if header["longest_source"] == 0 or not 0 <= int(header["checksum"], 16) < 1 << 64:
            raise ValueError

    def tables(self, texts: Sequence[ModelText]) -> ModelTables:
        """Return the tables, whose arrays are views of the mapped file, after all of them have been checked.

        Args:
            texts: the text files of the model, which the header describes: the phrase table first.

        Raises:
            InputError: the arrays are damaged, or do not match the text files.
        """
        with self._valid_header():
            phrases, reordering = self._phrases(texts), self._reordering(texts)
            numbered = list(enumerate(self.header["lms"]))
            if len(numbered) != sum(text.kind == "LM" for text in texts):
                raise ValueError
            lms = [self._lm(number, lm) for number, lm in numbered]
        self._check_values(phrases, reordering, lms)
        return ModelTables(phrases, reordering, lms, partial(release_pages, self._map))

    def _phrases(self, texts: Sequence[ModelText]) -> PhraseTable:
        sources, targets = self._strings("sources"), self._strings("targets")
        source_of = self._array("pairs.source_of", np.int32, None)
        pairs = len(source_of)
        phrases = PhraseTable(
            sources,
            targets,
            source_of,
            self._array("pairs.target_of", np.int32, pairs),
            self._array("pairs.log_scores", np.float64, pairs, texts[0].columns),
            self._array("pairs.first", np.int64, len(sources) + 1),
            self.header["longest_source"],
        )
        if "affiliations.places" in self.header["arrays"]:
            phrases.affiliations = Affiliations(
                self._array("affiliations.bounds", np.int64, pairs + 1),
                self._array("affiliations.places", np.int8, None),
            )
        return phrases

    def _reordering(self, texts: Sequence[ModelText]) -> ReorderingTable:
        columns = [text.columns for text in texts if text.kind == "LexicalReordering"] or [1]
        pairs = self.header["arrays"]["pairs.source_of"]["shape"][0]
        return ReorderingTable(
            self._array("reordering.log_scores", np.float64, None, *columns),
            self._array("reordering.row_of", np.int32, pairs),
        )

    def _lm(self, number: int, about: dict[str, int]) -> Automaton:
        words = self._strings(f"lm{number}.words")
        arrays = LmArrays(
            self._array(f"lm{number}.rows", ROW, None),
            self._array(f"lm{number}.states", STATE, None),
            self._array(f"lm{number}.unigrams", UNIGRAM, None),
            self._array(f"lm{number}.followers", np.uint64, None),
        )
        known = len(arrays.unigrams)  # one more than there are words if <unk> was missing
        if known - len(words) not in (0, 1) or max(about["unk"], about["end"]) >= known:
            raise ValueError
        if about["start"] >= len(arrays.states) or about["order"] == 0 or not len(arrays.rows):
            raise ValueError
        return Automaton(arrays, words, about["order"], about["start"], about["unk"], about["end"])

    def _check_values(self, phrases: PhraseTable, reordering: ReorderingTable, lms: list[Automaton]) -> None:
        """Check all values that the search relies on, and the checksum of the file.

        Raises:
            InputError: a value or the checksum is wrong.
        """
        affiliations = phrases.affiliations or Affiliations(np.zeros(0, np.int64), np.zeros(0, np.int8))
        model = kernels.MappedModel(
            phrases.sources.table,
            phrases.targets.table,
            phrases.source_of,
            phrases.target_of,
            phrases.log_scores,
            phrases.first,
            *affiliations,
            *reordering,
            tuple(lm.arrays for lm in lms),
            tuple(lm.words.table for lm in lms),
        )
        data, checksum = np.frombuffer(self._map, np.uint64, offset=self._begin), new_checksum()
        for begin in range(0, len(data), _CHECKED):
            add_to_checksum(checksum, data[begin : begin + _CHECKED])
            release_pages(self._map)
        if checksum_value(checksum) != np.uint64(int(self.header["checksum"], 16)):
            raise self._unusable("is damaged: its checksum is wrong")
        parts = [(component, 0) for component in range(kernels.LM_WORDS)]
        parts += [(component, number) for number in range(len(lms)) for component in (kernels.LM_WORDS, kernels.LMS)]
        for component, number in parts:
            fault = kernels.model_fault(model, component, number)
            if fault:
                raise self._unusable(f"was not written by rnnsmt: it has {_described(component, number, fault)}")
            release_pages(self._map)

    def _array(self, name: str, dtype: DTypeLike, *sizes: int | None) -> NDArray[Any]:
        """Return an array of the file.

        Args:
            name: its name.
            dtype: its type.
            sizes: its shape; None for any size.

        Raises:
            InputError: it has another type.
            ValueError, LookupError: it has another shape, or is not within the file.
        """
        location = self.header["arrays"][name]
        if location["dtype"] != _type_of(dtype):
            raise self._unusable(f"has {name} of type {str(location['dtype'])[:60]}")
        shape = tuple(location["shape"])
        fits = len(shape) == len(sizes) and all(
            size in (None, actual) for size, actual in zip(sizes, shape, strict=True)
        )
        if not fits or location["offset"] + prod(shape) * np.dtype(dtype).itemsize > self.header["bytes"]:
            raise ValueError
        if not prod(shape):
            return np.zeros(shape, dtype)
        array = np.frombuffer(self._map, dtype, prod(shape), self._begin + location["offset"])
        return array.reshape(shape)

    def _strings(self, name: str) -> Interner:
        hashes = self._array(f"{name}.hashes", np.uint64, None)
        slots = self._array(f"{name}.slots", np.int32, None)
        self._check_slots(slots)
        return Interner.of(
            InternTable(
                slots,
                hashes,
                self._array(f"{name}.offsets", np.int64, len(hashes) + 1),
                self._array(f"{name}.arena", np.uint8, None),
                np.array([len(hashes)], np.int64),
            )
        )

    def _check_slots(self, slots: NDArray[Any]) -> None:
        """Raise ValueError if the number of slots of a hash table is not a power of two."""
        if not len(slots) or len(slots) & (len(slots) - 1):
            raise ValueError


def _described(component: int, number: int, fault: int) -> str:
    """Describe a fault of a part of a model. number: index of the LM; fault: index among the faults of the part."""
    if component == kernels.AFFILIATIONS:
        return "word alignments that do not match the phrases"
    if component == kernels.REORDERING:
        return "missing reordering scores, or reordering scores that are not logarithms"
    name, faults = {
        kernels.SOURCES: ("source phrases", STRING_FAULTS),
        kernels.TARGETS: ("target phrases", STRING_FAULTS),
        kernels.PAIRS: ("phrase pairs", kernels.PAIR_FAULTS),
        kernels.LM_WORDS: (f"words of LM {number + 1}", STRING_FAULTS),
        kernels.LMS: (f"LM {number + 1}", AUTOMATON_FAULTS),
    }[component]
    return f"{name} with {faults[fault]}"
