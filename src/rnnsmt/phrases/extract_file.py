"""Extract files (parquet): distinct phrase pairs with links, counts and folds, in the order of the phrase table.

``ExtractFile`` reads one for the stages ``score`` and ``reordering``, in batches that contain all rows of a source
phrase. duckdb reads and writes them; it also sorts and counts the pairs.
"""

import json
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.io import InputError, open_binary
from rnnsmt.phrases.packing import Packing, SortedPairs, group_rows
from rnnsmt.phrases.pair_scores import Smoothing

PROCESS_MB = 350
"""Memory of Python, numba, the vocabularies and a block of text, besides duckdb's."""

LEAST_MB = 100
"""Minimum memory limit of duckdb."""


@contextmanager
def connect(scratch: str, threads: int, memory_mb: int) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open an empty in-memory database that spills into the directory ``scratch``.

    Args:
        scratch: directory for temporary files.
        threads: number of threads.
        memory_mb: memory of the whole process; the limit of duckdb is ``PROCESS_MB`` lower.

    Raises:
        InputError: inside the context, memory or disk space is insufficient.
    """
    connection = duckdb.connect(
        config={
            "threads": max(1, threads),
            "memory_limit": f"{max(LEAST_MB, memory_mb - PROCESS_MB)}MB",
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


BATCH_ROWS = 400_000
"""Number of rows that are read at a time."""


@dataclass
class ExtractBatch:
    """Sorted rows of an extract file with complete source groups.

    Attributes:
        rows: the phrase pairs.
        columns: the other columns by name, each [N].
    """

    rows: SortedPairs
    columns: dict[str, NDArray[Any]]


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
                yield ExtractBatch(SortedPairs(pairs, sources, source, target), others)


def _packing(metadata: dict[str, bytes], side: str) -> Packing:
    """Return the packing of a side from the metadata of a file."""
    return Packing.from_json(metadata[f"{side}_packing"].decode(), metadata[f"{side}_words"].split(b"\n"))


def key_names(packings: tuple[Packing, Packing]) -> list[str]:
    """Return the names of the key columns of both sides, in sorting order."""
    return [f"s{key}" for key in range(packings[0].keys)] + [f"t{key}" for key in range(packings[1].keys)]


FORMAT = "rnnsmt extract 4"
"""Version of the format, in the metadata of a file."""
