"""Reading what ``phrases extract`` wrote, in batches of whole source phrases."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from rnnsmt.io import InputError, open_binary
from rnnsmt.phrases.database import connect
from rnnsmt.phrases.extraction import FORMAT, key_names
from rnnsmt.phrases.packing import Packing
from rnnsmt.phrases.score_kernels import group_rows
from rnnsmt.phrases.smoothing import Smoothing

BATCH_ROWS = 400_000


@dataclass
class Batch:
    """Sorted rows of an extract file that hold whole source groups: N rows, P distinct pairs, S sources.

    pairs, sources: int64 [P + 1], [S + 1], begin of each distinct pair and source, N at the end.
    source_keys, target_keys: int64 [K, N or more]. columns: the other columns by name, each [N].
    """

    source_keys: NDArray[np.int64]
    target_keys: NDArray[np.int64]
    columns: dict[str, NDArray[Any]]
    pairs: NDArray[np.int64]
    sources: NDArray[np.int64]


class ExtractFile:
    """An extract file: its packings (source, target), number of rows, batches and what smoothing needs.

    Raises:
        InputError: the file is missing, or not one that ``phrases extract`` wrote.
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
                raise InputError(f"{path}: not a whole parquet file; run 'rnnsmt phrases extract' again") from None
        metadata = {bytes(key).decode(): bytes(value) for key, value in pairs}
        if metadata.get("format", b"").decode() != FORMAT:
            raise InputError(f"{path}: not written by this version of 'rnnsmt phrases extract'; run it again")
        self.rows = int(row[0]) if row else 0
        self.packings = _packing(metadata, "source"), _packing(metadata, "target")
        self.smoothing = Smoothing(*json.loads(metadata["smoothing"]))

    def batches(self, names: list[str]) -> Iterator[Batch]:
        """Yield all rows with the key columns and the named ones, whole source phrases together, in order."""
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
                    end = int(sources[-2])
                    pairs, sources = pairs[: np.searchsorted(pairs, end) + 1], sources[:-1]
                rest = [array[end:] for array in arrays]
                others = dict(zip(names, (array[:end] for array in arrays[len(keys) :]), strict=True))
                yield Batch(source, target, others, pairs, sources)


def _packing(metadata: dict[str, bytes], side: str) -> Packing:
    return Packing.from_json(metadata[f"{side}_packing"].decode(), metadata[f"{side}_words"].split(b"\n"))
