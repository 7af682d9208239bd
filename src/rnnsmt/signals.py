"""Stopping long work in time: signals and the time limit."""

import signal
import time
from types import FrameType, TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rnnsmt.devices import Place

SAVED = 75
"""Exit code of a stage that stopped early on purpose with its state saved."""


AGREE_EVERY = 50
"""How many updates lie between two looks where several processes must agree."""


class Stop:
    """Remembers SIGTERM and Ctrl-C instead of ending the process at once, and watches the time limit.

    A second signal ends the process at once. About five minutes before the limit, or a tenth of it, it is time to stop.
    Outside a ``with`` signals keep their meaning.
    """

    def __init__(self, time_limit: float | None) -> None:
        self.end = None if time_limit is None else time.monotonic() + time_limit - min(300.0, 0.1 * time_limit)
        self.signal: int | None = None
        self._before: dict[int, object] = {}

    def __enter__(self) -> "Stop":
        for number in (signal.SIGTERM, signal.SIGINT):
            self._before[number] = signal.signal(number, self._remember)
        return self

    def _remember(self, number: int, _frame: FrameType | None) -> None:
        if self.signal is not None:
            raise SystemExit(128 + number)
        self.signal = number

    def asked(self, ahead: float = 0.0) -> bool:
        """Whether to save and stop now. ahead: seconds until it is asked again."""
        return self.signal is not None or (self.end is not None and time.monotonic() + ahead >= self.end)

    def agreed(self, update: int, place: "Place") -> bool:
        """The same for all processes, which stop together: asked after every update."""
        if place.processes == 1:
            return self.asked()
        return update % AGREE_EVERY == 0 and place.any(self.asked())

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
