"""Signals and standard streams of the process of a stage."""

import os
import signal
import sys
from types import FrameType

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
    """Give the numbers of closed standard streams away: libraries print to them, no output file must get one."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    sys.stdout = sys.stdout or os.fdopen(1, "w")
    sys.stderr = sys.stderr or os.fdopen(2, "w")


def drop_streams() -> None:
    """What stdout and stderr still hold is not written at the end."""
    for stream in (sys.stdout, sys.stderr):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
