"""Several processes of one training on one machine, one per GPU, with the exit codes of a single process.

The process started by the user or the workflow has rank 0: it writes the files and the log, receives the signals to
stop, and exits with the code of a single-process training. It starts the others with the environment variables of
``torchrun``, which is not used because it turns every exit code into 1.
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

from rnnsmt.base.progress import say
from rnnsmt.base.stopping import SAVED

PATIENCE = {0: 60.0, 2: 5.0, SAVED: 60.0, 128 + signal.SIGINT: 60.0}
"""Exit code of another process -> seconds in which the first process should end too; 1 second for other codes."""

_DIE_WITH_PARENT = 1
"""``PR_SET_PDEATHSIG`` of Linux' prctl."""


@contextmanager
def started_processes(number: int) -> Iterator[None]:
    """Make this process rank 0 of ``number`` processes that train together; the others run the same command line.

    Nothing is started if ``number`` is 0 or 1, or if torchrun started this process. If another process ends early, this
    one would wait for its all-reduce for ever; it exits too, with code 2 after bad input of the other one, else 1.
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
    except SystemExit:  # a signal or the time limit: all processes stop after the same update
        patience = PATIENCE[SAVED]
        raise
    finally:
        # after any other exception ``patience`` is 0: the others are killed at once
        over.set()
        for other in others:
            with suppress(subprocess.TimeoutExpired):
                other.wait(patience)
            other.kill()
            other.wait()
        os.environ.clear()
        os.environ.update(before)


def _free_port() -> int:
    """Return a TCP port of this machine that is free now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _end_with_parent() -> None:
    """Ask Linux to kill this process when its parent dies, also if the parent is killed."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)


def _watch(other: subprocess.Popen[bytes], over: threading.Event) -> None:
    """Wait for another process; exit this one if the other one ended before the training was over."""
    code = other.wait()
    if not over.wait(PATIENCE.get(code, 1.0)):
        say(f"another process of this training ended with exit status {code}; stopping")
        os._exit(code if code == 2 else 1)
