"""The training loop: updates, evaluations, checkpoints, progress, the end."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from rnnsmt.checkpoint import Checkpoint, refusing
from rnnsmt.networks.trainer import Trainer
from rnnsmt.progress import LOG_SECONDS, say
from rnnsmt.signals import Stop

SomeTrainer = TypeVar("SomeTrainer", bound=Trainer)
Figures = dict[str, object]


@dataclass(frozen=True)
class Outputs:
    """Where a training writes, how often (seconds between checkpoints), and after how many seconds it must be over."""

    model: str | Path
    history: str | Path
    state_dir: str | Path
    save_every: float = 300.0
    time_limit: float | None = None


def run(make: Callable[[], SomeTrainer], outputs: Outputs, write: Callable[[SomeTrainer, Outputs], Figures]) -> Figures:
    """Train a network, or go on with one, and write it; the figures of the stage, as ``write`` returns them.

    Raises:
        InputError: a checkpoint of other settings, or a loss that is not a number.
        SystemExit: 75, stopped by SIGTERM or the time limit with its state saved; 130 the same after Ctrl-C.
    """
    with Stop(outputs.time_limit) as stop:
        trainer = make()
        checkpoint = Checkpoint(outputs.state_dir, trainer.fingerprint())
        if trainer.place.first:
            checkpoint.lock()
        trainer.place.any(False)  # the others wait for the first process
        saved = checkpoint.load(trainer.place.device)
        if saved is not None:
            with refusing(checkpoint.path, checkpoint.remedy):
                trainer.restore(saved)
        log = Log(trainer)
        last_save = time.monotonic()

        while not trainer.finished:
            trainer.step()
            if trainer.evaluation_due:
                log.evaluation(trainer.evaluate())
            log.progress()
            stopping = stop.agreed(trainer.update, trainer.place)
            due = time.monotonic() - last_save > outputs.save_every or trainer.finished
            if trainer.place.first and (stopping or due):
                checkpoint.save(trainer.state())
                last_save = time.monotonic()
            if stopping and not trainer.finished:
                log.say(f"stopped {stop.reason()} after {trainer.update:,} updates, state saved: run again to go on")
                raise SystemExit(stop.exit_code())

        figures = write(trainer, outputs)
        if trainer.place.first:
            checkpoint.finish()
        return figures


class Log:
    """What the first process says: where it is, rate and expected time, the learning curve."""

    def __init__(self, trainer: Trainer) -> None:
        self.trainer = trainer
        self.began = self.last = time.monotonic()
        self.first_update, self.first_seen = trainer.update, trainer.seen
        self.say(
            f"{trainer.begins()}; {trainer.flat.numel():,} parameters; "
            f"{'goes on after' if trainer.update else 'begins:'} {trainer.update:,} of {trainer.total:,} updates"
        )

    def say(self, text: str) -> None:
        if self.trainer.place.first:
            say(text)

    def progress(self) -> None:
        """A line, when it is time for one."""
        if time.monotonic() - self.last >= LOG_SECONDS:
            self.say(self._line())

    def evaluation(self, row: dict[str, Any]) -> None:
        """A line with a row of the learning curve."""
        self.say(f"{self._line()}; {self.trainer.says(row)}; {100 * row['clip rate']:.0f} % of the updates clipped")

    def _line(self) -> str:
        trainer = self.trainer
        self.last = time.monotonic()
        seconds = max(self.last - self.began, 1e-9)
        left = (trainer.total - trainer.update) * seconds / max(trainer.update - self.first_update, 1)
        rate = (trainer.seen - self.first_seen) / seconds
        place = f"update {trainer.update:,} of {trainer.total:,} ({100 * trainer.update / trainer.total:.0f} %)"
        return f"{place}, {rate:,.0f} {trainer.examples}/s, at most {left:.0f} s left"
