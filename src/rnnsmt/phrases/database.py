"""duckdb as a sorter and counter that spills to disk."""

from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

PROCESS_MB = 350
"""What Python, numba, the vocabularies and a block of text take beside duckdb."""

LEAST_MB = 100


@contextmanager
def connect(scratch: str, threads: int, memory_mb: int) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open an empty database that keeps to its share of ``memory_mb`` and spills into the folder ``scratch``."""
    connection = duckdb.connect(
        config={
            "threads": max(1, threads),
            "memory_limit": f"{max(LEAST_MB, memory_mb - PROCESS_MB)}MB",
            "temp_directory": scratch,
            "preserve_insertion_order": True,
        }
    )
    try:
        yield connection
    finally:
        connection.close()
