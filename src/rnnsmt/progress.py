"""What a stage says while it works: a bar on a terminal, plain periodic lines in a log, its figures at the end."""

import resource
import sys
import time
from collections.abc import Iterable, Iterator, Sized
from typing import TypeVar

Item = TypeVar("Item")

LOG_SECONDS = 10.0
"""How often a line is written where stderr is not a terminal."""


def say(text: str) -> None:
    """Write one line to stderr, where the rules' logs are taken from."""
    print(text, file=sys.stderr, flush=True)


def track(items: Iterable[Item], what: str, total: int | None = None, unit: str = "lines") -> Iterator[Item]:
    """Yield the items, showing rate and expected time: ``for line in track(read_lines(p), "reading")``."""
    if total is None and isinstance(items, Sized):
        total = len(items)
    if sys.stderr.isatty():
        from tqdm import tqdm

        yield from tqdm(items, desc=what, total=total, unit=f" {unit}", leave=False, dynamic_ncols=True)
        return
    meter = Meter(what, total, unit)
    for item in items:
        yield item
        meter.add(1)


class Meter:
    """Counts work that comes in lumps; writes a plain line every ``LOG_SECONDS``."""

    def __init__(self, what: str, total: int | None = None, unit: str = "lines") -> None:
        self.what, self.total, self.unit = what, total, unit
        self.done = 0
        self.started = self._last = time.monotonic()

    def add(self, amount: int) -> None:
        """Count ``amount`` more units as done."""
        self.done += amount
        now = time.monotonic()
        if now - self._last >= LOG_SECONDS:
            self._last = now
            say(self._line(now))

    def _line(self, now: float) -> str:
        rate = self.done / max(now - self.started, 1e-9)
        text = f"{self.what}: {self.done:,}"
        if self.total:
            left = (self.total - self.done) / max(rate, 1e-9)
            text += f" of {self.total:,} {self.unit} ({100 * self.done / self.total:.0f} %), about {left:.0f} s left"
        else:
            text += f" {self.unit}"
        return f"{text}, {rate:,.0f}/s"


class StageClock:
    """Wall and CPU time of a stage; ``finish`` writes its last log line."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.started = time.monotonic()

    def finish(self, figures: dict[str, object]) -> None:
        """Write the stage's figures, its seconds and its peak memory as one line on stderr."""
        own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
        peak = max(own.ru_maxrss, children.ru_maxrss) / 1024
        parts = [f"{name} {_readable(value)}" for name, value in figures.items()]
        parts.append(f"{time.monotonic() - self.started:.1f} s, {cpu:.1f} CPU s, peak {peak:,.0f} MB")
        say(f"rnnsmt {self.name}: done: " + ", ".join(parts))


def _readable(value: object) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    return str(value)
