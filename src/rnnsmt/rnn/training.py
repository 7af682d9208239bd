"""The training loop: updates, evaluations, checkpoints, progress, the end."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rnnsmt.checkpoint import Checkpoint, refusing
from rnnsmt.devices import Place
from rnnsmt.io import write_json
from rnnsmt.progress import LOG_SECONDS, say
from rnnsmt.rnn.heldout import HeldOut, unigram_likelihood
from rnnsmt.rnn.model_file import save_model, vocabularies_of
from rnnsmt.rnn.pairs import Pairs
from rnnsmt.rnn.presets import Settings
from rnnsmt.rnn.trainer import Trainer
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
    pairs: Pairs, settings: Settings, seed: int, place: Place, outputs: Outputs, threads: int = 1
) -> dict[str, object]:
    """Train a network, or go on with one, and write it with its learning curve; the figures of the stage.

    Raises:
        InputError: a checkpoint of other settings, or a loss that is not a number.
        SystemExit: 75, stopped by SIGTERM or the time limit with its state saved; 130 the same after Ctrl-C.
    """
    with Stop(outputs.time_limit) as stop:
        trainer = Trainer(pairs, settings, seed, place, threads)
        checkpoint = Checkpoint(outputs.state_dir, trainer.fingerprint())
        saved = checkpoint.load(place.device)
        if saved is not None:
            with refusing(checkpoint.path, checkpoint.remedy):
                trainer.restore(saved)
        held_out = HeldOut(pairs, trainer.held_out, place)
        log = Log(trainer, unigram_likelihood(pairs, trainer.held_out).per_word)
        evaluations = trainer.evaluations()
        last_save = time.monotonic()

        while trainer.update < trainer.total:
            trainer.step()
            if trainer.update in evaluations:
                log.evaluation(trainer.evaluate(held_out))
            log.progress()
            stopping = stop.agreed(trainer.update, place)
            due = time.monotonic() - last_save > outputs.save_every or trainer.update == trainer.total
            if place.first and (stopping or due):
                checkpoint.save(trainer.state())
                last_save = time.monotonic()
            if stopping and trainer.update < trainer.total:
                log.say(f"stopped {stop.reason()} after {trainer.update:,} updates, state saved: run again to go on")
                raise SystemExit(stop.exit_code())

        return write(trainer, log.unigram, outputs)


def write(trainer: Trainer, unigram: float, outputs: Outputs) -> dict[str, object]:
    """Write the network and its learning curve."""
    last, chosen = trainer.history[-1], trainer.choose()
    about = {"settings": trainer.settings.as_dict(), "seed": trainer.seed, "kept update": chosen["update"]}
    if trainer.place.first:
        belongs = {**vocabularies_of(trainer.pairs), "pairs": trainer.pairs.fingerprint}
        save_model(outputs.model, trainer.model, about | belongs)
        sizes = {"parameters": trainer.model.sizes.count(), "held-out pairs": len(trainer.held_out)}
        history = about | sizes | {"unigram log p per word": unigram, "curve": trainer.history}
        write_json(outputs.history, history)
    figures: dict[str, object] = {"updates": trainer.update, "pairs seen": trainer.pairs_seen}
    if len(trainer.held_out):
        figures |= {name: chosen[name] for name in ("held-out log p per pair", "held-out log p per word")}
        figures |= {"unigram per word": unigram}
    return figures | {"clip rate": last["clip rate"]}


class Log:
    """What the first process says: where it is, rate and expected time, the learning curve."""

    def __init__(self, trainer: Trainer, unigram: float) -> None:
        self.trainer, self.unigram = trainer, unigram
        self.began = self.last = time.monotonic()
        self.first_update, self.first_pair = trainer.update, trainer.pairs_seen
        self.say(
            f"{len(trainer.pairs):,} pairs, {len(trainer.held_out):,} of them held out; "
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
        text = f"{self._line()}; log p per word: trained {row['train log p per word']:.4f}"
        if "held-out log p per word" in row:
            text += f", held out {row['held-out log p per word']:.4f} (unigrams {self.unigram:.4f})"
        self.say(f"{text}; {100 * row['clip rate']:.0f} % of the updates clipped")

    def _line(self) -> str:
        trainer = self.trainer
        self.last = time.monotonic()
        seconds = max(self.last - self.began, 1e-9)
        left = (trainer.total - trainer.update) * seconds / max(trainer.update - self.first_update, 1)
        rate = (trainer.pairs_seen - self.first_pair) / seconds
        place = f"update {trainer.update:,} of {trainer.total:,} ({100 * trainer.update / trainer.total:.0f} %)"
        return f"{place}, {rate:,.0f} pairs/s, about {left:.0f} s left"
