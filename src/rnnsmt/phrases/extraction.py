"""Extraction of the phrase pairs that are consistent with the word alignments, counted and sorted.

``extract_phrases`` writes an extract file (parquet) from all corpora in bounded memory: distinct phrase pairs with
links and counts, in the order of the phrase table. ``ExtractFile`` reads one for the stages ``score`` and
``reordering``, in batches that contain all rows of a source phrase. duckdb reads and writes the files; it also sorts
and counts the pairs.
"""

import json
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, BinaryIO

import duckdb
import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.io import InputError, atomic_path, check_name, open_binary, scratch_directory
from rnnsmt.base.kernels.decorator import kernel
from rnnsmt.base.kernels.strings import Interner
from rnnsmt.base.progress import Meter, say
from rnnsmt.phrases.aligned_text import (
    AlignedBlock,
    TextStats,
    read_aligned_blocks,
)
from rnnsmt.phrases.packing import Packing, SortedPairs, group_rows
from rnnsmt.phrases.pair_scores import Smoothing, discounts

PROCESS_MB = 350
"""Memory of Python, numba, the vocabularies and a block of text in MB, in addition to that of duckdb."""

LEAST_MB = 100
"""Minimum memory limit of duckdb in MB."""

DUCKDB_SHARE = 0.92
"""Share of the memory above ``PROCESS_MB`` that is duckdb's limit. The limit covers its buffers only: with a limit of
2,850 MB, a process that was to use 3,200 MB used 3,283 MB."""

EXTRACTED_TOKENS = 50_000
"""Number of source and target words from which phrase pairs are extracted at a time: there are about two pairs per
word, with some hundred bytes each."""


@contextmanager
def connect(scratch: str, threads: int, memory_mb: int) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open an empty in-memory database that spills into the directory ``scratch``.

    Args:
        memory_mb: memory of the whole process; the limit of duckdb is ``DUCKDB_SHARE`` of what exceeds ``PROCESS_MB``.
    """
    check_name(scratch)
    connection = duckdb.connect(
        config={
            "threads": max(1, threads),
            "memory_limit": f"{max(LEAST_MB, int(DUCKDB_SHARE * (memory_mb - PROCESS_MB)))}MB",
            "temp_directory": scratch,
            "preserve_insertion_order": True,
        }
    )
    try:
        with _stopped_by_signal():
            yield connection
    except duckdb.OutOfMemoryException:
        raise InputError(f"--memory-mb {memory_mb}: too small for this corpus; increase it") from None
    except duckdb.IOException as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"cannot write temporary files ({reason}); is the disk full?") from None
    finally:
        connection.close()


@contextmanager
def _stopped_by_signal() -> Iterator[None]:
    """Re-raise exceptions of the handlers of SIGINT and SIGTERM.

    During a query, duckdb converts them to RuntimeError.
    """
    raised: list[BaseException] = []
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def remember(number: int, frame: FrameType | None) -> None:
        """Call the original handler, and keep its exception."""
        handler = handlers[signal.Signals(number)]
        try:
            if callable(handler):
                handler(number, frame)
        except BaseException as error:
            raised.append(error)
            raise

    ours = threading.current_thread() is threading.main_thread()
    for number, handler in handlers.items():
        if ours and callable(handler):
            signal.signal(number, remember)
    try:
        yield
    except RuntimeError:
        if raised:
            raise raised[0] from None
        raise
    finally:
        for number, handler in handlers.items():
            if ours and callable(handler):
                signal.signal(number, handler)


BATCH_ROWS = 122_880
"""Number of rows that are read at a time: a row group of the file, so that a query reads no rows twice."""


@dataclass
class ExtractBatch:
    """Sorted rows of an extract file with complete source groups.

    Attributes:
        columns: the other columns by name, each [N].
    """

    rows: SortedPairs
    columns: dict[str, NDArray[Any]]


class ExtractFile:
    """An extract file: its packings (source, target), number of rows, smoothing parameters and batches."""

    def __init__(self, path: str, threads: int = 1, memory_mb: int = 2000) -> None:
        self.path, self.threads, self.memory_mb = path, threads, memory_mb
        self._literal = "'" + path.replace("'", "''") + "'"
        check_name(path)
        open_binary(path).close()
        with connect("", threads, memory_mb) as connection, self._reading():
            pairs = connection.execute(f"SELECT key, value FROM parquet_kv_metadata({self._literal})").fetchall()
            row = connection.execute(f"SELECT count(*) FROM read_parquet({self._literal})").fetchone()
        metadata = {bytes(key).decode(): bytes(value) for key, value in pairs}
        if metadata.get("format", b"").decode() != FORMAT:
            raise InputError(f"{path}: not written by this version of `rnnsmt phrases extract`; run it again")
        self.rows = int(row[0]) if row else 0
        self.packings = _packing(metadata, "source"), _packing(metadata, "target")
        self.smoothing = Smoothing(*json.loads(metadata["smoothing"]))

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Convert exceptions of duckdb to ``InputError``, except if memory is insufficient."""
        try:
            yield
        except duckdb.OutOfMemoryException:
            raise
        except duckdb.Error as error:
            raise InputError(
                f"{self.path}: not a complete Parquet file ({str(error).splitlines()[0]}); run `rnnsmt phrases "
                "extract` again"
            ) from None

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
                with self._reading():
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
                yield ExtractBatch(SortedPairs(pairs, sources, source, target), others)


