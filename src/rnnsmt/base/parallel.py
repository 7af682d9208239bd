"""Parallel processing: chunks of items in processes, in order and with bounded memory, or kernels in threads."""

import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from rnnsmt.base.io import InputError

Item = TypeVar("Item")

Result = TypeVar("Result")

CHUNK = 2000
"""Number of lines sent to a worker at once; does not affect the results."""

SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""Signals that are blocked while worker processes are forked."""

_state: dict[str, Any] = {}
"""State of a worker process: ``function``, which is applied to the chunks."""


def map_chunks(
    make: Callable[[], Callable[[tuple[Item, ...]], Result]], items: Iterable[Item], threads: int, chunk: int = CHUNK
) -> Iterator[Result]:
    """Apply a function to chunks of items and yield its results in order.

    Args:
        make: returns the function; called once in every process (it may import modules and compile kernels).
        items: read lazily; at most ``3 * threads`` chunks are in memory.
        threads: number of processes; with 1, the current process does the work.
        chunk: number of items per chunk.

    Raises:
        InputError: a process was killed, e.g. by the system because memory was short.
    """
    iterator = iter(items)
    chunks = iter(lambda: tuple(islice(iterator, chunk)), ())
    if threads <= 1:
        function = make()
        yield from map(function, chunks)
        return
    context = multiprocessing.get_context("fork" if "fork" in multiprocessing.get_all_start_methods() else None)
    with ProcessPoolExecutor(threads, context, _start_worker, (make, os.getpid())) as pool:
        waiting: deque[Future[Any]] = deque()
        try:
            for part in chunks:
                with _held_signals():  # forks workers, which must not receive a signal before they set their handlers
                    waiting.append(pool.submit(_work, part))
                if len(waiting) >= 3 * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool:
            # a signal to all processes may reach this one last; it then ends the stage instead of this error
            time.sleep(0.1)
            raise InputError(
                f"--threads {threads}: a worker process was killed, possibly because memory was insufficient; use "
                "fewer threads"
            ) from None
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


@contextmanager
def _held_signals() -> Iterator[None]:
    """Block SIGINT and SIGTERM."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start_worker(make: Callable[[], Any], parent: int) -> None:
    """Initialise a worker process."""
    # The parent handles Ctrl-C and SIGTERM. A worker whose parent was killed exits by itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    _state["function"] = make()


def _end_with(parent: int) -> None:
    """Exit when the parent process no longer exists."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def _work(part: tuple[Any, ...]) -> Any:
    """Apply the function of the worker to a chunk."""
    return _state["function"](part)


def map_lines(make: Callable[[], Callable[[str], str]], lines: Iterable[str], threads: int) -> Iterator[str]:
    """Apply a function to every line in several processes, in order; ``make`` returns it, as in ``map_chunks``."""
    for done in map_chunks(partial(_lines_function, make), lines, threads):
        yield from done


def _lines_function(make: Callable[[], Callable[[str], str]]) -> Callable[[tuple[str, ...]], list[str]]:
    """Return a function for chunks of lines, given ``make`` for single lines."""
    function = make()
    return lambda lines: [function(line) for line in lines]


def in_threads(function: Callable[[Item], Result], items: Sequence[Item], threads: int) -> Iterator[Result]:
    """Apply a function that releases the GIL to items in threads; yield its results in order.

    After an exception, of the function or from a signal, only the items in progress are completed.
    """
    if threads <= 1:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(threads) as pool:
        try:
            yield from pool.map(function, items)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
