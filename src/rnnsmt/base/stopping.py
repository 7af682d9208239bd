"""Early termination of stages: signals, time limit, closed standard streams.

Most stages terminate on SIGTERM and Ctrl-C as on an exception (``catch_signals``). Long stages with checkpoints record
the signal and poll it, and the time limit, at points where they can stop (``Stop``). A signal that is ignored when the
process starts, as in the background of a shell script, remains ignored.
"""

import os
import signal
import sys
import time
from types import FrameType, TracebackType

SAVED = 75
"""Exit status of a stage that stopped early with its state saved."""


class Stop:
    """Context manager that records SIGTERM and Ctrl-C instead of ending the process, and watches the time limit.

    A second signal ends the process at once. It is time to stop about five minutes before the limit, or a tenth of the
    limit if that is shorter. The limit is in seconds from the creation of the object. Signals keep their meaning
    outside the ``with`` block.
    """

    def __init__(self, time_limit: float | None) -> None:
        self.end = None if time_limit is None else time.monotonic() + time_limit - min(300.0, 0.1 * time_limit)
        self.signal: int | None = None
        self._ahead = 0.0
        self._before: dict[int, object] = {}

    def __enter__(self) -> "Stop":
        for number in (signal.SIGTERM, signal.SIGINT):
            if signal.getsignal(number) != signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._remember)
        return self

    def _remember(self, number: int, _frame: FrameType | None) -> None:
        """Handle a signal: record the first one, exit on the second."""
        if self.signal is not None:
            raise SystemExit(128 + number)
        self.signal = number

    def asked(self, ahead: float = 0.0) -> bool:
        """Return whether to save and stop now.

        Args:
            ahead: seconds until the next call; the maximum of all calls is used.
        """
        self._ahead = max(self._ahead, ahead)
        return self.signal is not None or (self.end is not None and time.monotonic() + self._ahead >= self.end)

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
    if signal.getsignal(signal.SIGINT) == signal.SIG_DFL:  # ignored signals, as with nohup, remain ignored
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _stop)


def _stop(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def leave_signals() -> None:
    """Let SIGTERM and Ctrl-C end the process at once; for code that has nothing to clean up."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def signal_again(lost: "sys.UnraisableHookArgs") -> None:
    """Send a signal again whose exception was raised in a destructor, where Python prints and drops it.

    For use as ``sys.unraisablehook``.
    """
    error = lost.exc_value
    if isinstance(error, KeyboardInterrupt):
        number = signal.SIGINT
    elif isinstance(error, SystemExit) and error.code == 128 + signal.SIGTERM:
        number = signal.SIGTERM
    else:
        sys.__unraisablehook__(lost)
        return
    signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(number))
    signal.setitimer(signal.ITIMER_REAL, AGAIN)


def open_closed_streams() -> None:
    """Reopen closed file descriptors 0 to 2 on /dev/null.

    Libraries print to these descriptors, so that no output file may get one of them. A closed standard output is opened
    for reading: what a command writes to it fails instead of being lost.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        if number == 1:
            os.close(number)
            os.open(os.devnull, os.O_RDONLY)
    os.close(number)
    sys.stdout = sys.stdout or os.fdopen(1, "w")
    sys.stderr = sys.stderr or os.fdopen(2, "w")


def drop_streams() -> None:
    """Discard what stdout and stderr still hold in their buffers at exit."""
    for stream in (sys.stdout, sys.stderr):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
