"""Early termination of stages by signals or a time limit, and directories of checkpoints.

Most stages terminate on SIGTERM and Ctrl-C as on an exception (``catch_signals``). Long stages with checkpoints record
signals, and stop at the next point where they can be resumed (``Stop``); there, they also check the time limit. A
signal that is ignored when the process starts, as in the background of a shell script, remains ignored.

A checkpoint directory (``CheckpointDirectory``) is used by one process at a time, and a job is resumed only with the
same settings. A file lock, which is released when its process ends, excludes a second process: a job may still be
running after Snakemake was killed. ``finished.json`` records that the outputs of the job were written; after that, a
job with other settings replaces the checkpoint. The checkpoint of an interrupted job is never discarded.

If the disk of a job is temporary (a container, a node without a shared file system), the environment variable
``RNNSMT_CHECKPOINTS`` gives a directory on permanent storage.
"""

import fcntl
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, TracebackType
from typing import IO, Any

from rnnsmt.base.errors import InputError
from rnnsmt.base.paths import StrPath
from rnnsmt.base.progress import say
from rnnsmt.base.reading import read_json
from rnnsmt.base.writing import TEMPORARY, write_json

CHECKPOINTS = "RNNSMT_CHECKPOINTS"
"""Environment variable for a directory below which every checkpoint directory is created, at its usual path."""

SAVED = 75
"""Exit status of a stage that stopped early with its checkpoint saved."""


def check_time_limit(time_limit: float | None, checkpoint_dir: object) -> None:
    """Check that a stage with a time limit has a checkpoint directory."""
    if time_limit is not None and checkpoint_dir is None:
        raise InputError("--time-limit requires --checkpoint-dir")


class Stop:
    """Context manager that records SIGTERM and Ctrl-C instead of ending the process, and watches the time limit.

    A second signal ends the process at once. The time limit is in seconds from the creation of the object. The process
    must stop 300 s before the limit, or 10 % of the limit before it if that is shorter. Signals are recorded only
    inside the ``with`` block, and only if the main thread enters it, because no other thread can set signal handlers.
    """

    def __init__(self, time_limit: float | None) -> None:
        self.end = None if time_limit is None else time.monotonic() + time_limit - min(300.0, 0.1 * time_limit)
        self.signal: int | None = None
        self._ahead = 0.0
        self._waits = False
        self._before: dict[int, object] = {}

    def __enter__(self) -> "Stop":
        in_main_thread = threading.current_thread() is threading.main_thread()
        for number in (signal.SIGTERM, signal.SIGINT) if in_main_thread else ():
            if signal.getsignal(number) != signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._remember)
        return self

    def _remember(self, number: int, _frame: FrameType | None) -> None:
        """Handle a signal: record the first one, exit on the second, or on the first in ``waiting``."""
        if self.signal is not None:
            raise SystemExit(128 + number)
        self.signal = number
        if self._waits:
            raise SystemExit(self.exit_code())

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Let the first signal end the process inside the ``with`` block, where no work can be lost.

        Raises:
            SystemExit: a signal has arrived, before or inside the block; the status is ``exit_code()``.
        """
        if self.signal is not None:
            raise SystemExit(self.exit_code())
        self._waits = True
        try:
            yield
        finally:
            self._waits = False

    def asked(self, ahead: float = 0.0) -> bool:
        """Return whether the process must save a checkpoint and stop now.

        Args:
            ahead: seconds until the next call; the maximum of all calls is used.
        """
        self._ahead = max(self._ahead, ahead)
        return self.signal is not None or (self.end is not None and time.monotonic() + self._ahead >= self.end)

    def end_if_interrupted(self) -> None:
        """Raise ``KeyboardInterrupt`` after Ctrl-C, for work without a checkpoint."""
        if self.signal == signal.SIGINT:
            raise KeyboardInterrupt

    def reason(self) -> str:
        """Return the reason for stopping, for the log."""
        if self.signal is None:
            return "before the time limit"
        return "by Ctrl-C" if self.signal == signal.SIGINT else f"by {signal.Signals(self.signal).name}"

    def exit_code(self) -> int:
        """Return 130 after Ctrl-C, otherwise ``SAVED``."""
        return 128 + signal.SIGINT if self.signal == signal.SIGINT else SAVED

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]


AGAIN = 0.2
"""Seconds after which a lost signal is sent again."""


def catch_signals() -> None:
    """Terminate on SIGTERM and Ctrl-C as on an exception, so that temporary files are removed."""
    _received.clear()
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:  # ignored signals, as with nohup, remain ignored
        signal.signal(signal.SIGINT, _stop)
    signal.signal(signal.SIGTERM, _stop)


_received: list[int] = []
"""Signals for which an exception was raised."""


def _stop(number: int, _frame: FrameType | None) -> None:
    _received.append(number)
    raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)


def received_signal() -> int | None:
    """Return the last signal for which an exception was raised; a library may have replaced the exception.

    During the generation of machine code, LLVM calls Python. An exception is lost there, and numba raises
    ``RuntimeError: no compiled object yet`` instead.
    """
    return _received[-1] if _received else None


def leave_signals() -> None:
    """Let SIGTERM and Ctrl-C end the process at once, for code that needs no cleanup."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, 0)  # timer of ``signal_again``, whose signal Python no longer handles at exit


