"""The training loop: updates, evaluations, checkpoints, progress, the end."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rnnsmt.checkpoint import Checkpoint
from rnnsmt.cslm.centring import centre
from rnnsmt.cslm.model_file import save_model
from rnnsmt.cslm.presets import Settings
from rnnsmt.cslm.text import Text
from rnnsmt.cslm.trainer import Trainer, perplexity
from rnnsmt.devices import Place
from rnnsmt.io import write_json
from rnnsmt.progress import LOG_SECONDS, say
from rnnsmt.signals import Stop


@dataclass(frozen=True)
class Outputs:
    """Where a training writes, how often (seconds between checkpoints), and after how many seconds it must be over."""

    model: str | Path
    history: str | Path
    state_dir: str | Path
    save_every: float = 300.0
    time_limit: float | None = None


def train(
    text: Text, settings: Settings, seed: int, place: Place, outputs: Outputs, threads: int = 1
) -> dict[str, object]:
    """Train a network, or go on with one, and write it with its learning curve; the figures of the stage.

    Raises:
        InputError: a checkpoint of other settings, or a loss that is not a number.
        SystemExit: 75, stopped by SIGTERM or the time limit with its state saved; 130 the same after Ctrl-C.
    """
    with Stop(outputs.time_limit) as stop:
        trainer = Trainer(text, settings, seed, place, threads)
        checkpoint = Checkpoint(outputs.state_dir, trainer.fingerprint())
        saved = checkpoint.load(place.device)
        if saved is not None:
            trainer.restore(saved)
        log = Log(trainer)
        last_save = time.monotonic()

        while not trainer.finished:
            trainer.step()
            if trainer.at_end_of_epoch:
                log.evaluation(trainer.evaluate())
            log.progress()
            stopping = stop.agreed(trainer.update, place)
            due = time.monotonic() - last_save > outputs.save_every or trainer.finished
            if place.first and (stopping or due):
                checkpoint.save(trainer.state())
                last_save = time.monotonic()
            if stopping and not trainer.finished:
                log.say(f"stopped {stop.reason()} after {trainer.update:,} updates, state saved: run again to go on")
                raise SystemExit(stop.exit_code())

        return write(trainer, outputs)


def write(trainer: Trainer, outputs: Outputs) -> dict[str, object]:
    """Write the network and its learning curve."""
    settings, kept = trainer.settings, trainer.kept()
    about = {"settings": settings.as_dict(), "seed": trainer.seed, "kept epoch": kept["epoch"]}
    if trainer.best is not None:
        trainer.flat.data.copy_(trainer.best[1])
    if settings.self_normalised:
        centre(trainer.model, trainer.text, trainer.seed)
    figures: dict[str, object] = {"epochs": len(trainer.history), "kept epoch": kept["epoch"]}
    if trainer.validation.number:
        figures |= {name: kept[name] for name in ("validation perplexity", "validation |ln Z|")}
        figures["unigram perplexity"] = perplexity(trainer.unigram)
    if trainer.place.first:
        vocabulary, normalised = trainer.text.vocabulary, settings.self_normalised > 0
        meta = {**about, "text": trainer.text.fingerprint, "vocabulary": vocabulary.hash(), **figures}
        save_model(outputs.model, trainer.model, vocabulary, normalised, meta)
        sizes = {"parameters": trainer.model.sizes.count(), "validation ngrams": trainer.validation.number}
        write_json(outputs.history, about | sizes | figures | {"curve": trainer.history})
    return figures


class Log:
    """What the first process says: where it is, rate and expected time, the learning curve."""

    def __init__(self, trainer: Trainer) -> None:
        self.trainer = trainer
        self.began = self.last = time.monotonic()
        self.first_update, self.first_ngram = trainer.update, trainer.ngrams_seen
        self.say(
            f"{len(trainer.text):,} n-grams, {trainer.validation.number:,} of them for validation; "
            f"{trainer.model.sizes.count():,} parameters; "
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
        trainer = self.trainer
        text = f"{self._line()}; epoch {row['epoch']}: perplexity trained {row['train perplexity']:.2f}"
        if "validation perplexity" in row:
            text += f", validation {row['validation perplexity']:.2f} (unigrams {perplexity(trainer.unigram):.0f})"
            if trainer.settings.self_normalised:
                text += f", |ln Z| {row['validation |ln Z|']:.3f}"
            if trainer.epochs_without_better:
                text += f", not better for {trainer.epochs_without_better} of {trainer.settings.patience} epochs"
        self.say(f"{text}; {100 * row['clip rate']:.0f} % of the updates clipped")

    def _line(self) -> str:
        trainer = self.trainer
        self.last = time.monotonic()
        seconds = max(self.last - self.began, 1e-9)
        left = (trainer.total - trainer.update) * seconds / max(trainer.update - self.first_update, 1)
        rate = (trainer.ngrams_seen - self.first_ngram) / seconds
        place = f"update {trainer.update:,} of {trainer.total:,} ({100 * trainer.update / trainer.total:.0f} %)"
        return f"{place}, {rate:,.0f} n-grams/s, at most {left:.0f} s left"