def _packing(metadata: dict[str, bytes], side: str) -> Packing:
    return Packing.from_json(metadata[f"{side}_packing"].decode(), metadata[f"{side}_words"].split(b"\n"))


def key_names(packings: tuple[Packing, Packing]) -> list[str]:
    """Return the names of the key columns of both sides, in sorting order."""
    return [f"s{key}" for key in range(packings[0].keys)] + [f"t{key}" for key in range(packings[1].keys)]


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
        sources, targets, alignments: files; the n-th files are parallel.
        max_length: maximum number of words of a phrase.
        threads: number of threads of duckdb.

    Returns:
        The statistics of the stage.
    """
    check_name(output)
    with scratch_directory(output) as scratch:
        figures = TextStats()
        source_words, target_words = Interner(), Interner()
        with (scratch / "spool").open("w+b") as spool:
            meter = Meter("reading", unit="sentence pairs")
            files = sources, targets, alignments
            for block in read_aligned_blocks(*files, source_words, target_words, figures, EXTRACTED_TOKENS):
                _save(spool, block)
                meter.add(block.sentences)
            spool.seek(0)
            words = source_words.strings(), target_words.strings()
            packings = Packing.of(words[0], max_length), Packing.of(words[1], max_length)
            codes = packings[0].codes_of(words[0]), packings[1].codes_of(words[1])
            del source_words, target_words, words
            with connect(str(scratch), threads, memory_mb) as connection:
                occurrences = _insert_occurrences(connection, spool, packings, codes, max_length, figures.sentences)
                if not occurrences:
                    raise InputError(
                        f"{alignments[0]}: no phrase pair is consistent with these links; is this the right alignment?"
                    )
                say(f"counting {occurrences:,} occurrences")
                sizes = _write_counted(connection, packings, _alignments_of_a_text(sources, targets), output)
    return figures.as_dict() | {"occurrences": occurrences} | sizes


_ARRAYS = ("source", "target", "links", "source_offsets", "target_offsets", "link_offsets")


def _save(spool: BinaryIO, block: AlignedBlock) -> None:
    for name in _ARRAYS:
        np.save(spool, getattr(block, name))


def _load(spool: BinaryIO, sentences: int) -> Iterator[AlignedBlock]:
    while sentences > 0:
        block = AlignedBlock(*(np.load(spool) for _ in _ARRAYS))
        sentences -= block.sentences
        yield block


def _insert_occurrences(
    connection: duckdb.DuckDBPyConnection,
    spool: BinaryIO,
    packings: tuple[Packing, Packing],
    codes: tuple[NDArray[np.int64], NDArray[np.int64]],
    max_length: int,
    sentences: int,
) -> int:
    """Extract every spooled block into the table ``occurrences``; return the number of its rows."""
    names = key_names(packings)
    columns = ", ".join(f"{name} BIGINT" for name in names)
    connection.execute(f"CREATE TABLE occurrences ({columns}, links BIGINT, orientation TINYINT)")
    meter = Meter("extracting", sentences, "sentence pairs")
    total = 0
    for block in _load(spool, sentences):
        offsets = block.source_offsets, block.target_offsets, block.link_offsets
        # a guess; extract_block counts the pairs beyond the capacity, and is called again with the exact number
        capacity = 8 * (len(block.source) + len(block.target))
        while True:
            spans, bits = np.empty((capacity, 4), np.int32), np.empty(capacity, np.int64)
            orientations = np.empty(capacity, np.int8)
            n_pairs = extract_block(*offsets, block.links, max_length, spans, bits, orientations)
            if n_pairs <= capacity:
                break
            capacity = n_pairs
        spans = spans[:n_pairs]
        keys = [
            *packings[0].pack(block.source, codes[0], spans, 0),
            *packings[1].pack(block.target, codes[1], spans, 1),
        ]
        columns_of_block = dict(zip(names, keys, strict=True))
        columns_of_block |= {"links": bits[:n_pairs], "orientation": orientations[:n_pairs]}
        connection.execute("INSERT INTO occurrences SELECT * FROM columns_of_block")
        total += n_pairs
        meter.add(block.sentences)
    return total


def _alignments_of_a_text(sources: Sequence[str], targets: Sequence[str]) -> int:
    """Return the number of alignments of each text; 1 if it differs between texts."""
    texts = list(zip(sources, targets, strict=True))
    numbers = {texts.count(text) for text in texts}
    return numbers.pop() if len(numbers) == 1 else 1


def _write_counted(
    connection: duckdb.DuckDBPyConnection, packings: tuple[Packing, Packing], alignments: int, output: str
) -> dict[str, object]:
    """Count the occurrences, join the statistics of each target phrase that scoring needs, and write sorted rows."""
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
        f"CREATE TABLE counted AS SELECT {keys}, links, count(*)::INTEGER AS joint, {counts} "
        f"FROM occurrences GROUP BY {keys}, links"
    )
    connection.execute("DROP TABLE occurrences")
    seen = [f"seen{count}" for count in range(1, 4 * alignments + 1)]
    number = ", ".join(f"count(*) FILTER (WHERE joint = {n})::INTEGER AS {name}" for n, name in enumerate(seen, 1))
    connection.execute(
        f"CREATE TABLE targets AS SELECT {target_keys}, sum(joint)::BIGINT AS target_total, "
        f"count(*)::INTEGER AS target_pairs, {number} "
        f"FROM (SELECT {keys}, sum(joint) AS joint FROM counted GROUP BY {keys}) GROUP BY {target_keys}"
    )
    smoothing = _smoothing(connection, seen, alignments)
    profile = ", ".join(["target_pairs", *seen[: 3 * alignments - 1]])
    profiles = connection.execute(f"SELECT DISTINCT {profile} FROM targets").fetchnumpy()
    connection.register("profiles", _with_discounts(profiles, smoothing))
    metadata = {
        "format": FORMAT,
        "smoothing": json.dumps(smoothing),
        "source_packing": packings[0].to_json(),
        "target_packing": packings[1].to_json(),
        "source_words": b"\n".join(packings[0].words).decode(),
        "target_words": b"\n".join(packings[1].words).decode(),
    }
    literals = ", ".join(f"{name}: '{value.replace(chr(39), chr(39) * 2)}'" for name, value in metadata.items())
    with atomic_path(output) as temporary:
        connection.execute(
            f"COPY (SELECT counted.*, target_total, target_pairs, target_discount "
            f"FROM counted JOIN targets USING ({target_keys}) JOIN profiles USING ({profile}) "
            f"ORDER BY {keys}, links) "
            f"TO '{str(temporary).replace(chr(39), chr(39) * 2)}' "
            f"(FORMAT parquet, COMPRESSION snappy, KV_METADATA {{{literals}}})"
        )
    row = connection.execute("SELECT count(*) FROM counted").fetchone()
    return {"distinct pairs with links": row[0] if row else 0}


def _smoothing(connection: duckdb.DuckDBPyConnection, seen: list[str], alignments: int) -> Smoothing:
    """Compute the parameters of smoothing from all pairs.

    Args:
        seen: columns of the table ``targets``: the numbers of pairs with counts 1, 2, ...
        alignments: number of alignments of each text.
    """
    sums = ", ".join(f"sum({name})" for name in ("target_pairs", *seen))
    row = connection.execute(f"SELECT {sums} FROM targets").fetchone()
    assert row is not None
    pairs, *numbers = (int(value) for value in row)
    # fractional counts are rounded up
    return Smoothing(alignments, discounts(np.reshape(numbers, (4, alignments)).sum(1).tolist()), pairs)


def _with_discounts(profiles: dict[str, Any], smoothing: Smoothing) -> dict[str, NDArray[Any]]:
    """Add the column ``target_discount``, the sum of the discounts of all pairs of a target phrase.

    The sum depends only on the numbers of pairs with each count, and there are few distinct profiles of these numbers.
    The pairs are added in the order of their counts: a sum of floats in a fixed order is the same for any number of
    threads.

    Args:
        profiles: columns with the number of pairs, and the numbers of pairs with counts 1, 2, ..., before the last
            discount.
    """
    columns = {name: np.asarray(values) for name, values in profiles.items()}
    lost = np.array(smoothing.by_joint()[1:])
    pairs, *numbers = columns.values()
    numbers.append(pairs - np.sum(numbers, axis=0))
    sums = [np.cumsum(np.repeat(lost, row))[-1] for row in np.stack(numbers, 1)]
    return columns | {"target_discount": np.array(sums)}


MONO, SWAP, OTHER = 0, 1, 2
"""Orientations of the word-based model: monotone, swap, other (discontinuous)."""


@kernel()
def _has_link(links: Any, first: int, last: int, i: int, j: int, source_length: int, target_length: int) -> bool:
    """Return whether source position i is linked to target position j.

    The corners before the first words, (-1, -1), and after the last words of the sentence pair count as linked; all
    other positions outside it are not.

    Args:
        links: int32 [L, 2].
        first, last: range of the links of target position j.
    """
    if i < 0 or j < 0:
        return i == -1 and j == -1
    if i >= source_length or j >= target_length:
        return i == source_length and j == target_length
    for link in range(first, last):  # noqa: SIM110 (numba)
        if links[link, 0] == i:
            return True
    return False


@kernel()
def extract_block(  # noqa: PLR0912, PLR0915 (one kernel)
    source_offsets: Any,
    target_offsets: Any,
    link_offsets: Any,
    links: Any,
    max_length: int,
    spans: Any,
    bits: Any,
    orientations: Any,
) -> int:
    """Extract all phrase pairs of S sentence pairs (Koehn, Och and Marcu 2003).

    A pair has at least one link, and no link connects a word inside to a word outside. Unlinked words at the borders of
    the source side are optional. Each side has at most ``max_length`` (≤ 8) words. The order and the limits are those
    of Moses' ``extract``.

    Args:
        source_offsets, target_offsets, link_offsets: int64 [S + 1], offset of each sentence in the flat arrays.
        links: int32 [L, 2], source and target position, sorted by (target, source) in a sentence.
        spans: int32 [N, 4], filled: begin in the flat source, number of words, begin in the flat target, number of
            words.
        bits: int64 [N], filled: links of the pair, bit ``8 * target + source`` for positions in the phrases.
        orientations: int8 [N], filled: ``3 * previous + next``, with MONO, SWAP, OTHER of the word-based model (Koehn
            et al. 2005; Moses' ``wbe-msd``).

    Returns:
        The number of pairs; pairs beyond N are counted, but not stored.
    """
    n_pairs = 0
    capacity = bits.shape[0]
    longest_source, longest_target = 0, 0
    for s in range(source_offsets.shape[0] - 1):
        longest_source = max(longest_source, source_offsets[s + 1] - source_offsets[s])
        longest_target = max(longest_target, target_offsets[s + 1] - target_offsets[s])
    first_target = np.empty(longest_source + 1, np.int64)
    last_target = np.empty(longest_source + 1, np.int64)
    row = np.empty(longest_target + 2, np.int64)
    for s in range(source_offsets.shape[0] - 1):
        source_begin, target_begin = source_offsets[s], target_offsets[s]
        n_source, n_target = source_offsets[s + 1] - source_begin, target_offsets[s + 1] - target_begin
        # row[j]:row[j + 1]: links of target word j, empty for j = n_target. first_target, last_target: first and last
        # target word that each source word is linked to; last_target is -1 for unlinked words.
        for i in range(n_source):
            first_target[i] = n_target
            last_target[i] = -1
        at = link_offsets[s]
        for j in range(n_target):
            row[j] = at
            while at < link_offsets[s + 1] and links[at, 1] == j:
                i = links[at, 0]
                first_target[i] = min(first_target[i], j)
                last_target[i] = j
                at += 1
        row[n_target] = at
        row[n_target + 1] = at
        # all target spans; min_f, max_f: source span of their links, which only grows with end_e
        for start_e in range(n_target):
            min_f, max_f = n_source, -1
            for end_e in range(start_e, min(n_target, start_e + max_length)):
                for link in range(row[end_e], row[end_e + 1]):
                    min_f = min(min_f, links[link, 0])
                    max_f = max(max_f, links[link, 0])
                if max_f < 0:
                    continue
                # longer target spans have source spans at least as long
                if max_f - min_f >= max_length:
                    break
                consistent = True
                for i in range(min_f, max_f + 1):
                    if last_target[i] >= 0 and (first_target[i] < start_e or last_target[i] > end_e):
                        consistent = False
                        break
                if not consistent:
                    continue
                # extend the minimal source span over unlinked words, first on the left, then on the right
                start_f = min_f
                while start_f >= 0 and start_f > max_f - max_length and (start_f == min_f or last_target[start_f] < 0):
                    end_f = max_f
                    while (
                        end_f < n_source and end_f < start_f + max_length and (end_f == max_f or last_target[end_f] < 0)
                    ):
                        if n_pairs < capacity:
                            spans[n_pairs, 0] = source_begin + start_f
                            spans[n_pairs, 1] = end_f - start_f + 1
                            spans[n_pairs, 2] = target_begin + start_e
                            spans[n_pairs, 3] = end_e - start_e + 1
                            inside = np.int64(0)
                            for link in range(row[start_e], row[end_e + 1]):
                                inside |= np.int64(1) << np.int64(
                                    8 * (links[link, 1] - start_e) + links[link, 0] - start_f
                                )
                            bits[n_pairs] = inside
                            # Orientation: is the target word before the phrase linked to the source word before it
                            # (monotone) or after it (swap)? The same for the target word after the phrase. Outside
                            # the sentence pair, only the corners are linked. The ranges are those of the target
                            # word's links.
                            before, before_end = link_offsets[s], link_offsets[s]
                            if start_e > 0:
                                before, before_end = row[start_e - 1], row[start_e]
                            after, after_end = row[end_e + 1], row[min(end_e + 2, n_target)]
                            previous = OTHER
                            left = _has_link(links, before, before_end, start_f - 1, start_e - 1, n_source, n_target)
                            right = _has_link(links, before, before_end, end_f + 1, start_e - 1, n_source, n_target)
                            if left and not right:
                                previous = MONO
                            elif right and not left:
                                previous = SWAP
                            following = OTHER
                            right = _has_link(links, after, after_end, end_f + 1, end_e + 1, n_source, n_target)
                            left = _has_link(links, after, after_end, start_f - 1, end_e + 1, n_source, n_target)
                            if right and not left:
                                following = MONO
                            elif left and not right:
                                following = SWAP
                            orientations[n_pairs] = 3 * previous + following
                        n_pairs += 1
                        end_f += 1
                    start_f -= 1
    return n_pairs