def signal_again(lost: "sys.UnraisableHookArgs") -> None:
    """Send a signal again if its exception was raised in a destructor, where Python prints and discards exceptions.

    If a signal interrupted an ``__init__`` of a library, the destructor of the incomplete object may raise an
    ``AttributeError``, which is not printed. For use as ``sys.unraisablehook``.
    """
    error = lost.exc_value
    if isinstance(error, KeyboardInterrupt):
        number = signal.SIGINT
    elif isinstance(error, SystemExit) and error.code == 128 + signal.SIGTERM:
        number = signal.SIGTERM
    else:
        if not (_received and isinstance(error, AttributeError)):
            sys.__unraisablehook__(lost)
        return
    signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(number))
    signal.setitimer(signal.ITIMER_REAL, AGAIN)


FINISHED = "finished.json"
"""Name of the file that marks a finished job."""


def lock_or_wait(file: IO[Any], path: Path) -> bool:
    """Lock an open file, after waiting for a process that has locked it; return False if it cannot be locked.

    Args:
        file: the file, open for writing.
        path: locked file or directory, for messages.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        say(f"another process is using {path}; waiting until it ends")
        fcntl.flock(file, fcntl.LOCK_EX)
    except OSError as error:  # some cluster file systems do not support locks
        say(f"{path}: cannot be locked ({error.strerror}); make sure that no other process uses it")
        return False
    return True


LONGEST_VALUE = 40
"""Maximum length of values shown in messages; longer ones are mostly hashes."""


def checkpoint_place(path: StrPath) -> Path:
    """Return the location of a checkpoint directory: ``path``, or ``path`` below the directory ``RNNSMT_CHECKPOINTS``.

    Variables in the value of ``RNNSMT_CHECKPOINTS`` are expanded.

    Raises:
        InputError: the value of ``RNNSMT_CHECKPOINTS`` is not a directory.
    """
    path = Path(path)
    if not (configured := os.environ.get(CHECKPOINTS)):
        return path
    directory = Path(os.path.expandvars(configured))
    if not directory.is_dir():
        raise InputError(f"{CHECKPOINTS}={configured}: {directory} is not a directory; create it or unset the variable")
    inside = Path(os.path.normpath(path.absolute() if ".." in path.parts else path))
    return directory / inside.relative_to(inside.anchor)


class CheckpointDirectory:
    """Checkpoint directory of one job."""

    def __init__(self, path: StrPath, fingerprint: Mapping[str, object]) -> None:
        """Create an object for a directory, without accessing the directory.

        Args:
            fingerprint: all settings and inputs that the result depends on, by name.
        """
        self.path = checkpoint_place(path)
        self.fingerprint = {name: str(value) for name, value in fingerprint.items()}
        self.remedy = f"remove {self.path} to start over"
        self._finished = self.path / FINISHED
        self._lock: IO[str] | None = None

    @staticmethod
    def is_finished(path: StrPath) -> bool:
        """Return whether the job of a directory has finished; a job with other settings may then use the directory."""
        return (checkpoint_place(path) / FINISHED).exists()

    def lock(self) -> None:
        """Wait until no other process uses the directory, then lock it, until ``release`` or the end of this object.

        Temporary files of killed processes, on any machine, are removed.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        self._lock = (self.path / "lock").open("w")
        if lock_or_wait(self._lock, self.path):
            for leftover in self.path.glob(f"{TEMPORARY}*"):
                leftover.unlink(missing_ok=True)

    def release(self) -> None:
        """Release the lock explicitly, since a saved traceback can keep this object alive."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    @property
    def descriptors(self) -> tuple[int, ...]:
        """Return the file descriptor of the lock; a child process that inherits it keeps the lock while it runs."""
        return () if self._lock is None else (self._lock.fileno(),)

    def clear_finished(self, *patterns: str) -> None:
        """Remove the checkpoint (files that match ``patterns``) of a finished job with other settings."""
        if not self._finished.exists() or not (changed := self._changed(read_json(self._finished))):
            return
        say(
            f"{self.path}: the finished run in this directory had different settings; starting again; changed: "
            f"{', '.join(changed)}"
        )
        for pattern in patterns:
            for path in self.path.glob(pattern):
                path.unlink()
        self._finished.unlink()

    def check(self, before: Mapping[str, object]) -> None:
        """Compare the fingerprint of a saved checkpoint with that of this job."""
        if changed := self._changed(before):
            raise InputError(
                f"{self.path}: the checkpoint was saved with different settings; changed: {', '.join(changed)}; "
                f"undo the change to resume, or {self.remedy}"
            )

    def finish(self) -> None:
        """Mark the job as finished: its outputs are written."""
        write_json(self._finished, self.fingerprint)

    def _changed(self, saved: Mapping[str, object]) -> list[str]:
        """Return the names of the settings that differ, with old and new values if these are short."""
        names = [*self.fingerprint, *(name for name in saved if name not in self.fingerprint)]
        changed = []
        for name in names:
            old, new = saved.get(name, "not set"), self.fingerprint.get(name, "not set")
            if old != new:
                short = max(len(str(old)), len(new)) <= LONGEST_VALUE
                changed.append(f"{name} (was {old}, is {new})" if short else name)
        return changed
