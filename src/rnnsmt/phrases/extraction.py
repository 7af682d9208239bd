"""Extract files (parquet): distinct phrase pairs with links, counts and folds, in the order of the phrase table.

``extract_phrases`` writes an extract file from all corpora in bounded memory. ``ExtractFile`` reads it for the stages
``score`` and ``reordering``, in batches that contain all rows of a source phrase.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import duckdb
import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.io import InputError, atomic_path, open_binary, scratch_folder
from rnnsmt.base.progress import Meter, say
from rnnsmt.phrases.aligned_text import AlignedBlock, TextStats, WordNumbers, read_aligned_blocks
from rnnsmt.phrases.database import connect
from rnnsmt.phrases.folds import Hashes, sentence_folds, word_hashes
from rnnsmt.phrases.kernels.extraction import extract_block
from rnnsmt.phrases.kernels.scoring import group_rows
from rnnsmt.phrases.packing import Packing
from rnnsmt.phrases.smoothing import Smoothing, discounts

FORMAT = "rnnsmt extract 4"
"""Version of the format, in the metadata of a file."""


def extract_phrases(
    sources: Sequence[str],
    targets: Sequence[str],
    alignments: Sequence[str],
    output: str,
    max_length: int = 7,
    threads: int = 1,
    memory_mb: int = 2000,
) -> dict[str, object]:
    """Extract, count and sort the phrase pairs of the corpora.

    There are two passes. The first one numbers the words and spools the text as numbers. The second one renumbers the
    words in byte order and extracts phrase pairs block by block into duckdb, which counts and sorts them, and spills to
    a directory next to the output if memory is insufficient.

    Args:
        sources, targets, alignments: files; the n-th files belong together.
        output: the extract file.
        max_length: maximum number of words of a phrase.
        threads: number of threads of duckdb.
        memory_mb: memory limit.

    Returns:
        The statistics of the stage.

    Raises:
        InputError: as ``read_aligned_blocks``, or no phrase pair can be extracted.
    """
    with scratch_folder(output) as scratch:
        figures = TextStats()
        source_words, target_words = WordNumbers(), WordNumbers()
        with (scratch / "spool").open("w+b") as spool:
            meter = Meter("reading", unit="sentence pairs")
            for block in read_aligned_blocks(sources, targets, alignments, source_words, target_words, figures):
                _save(spool, block)
                meter.add(block.sentences)
            spool.seek(0)
            packings = Packing.of(list(source_words), max_length), Packing.of(list(target_words), max_length)
            codes = packings[0].codes_of(list(source_words)), packings[1].codes_of(list(target_words))
            hashes = word_hashes(source_words), word_hashes(target_words)
            del source_words, target_words
            with connect(str(scratch), threads, memory_mb) as connection:
                occurrences = _insert_occurrences(
                    connection, spool, packings, codes, hashes, max_length, figures.sentences
                )
                if not occurrences:
                    raise InputError(
                        f"{alignments[0]}: no phrase pair is consistent with these links; is this the right alignment?"
                    )
                say(f"counting {occurrences:,} occurrences")
                sizes = _write_counted(connection, packings, _alignments_of_a_text(sources, targets), output)
    return figures.as_dict() | {"occurrences": occurrences} | sizes


_ARRAYS = ("source", "target", "links", "source_offsets", "target_offsets", "link_offsets")


def _save(spool: BinaryIO, block: AlignedBlock) -> None:
    """Append a block to the spool file."""
    for name in _ARRAYS:
        np.save(spool, getattr(block, name))


def _load(spool: BinaryIO, sentences: int) -> Iterator[AlignedBlock]:
    """Yield the blocks of the spool file."""
    while sentences > 0:
        block = AlignedBlock(*(np.load(spool) for _ in _ARRAYS))
        sentences -= block.sentences
        yield block


def _insert_occurrences(
    connection: duckdb.DuckDBPyConnection,
    spool: BinaryIO,
    packings: tuple[Packing, Packing],
    codes: tuple[NDArray[np.int64], NDArray[np.int64]],
    hashes: tuple[Hashes, Hashes],
    max_length: int,
    sentences: int,
) -> int:
    """Extract every spooled block into the table ``occurrences``; return the number of its rows."""
    names = key_names(packings)
    columns = ", ".join(f"{name} BIGINT" for name in names)
    connection.execute(f"CREATE TABLE occurrences ({columns}, links BIGINT, orientation TINYINT, fold UTINYINT)")
    meter = Meter("extracting", sentences, "sentence pairs")
    total = 0
    for block in _load(spool, sentences):
        offsets = block.source_offsets, block.target_offsets, block.link_offsets
        # a guess; extract_block counts the pairs beyond the capacity, and is called again with the exact number
        capacity = 8 * (len(block.source) + len(block.target))
        while True:
            spans, bits = np.empty((capacity, 4), np.int32), np.empty(capacity, np.int64)
            orientations = np.empty(capacity, np.int8)
            found = extract_block(*offsets, block.links, max_length, spans, bits, orientations)
            if found <= capacity:
                break
            capacity = found
        spans = spans[:found]
        keys = [
            *packings[0].pack(block.source, codes[0], spans, 0),
            *packings[1].pack(block.target, codes[1], spans, 1),
        ]
        columns_of_block = dict(zip(names, keys, strict=True))
        columns_of_block |= {"links": bits[:found], "orientation": orientations[:found]}
        # spans[:, 0] is an index of the flat source side, which determines the sentence
        sentence = np.searchsorted(block.source_offsets, spans[:, 0], "right") - 1
        columns_of_block["fold"] = sentence_folds(block, *hashes)[sentence]
        connection.execute("INSERT INTO occurrences SELECT * FROM columns_of_block")
        total += found
        meter.add(block.sentences)
    return total


def key_names(packings: tuple[Packing, Packing]) -> list[str]:
    """Return the names of the key columns of both sides, in sorting order."""
    return [f"s{key}" for key in range(packings[0].keys)] + [f"t{key}" for key in range(packings[1].keys)]


def _alignments_of_a_text(sources: Sequence[str], targets: Sequence[str]) -> int:
    """Return the number of alignments of each text; 1 if it differs between texts."""
    texts = list(zip(sources, targets, strict=True))
    numbers = {texts.count(text) for text in texts}
    return numbers.pop() if len(numbers) == 1 else 1


def _write_counted(
    connection: duckdb.DuckDBPyConnection, packings: tuple[Packing, Packing], alignments: int, output: str
) -> dict[str, object]:
    """Count the occurrences, join the statistics of each target phrase that scoring needs, and write all rows, sorted.

    Returns:
        The number of rows.
    """
    names = key_names(packings)
    keys = ", ".join(names)
    target_keys = ", ".join(names[packings[0].keys :])
    counts = ", ".join(
        f"count(*) FILTER (WHERE orientation {condition})::INTEGER AS {name}"
        for name, condition in (
            # orientation is 3 * previous + next, with 0 for monotone and 1 for swap
            ("previous_mono", "// 3 = 0"),
            ("previous_swap", "// 3 = 1"),
            ("next_mono", "% 3 = 0"),
            ("next_swap", "% 3 = 1"),
        )
    )
    connection.execute(
        f"CREATE TABLE counted AS SELECT {keys}, links, count(*)::INTEGER AS joint, {counts}, "
        f"min(fold) AS first_fold, max(fold) AS last_fold "
        f"FROM occurrences GROUP BY {keys}, links"
    )
    connection.execute("DROP TABLE occurrences")
    pairs = f"(SELECT {keys}, sum(joint)::BIGINT AS joint FROM counted GROUP BY {keys})"
    smoothing = _smoothing(connection, pairs, alignments)
    metadata = {
        "format": FORMAT,
        "smoothing": json.dumps(smoothing),
        "source_packing": packings[0].to_json(),
        "target_packing": packings[1].to_json(),
        "source_words": b"\n".join(packings[0].words).decode(),
        "target_words": b"\n".join(packings[1].words).decode(),
    }
    literals = ", ".join(f"{name}: '{value.replace(chr(39), chr(39) * 2)}'" for name, value in metadata.items())
    lost = smoothing.by_joint()
    discount = f"({lost!r}::DOUBLE[])[least(joint, {len(lost) - 1}) + 1]"
    targets = (
        f"SELECT {target_keys}, sum(joint)::BIGINT AS target_total, count(*)::INTEGER AS target_pairs, "
        # ORDER BY: a sum of floats in a fixed order is the same for any number of threads
        f"sum({discount} ORDER BY joint) AS target_discount FROM {pairs} GROUP BY {target_keys}"
    )
    with atomic_path(output) as temporary:
        connection.execute(
            f"COPY (SELECT counted.*, target_total, target_pairs, target_discount "
            f"FROM counted JOIN ({targets}) USING ({target_keys}) ORDER BY {keys}, links) "
            f"TO '{str(temporary).replace(chr(39), chr(39) * 2)}' "
            f"(FORMAT parquet, COMPRESSION snappy, KV_METADATA {{{literals}}})"
        )
    row = connection.execute("SELECT count(*) FROM counted").fetchone()
    return {"distinct pairs with links": row[0] if row else 0}


def _smoothing(connection: duckdb.DuckDBPyConnection, pairs: str, alignments: int) -> Smoothing:
    """Compute the parameters of smoothing from all pairs.

    Args:
        connection: the database.
        pairs: query for the distinct pairs with their joint counts.
        alignments: number of alignments of each text.
    """
    count = f"(joint + {alignments - 1}) // {alignments}"
    seen = ", ".join(f"count(*) FILTER (WHERE {count} = {n})" for n in (1, 2, 3, 4))
    row = connection.execute(f"SELECT count(*), {seen} FROM {pairs}").fetchone()
    assert row is not None
    return Smoothing(alignments, discounts(row[1:]), row[0])


BATCH_ROWS = 400_000
"""Number of rows that are read at a time."""


@dataclass
class ExtractBatch:
    """Sorted rows of an extract file with complete source groups: N rows, P distinct pairs, S source phrases.

    Attributes:
        source_keys, target_keys: int64 [K, N or more], packed phrases.
        columns: the other columns by name, each [N].
        pairs: int64 [P + 1], first row of each distinct pair, N at the end.
        sources: int64 [S + 1], first row of each source phrase, N at the end.
    """

    source_keys: NDArray[np.int64]
    target_keys: NDArray[np.int64]
    columns: dict[str, NDArray[Any]]
    pairs: NDArray[np.int64]
    sources: NDArray[np.int64]


class ExtractFile:
    """An extract file: its packings (source, target), number of rows, smoothing parameters and batches.

    Raises:
        InputError: the file is missing, or was not written by this version of ``phrases extract``.
    """

    def __init__(self, path: str, threads: int = 1, memory_mb: int = 2000) -> None:
        self.path, self.threads, self.memory_mb = path, threads, memory_mb
        self._literal = "'" + path.replace("'", "''") + "'"
        open_binary(path).close()
        with connect("", threads, memory_mb) as connection:
            try:
                pairs = connection.execute(f"SELECT key, value FROM parquet_kv_metadata({self._literal})").fetchall()
                row = connection.execute(f"SELECT count(*) FROM read_parquet({self._literal})").fetchone()
            except duckdb.Error:
                raise InputError(f"{path}: not a complete Parquet file; run 'rnnsmt phrases extract' again") from None
        metadata = {bytes(key).decode(): bytes(value) for key, value in pairs}
        if metadata.get("format", b"").decode() != FORMAT:
            raise InputError(f"{path}: not written by this version of 'rnnsmt phrases extract'; run it again")
        self.rows = int(row[0]) if row else 0
        self.packings = _packing(metadata, "source"), _packing(metadata, "target")
        self.smoothing = Smoothing(*json.loads(metadata["smoothing"]))

    def batches(self, names: list[str]) -> Iterator[ExtractBatch]:
        """Yield all rows with the key columns and the named columns, in order.

        A batch contains all rows of its source phrases.
        """
        n_source = self.packings[0].keys
        keys = key_names(self.packings)
        columns = ", ".join(keys + names)
        rest: list[NDArray[Any]] | None = None
        with connect("", self.threads, self.memory_mb) as connection:
            for begin in range(0, self.rows, BATCH_ROWS):
                table = connection.execute(
                    f"SELECT {columns} FROM read_parquet({self._literal}, file_row_number = true) "
                    f"WHERE file_row_number >= {begin} AND file_row_number < {begin + BATCH_ROWS}"
                ).fetchnumpy()
                arrays = [np.asarray(table[name]) for name in keys + names]
                if rest is not None:
                    arrays = [np.concatenate(both) for both in zip(rest, arrays, strict=True)]
                source, target = np.stack(arrays[:n_source]), np.stack(arrays[n_source : len(keys)])
                pairs, sources = group_rows(source, target)
                end = len(arrays[0])
                if begin + BATCH_ROWS < self.rows:
                    # the last source phrase may continue in the next batch: keep its rows for it
                    end = int(sources[-2])
                    pairs, sources = pairs[: np.searchsorted(pairs, end) + 1], sources[:-1]
                rest = [array[end:] for array in arrays]
                others = dict(zip(names, (array[:end] for array in arrays[len(keys) :]), strict=True))
                yield ExtractBatch(source, target, others, pairs, sources)


def _packing(metadata: dict[str, bytes], side: str) -> Packing:
    """Return the packing of a side from the metadata of a file."""
    return Packing.from_json(metadata[f"{side}_packing"].decode(), metadata[f"{side}_words"].split(b"\n"))
