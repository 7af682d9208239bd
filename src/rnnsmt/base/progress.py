"""Progress and warnings of operations: a bar on a terminal, periodic lines in a log, and a summary at the end.

All are messages of the logger ``rnnsmt`` of the standard module ``logging``: warnings at level WARNING, all others at
level INFO. A command prints them to stderr, which the workflow writes to a log file. In Python, only warnings are shown
by default; ``logging.basicConfig(level=logging.INFO)`` shows all.
"""

import logging
import resource
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sized
from typing import TypeVar

from rnnsmt.base.options import WORDING

Item = TypeVar("Item")

LOG_SECONDS = 10.0
"""Seconds between progress lines if stderr is not a terminal."""


_LOGGER = logging.getLogger("rnnsmt")


class _Printer(logging.Handler):
    """Handler that prints messages to the current ``sys.stderr``, one line each; ``warning:`` precedes a warning."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a message."""
        prefix = "warning: " if record.levelno == logging.WARNING else ""
        print(f"{prefix}{record.getMessage()}", file=sys.stderr, flush=True)


def print_messages() -> None:
    """Print all messages to stderr, as the command line does."""
    if not any(isinstance(handler, _Printer) for handler in _LOGGER.handlers):
        _LOGGER.addHandler(_Printer())
    _LOGGER.setLevel(logging.INFO)
    _LOGGER.propagate = False


def printable(text: str) -> str:
    """Return a text as one line; control characters and bytes of names that are not UTF-8 are escaped as in Python."""
    return "".join(c if c.isprintable() else " " if c.isspace() else c.encode("unicode_escape").decode() for c in text)


def say(text: str) -> None:
    """Log one line about the progress of an operation; in a call from Python, arguments replace options in the text."""
    _LOGGER.info(printable(WORDING.get()(text)))


def warn(text: str) -> None:
    """Log a warning of one line; in a call from Python, arguments replace options in the text."""
    _LOGGER.warning(printable(WORDING.get()(text)))


def track(items: Iterable[Item], what: str, total: int | None = None, unit: str = "lines") -> Iterator[Item]:
    """Yield items and show their rate and the remaining time: ``for line in track(read_lines(p), "reading")``.

    Args:
        what: description of the work.
        total: number of items, if known.
        unit: name of the items in the plural.
    """
    if total is None and isinstance(items, Sized):
        total = len(items)
    if sys.stderr.isatty() and _LOGGER.isEnabledFor(logging.INFO):
        from tqdm import tqdm

        yield from tqdm(items, desc=what, total=total, unit=f" {unit}", leave=False, dynamic_ncols=True)
        return
    meter = Meter(what, total, unit)
    for item in items:
        yield item
        meter.add(1)


def time_left(amount: int, rate: float) -> str:
    """Format the time that ``amount`` units take at a rate in units per second."""
    return f"about {amount / max(rate, 1e-9):.0f} s left"


class Meter:
    """Progress counter for work done in batches; prints a line every ``LOG_SECONDS`` seconds."""

    def __init__(self, what: str, total: int | None = None, unit: str = "lines") -> None:
        self.what, self.total, self.unit = what, total, unit
        self.done = 0
        self.started = self._last = time.monotonic()

    def add(self, amount: int) -> None:
        """Add ``amount`` completed units."""
        self.done += amount
        now = time.monotonic()
        if now - self._last >= LOG_SECONDS:
            self._last = now
            say(self._line(now))

    def _line(self, now: float) -> str:
        rate = self.done / max(now - self.started, 1e-9)
        text = f"{self.what}: {self.done:,}"
        if self.total:
            share = 100 * self.done / self.total
            text += f" of {self.total:,} {self.unit} ({share:.0f} %), {time_left(self.total - self.done, rate)}"
        else:
            text += f" {self.unit}"
        return f"{text}, {rate:,.0f}/s"


class StageClock:
    """Wall-clock and CPU time of a stage; ``finish`` prints the last line of its log."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.started = time.monotonic()

    def finish(self, figures: Mapping[str, object]) -> None:
        """Log the figures of the stage, its seconds and its peak memory in MB as one line."""
        itself, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = itself.ru_utime + itself.ru_stime + children.ru_utime + children.ru_stime
        peak = max(itself.ru_maxrss, children.ru_maxrss) / 1024
        parts = [f"{name} {_readable(value)}" for name, value in figures.items()]
        parts.append(f"{time.monotonic() - self.started:.1f} s, {cpu:.1f} CPU s, peak {peak:,.0f} MB")
        say(f"rnnsmt {self.name}: done: " + ", ".join(parts))


def _readable(value: object) -> str:
    """Format a figure with thousands separators or four significant digits."""
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    return str(value)
