"""Work in several processes: order, memory, errors and the end of the processes."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from rnnsmt.base.errors import InputError
from rnnsmt.base.parallel import map_chunks, map_lines


def make_sum() -> Callable[[tuple[int, ...]], int]:
    return sum


def make_upper() -> Callable[[str], str]:
    return str.upper


def make_failing() -> Callable[[tuple[int, ...]], int]:
    def fail(part: tuple[int, ...]) -> int:
        if 30 in part:
            raise ValueError("thirty")
        return len(part)

    return fail


@pytest.mark.parametrize("threads", [1, 3])
def test_order(threads: int) -> None:
    assert list(map_chunks(make_sum, range(100), threads, 7)) == [
        sum(range(i, min(i + 7, 100))) for i in range(0, 100, 7)
    ]
    lines = [f"line {i}" for i in range(5000)]
    assert list(map_lines(make_upper, lines, threads)) == [line.upper() for line in lines]
    assert list(map_lines(make_upper, [], threads)) == []


def test_input_is_read_lazily() -> None:
    read = 0

    def items() -> Iterator[int]:
        nonlocal read
        for i in range(100_000):
            read += 1
            yield i

    results = map_chunks(make_sum, items(), 2, 10)
    next(results)
    assert read <= 100
    results.close()  # type: ignore[attr-defined]
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_comes_out(threads: int) -> None:
    with pytest.raises(ValueError, match="thirty"):
        list(map_chunks(make_failing, range(1000), threads, 10))
    assert not multiprocessing.active_children()


def make_killed() -> Callable[[tuple[int, ...]], int]:
    def work(part: tuple[int, ...]) -> int:
        if 30 in part:
            os.kill(os.getpid(), signal.SIGKILL)
        return len(part)

    return work


def test_a_killed_worker_is_reported() -> None:
    with pytest.raises(InputError, match="--threads 2: a worker process was killed"):
        list(map_chunks(make_killed, range(1000), 2, 10))
    assert not multiprocessing.active_children()


PROGRAM = """
import os, time
from rnnsmt.base.parallel import map_chunks
def make():
    os.write(1, b"%d\\n" % os.getpid())  # one write a line: two workers write here
    return lambda part: time.sleep(0.2)
for _ in map_chunks(make, range(1000), 2, 1): pass
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_their_parent(how: signal.Signals) -> None:
    # child processes inherit that SIGINT is ignored if the tests run in the background
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout
    workers = [int(process.stdout.readline()) for _ in range(2)]
    process.send_signal(how)
    process.wait(20)
    process.stdout.close()
    deadline = time.monotonic() + 20
    while any(map(_alive, workers)):
        assert time.monotonic() < deadline, "a worker is left"
        time.sleep(0.1)


def _alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stream:  # noqa: PTH123
            return stream.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        pass
    except ProcessLookupError:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return not os.path.isdir("/proc")  # noqa: PTH112
