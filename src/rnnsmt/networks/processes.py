"""Several processes of one training on one machine, one for each GPU, with the exit codes of one process.

The process that the user or the workflow has started is the first of them: it writes the files and the log, is told to
stop, and ends with the exit code that one process would have. It starts the others as ``torchrun`` would, which in its
place turns every exit code into 1.
"""

import ctypes
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from rnnsmt.progress import say
from rnnsmt.stopping import SAVED

PATIENCE = {0: 60.0, 2: 5.0, SAVED: 60.0, 128 + signal.SIGINT: 60.0}
"""Seconds after which the first process should have ended as the other one has, by exit code; any other: 1."""

_DIE_WITH_PARENT = 1
"""PR_SET_PDEATHSIG of Linux."""


@contextmanager
def started_processes(number: int) -> Iterator[None]:
    """Make this process the first of ``number`` that train together; the others get the same command line.

    number: 0 is 1. Nothing is started where torchrun has started this process. If one of the others ends by itself,
    this process would wait for its part of a sum for ever: it ends too, with exit code 2 after bad input, else 1.
    """
    if number <= 1 or "WORLD_SIZE" in os.environ:
        yield
        return
    before = dict(os.environ)
    shared = {"WORLD_SIZE": str(number), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(_free_port())}
    others: list[subprocess.Popen[bytes]] = []
    over = threading.Event()
    patience = 0.0
    try:
        for rank in range(1, number):
            own = {**before, **shared, "RANK": str(rank), "LOCAL_RANK": str(rank)}
            command = [sys.executable, "-m", "rnnsmt", *sys.argv[1:]]
            others.append(subprocess.Popen(command, env=own, preexec_fn=_end_with_parent))
            threading.Thread(target=_watch, args=(others[-1], over), daemon=True).start()
        os.environ.update(shared, RANK="0", LOCAL_RANK="0")
        yield
        patience = PATIENCE[0]
    except SystemExit:  # all stop after the same update
        patience = PATIENCE[SAVED]
        raise
    finally:
        over.set()
        for other in others:
            with suppress(subprocess.TimeoutExpired):
                other.wait(patience)
            other.kill()
            other.wait()
        os.environ.clear()
        os.environ.update(before)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _end_with_parent() -> None:
    """Also where the first process is killed, and can tell nobody."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)


def _watch(other: subprocess.Popen[bytes], over: threading.Event) -> None:
    code = other.wait()
    if not over.wait(PATIENCE.get(code, 1.0)):
        say(f"a process that trains together with this one ended with exit code {code}: this one ends too")
        os._exit(code if code == 2 else 1)
