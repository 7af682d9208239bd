"""Extract files (Parquet): counts of distinct phrase pairs with links, in the order of the phrase table.

``write_extract`` counts and sorts the occurrences of phrase pairs with duckdb. ``ExtractFile`` reads the file for
`phrases score` and `phrases reordering`, in batches that contain all rows of their source phrases.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.errors import InputError
from rnnsmt.base.opening import open_binary
from rnnsmt.base.writing import atomic_path, check_name
from rnnsmt.phrases.packing import Packing, Side, SortedPairs, group_rows
from rnnsmt.phrases.scores import Smoothing, count_targets

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

PROCESS_MB = 350
"""Memory in MB for Python, numba, the vocabularies and a block of text, in addition to the memory of duckdb."""

LEAST_MB = 100
"""Minimum memory limit of duckdb in MB."""

DUCKDB_SHARE = 0.92
"""Memory limit of duckdb as a fraction of the memory above ``PROCESS_MB``. The limit covers only the buffers of duckdb:
a process with an intended maximum of 3,200 MB used 3,283 MB with a limit of 2,850 MB for duckdb."""

BATCH_ROWS = 122_880
"""Number of rows that are read at a time: the size of a row group in the file, so that every row is read only once."""


@contextmanager
def connect(scratch: str, threads: int, memory_mb: int) -> Iterator["DuckDBPyConnection"]:
    """Open an empty in-memory database that spills into the directory ``scratch``.

    Args:
        scratch: directory for temporary files.
        threads: number of threads.
        memory_mb: memory limit of the whole process in MB, see ``DUCKDB_SHARE``.
    """
    # duckdb is not imported at the level of a module: numba keeps the modules of kernels, and all objects to which they
    # refer, until the process ends, and duckdb would print 45 lines about objects that were not freed
    import duckdb

    connection = duckdb.connect(
        config={
            "threads": max(1, threads),
            "memory_limit": f"{max(LEAST_MB, int(DUCKDB_SHARE * (memory_mb - PROCESS_MB)))}MB",
            "temp_directory": scratch,
            "preserve_insertion_order": True,
        }
    )
    try:
        yield connection
    except duckdb.OutOfMemoryException:
        raise InputError(f"--memory-mb {memory_mb}: too small for this corpus; increase it") from None
    except duckdb.IOException as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"cannot write temporary files ({reason}); is the disk full?") from None
    finally:
        connection.close()


def key_names(packings: tuple[Packing, Packing]) -> list[str]:
    """Return the names of the key columns of both sides, in the order by which rows are sorted."""
    return [f"s{key}" for key in range(packings[0].keys)] + [f"t{key}" for key in range(packings[1].keys)]


def write_extract(
    connection: "DuckDBPyConnection",
    packings: tuple[Packing, Packing],
    max_length: int,
    alignments: int,
    output: str,
) -> int:
    """Count the rows of the table ``occurrences`` and write an extract file; return the number of its rows.

    Args:
        connection: database with the table ``occurrences``, whose columns are ``key_names``, ``links`` and
            ``orientation``; the table is dropped.
        packings: packings of source and target phrases.
        max_length: maximum number of words of a phrase, as in ``packings``.
        alignments: number of alignments of each text.
        output: the extract file.
    """
    names = key_names(packings)
    keys, target_keys = ", ".join(names), ", ".join(names[packings[0].keys :])
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
    smoothing = count_targets(connection, keys, target_keys, alignments)
    metadata = {
        "max_length": str(max_length),
        "smoothing": json.dumps(smoothing),
        "source_words": b"\n".join(packings[0].words).decode(),
        "target_words": b"\n".join(packings[1].words).decode(),
    }
    literals = ", ".join(f"{name}: {_literal(value)}" for name, value in metadata.items())
    with atomic_path(output) as temporary:
        connection.execute(
            f"COPY (SELECT counted.*, target_total, target_pairs, target_discount "
            f"FROM counted JOIN targets USING ({target_keys}) ORDER BY {keys}, links) "
            f"TO {_literal(str(temporary))} (FORMAT parquet, COMPRESSION zstd, KV_METADATA {{{literals}}})"
        )
    ((rows,),) = connection.execute("SELECT count(*) FROM counted").fetchall()
    return int(rows)


def _literal(text: str) -> str:
    """Return a string as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


class ExtractFile:
    """An extract file.

    Attributes:
        packings: packings of source and target phrases.
        rows: number of rows.
        smoothing: smoothing parameters.
    """

    def __init__(self, path: str, threads: int = 1, memory_mb: int = 2000) -> None:
        self.threads, self.memory_mb = threads, memory_mb
        check_name(path)
        self._literal = _literal(path)
        open_binary(path).close()
        metadata: dict[str, bytes] = {}
        import duckdb

        with connect("", threads, memory_mb) as connection, suppress(duckdb.InvalidInputException):
            pairs = connection.execute(f"SELECT key, value FROM parquet_kv_metadata({self._literal})").fetchall()
            ((self.rows,),) = connection.execute(f"SELECT count(*) FROM read_parquet({self._literal})").fetchall()
            metadata = {bytes(key).decode(): bytes(value) for key, value in pairs}
        if "source_words" not in metadata:
            raise InputError(f"{path}: not a file of `phrases extract`")
        source, target = (metadata[f"{side}_words"].split(b"\n") for side in ("source", "target"))
        max_length = int(metadata["max_length"])
        self.packings = Packing(source, max_length), Packing(target, max_length)
        self.smoothing = Smoothing(*json.loads(metadata["smoothing"]))

    def sides(self) -> tuple[Side, Side]:
        """Return both packings as arguments of kernels."""
        return self.packings[0].side(), self.packings[1].side()

    def batches(self, names: list[str]) -> Iterator[tuple[SortedPairs, dict[str, NDArray[Any]]]]:
        """Yield all rows in order, in batches of N rows: their phrase pairs, and the columns ``names``, each [N].

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
                    # the last source phrase may continue in the next batch: move its rows to that batch
                    end = int(sources[-2])
                    pairs, sources = pairs[: np.searchsorted(pairs, end) + 1], sources[:-1]
                rest = [array[end:] for array in arrays]
                others = dict(zip(names, (array[:end] for array in arrays[len(keys) :]), strict=True))
                yield SortedPairs(pairs, sources, source, target), others
