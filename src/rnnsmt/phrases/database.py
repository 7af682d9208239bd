"""duckdb as an external sorter and counter."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import duckdb

from rnnsmt.base.io import InputError

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
        raise InputError(f"--memory-mb {memory_mb}: too little for this corpus; give more") from None
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
