"""How a stage ends before its end: signals, the time limit, standard streams that are closed.

Most stages leave on SIGTERM and Ctrl-C like on an exception (``catch_signals``). Long ones that have a state to save
remember the signal and look at it, and at the time limit, where they can stop (``Stop``). A signal that is ignored when
the process starts, as in the background of a shell script, stays ignored.
"""

import os
import signal
import sys
import time
from types import FrameType, TracebackType

SAVED = 75
"""Exit code of a stage that stopped early on purpose with its state saved."""


class Stop:
    """Remembers SIGTERM and Ctrl-C instead of ending the process at once, and watches the time limit.

    A second signal ends the process at once. About five minutes before the limit, or a tenth of it, it is time to stop;
    the limit, in seconds, counts from the making of the object. Outside a ``with`` signals keep their meaning.
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
        if self.signal is not None:
            raise SystemExit(128 + number)
        self.signal = number

    def asked(self, ahead: float = 0.0) -> bool:
        """Whether to save and stop now. ahead: seconds until it is asked again; the most that was ever given counts."""
        self._ahead = max(self._ahead, ahead)
        return self.signal is not None or (self.end is not None and time.monotonic() + self._ahead >= self.end)

    def reason(self) -> str:
        """For the log."""
        return "before the time limit" if self.signal is None else f"by {signal.Signals(self.signal).name}"

    def exit_code(self) -> int:
        """130 after Ctrl-C, else ``SAVED``."""
        return 128 + signal.SIGINT if self.signal == signal.SIGINT else SAVED

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]


AGAIN = 0.2
"""Seconds after which a signal that was lost is sent once more."""


def catch_signals() -> None:
    """Leave on SIGTERM and Ctrl-C like on an exception, so that temporary files are removed."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_DFL:  # what is ignored, as behind nohup, stays so
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _stop)


def _stop(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def leave_signals() -> None:
    """Where there is nothing to remove, SIGTERM and Ctrl-C end the process at once."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def signal_again(lost: "sys.UnraisableHookArgs") -> None:
    """For ``sys.unraisablehook``: what a destructor raises is printed and forgotten; a signal is sent once more."""
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
    """Reopen closed file descriptors 0 to 2 on /dev/null: libraries print to them, no output file must get one."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    sys.stdout = sys.stdout or os.fdopen(1, "w")
    sys.stderr = sys.stderr or os.fdopen(2, "w")


def drop_streams() -> None:
    """What stdout and stderr still hold is not written at the end."""
    for stream in (sys.stdout, sys.stderr):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
