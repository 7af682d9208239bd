"""Work shared by processes (chunks of lines, in order, with bounded memory) or by threads (kernels without the GIL)."""

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

from rnnsmt.io import InputError

Item = TypeVar("Item")

Result = TypeVar("Result")

CHUNK = 2000
"""Lines that travel to a worker together. Results do not depend on it."""

SIGNALS = (signal.SIGINT, signal.SIGTERM)

_state: dict[str, Any] = {}


def map_chunks(
    make: Callable[[], Callable[[tuple[Item, ...]], Result]], items: Iterable[Item], threads: int, chunk: int = CHUNK
) -> Iterator[Result]:
    """Apply a function to chunks of items and yield its results in order.

    Args:
        make: gives the function; called once in every process (it may import and compile).
        items: read lazily; at most ``3 * threads`` chunks are in memory.
        threads: processes; with 1 everything happens in this one.

    Raises:
        InputError: a process was ended from outside, as the system does where memory is short.
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
                with _held_signals():  # the first one forks: a worker is to see none before it has handlers of its own
                    waiting.append(pool.submit(_work, part))
                if len(waiting) >= 3 * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool:
            time.sleep(0.1)  # a signal to all processes may reach this one last
            raise InputError(
                f"--threads {threads}: a process was ended from outside; was the memory full? use fewer threads"
            ) from None
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


@contextmanager
def _held_signals() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start_worker(make: Callable[[], Any], parent: int) -> None:
    # the parent decides what Ctrl-C and SIGTERM mean; a worker whose parent was killed ends itself
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    _state["function"] = make()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def _work(part: tuple[Any, ...]) -> Any:
    return _state["function"](part)


def map_lines(make: Callable[[], Callable[[str], str]], lines: Iterable[str], threads: int) -> Iterator[str]:
    """Apply a function to every line, in several processes, in order; ``make`` gives it, as in ``map_chunks``."""
    for done in map_chunks(partial(_lines_function, make), lines, threads):
        yield from done


def _lines_function(make: Callable[[], Callable[[str], str]]) -> Callable[[tuple[str, ...]], list[str]]:
    function = make()
    return lambda lines: [function(line) for line in lines]


def in_threads(function: Callable[[Item], Result], items: Sequence[Item], threads: int) -> Iterator[Result]:
    """Apply a function that releases the GIL to items, in threads; yield its results in order.

    An exception, of the function or a signal, ends it as soon as the items at work are done.
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
