"""GPU operations of an update of a network (launches, copies, waits), counted with the device of ``fake_cuda``.

The numbers depend on the lengths of the phrases and on the settings, not on the layer sizes, which are small.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from rnnsmt.cli import main
from rnnsmt.cslm.model import cslm_task
from rnnsmt.cslm.settings import PRESETS as CSLM_PRESETS
from rnnsmt.cslm.text import Text
from rnnsmt.networks.devices import DeviceSetup
from rnnsmt.networks.training import Training
from rnnsmt.rnn.pairs import Pairs
from rnnsmt.rnn.settings import PRESETS as RNN_PRESETS
from rnnsmt.rnn.training import RnnTask

from .fake_cuda import Device
from .phrase_store import make_pairs

WORDS = [f"w{i}" for i in range(40)]

SMALL_RNN = {"embedding": 8, "hidden": 16, "maxout": 8, "deviation": 0.1, "precision": "float32"}

SMALL_CSLM = {"projection": 8, "hidden_1": 16, "hidden_2": 12, "spread": 0.3, "precision": "float32"}


def pairs_of_length(directory: Path, length: int, number: int = 400) -> Pairs:
    """Create pairs of phrases of equal length (number of ids including EOS)."""
    rng = np.random.default_rng(1)
    return pairs_of(directory, sorted({" ".join(rng.choice(WORDS, length - 1)) for _ in range(number)}))


def pairs_of(directory: Path, phrases: list[str]) -> Pairs:
    """Create pairs of a phrase and the phrase in capital letters."""
    words = " ".join(WORDS)
    return make_pairs(directory, [(phrase, phrase.upper()) for phrase in phrases], words, words.upper())


def make_text(directory: Path, lines: int = 500) -> Text:
    """Create a text of random words."""
    rng = np.random.default_rng(1)
    (directory / "text").write_text("".join(" ".join(rng.choice(WORDS, 8)) + "\n" for _ in range(lines)))
    command = [
        "networks",
        "prepare",
        "--network",
        "cslm",
        "--target",
        directory / "text",
        "--vocab-size",
        "30",
        "--output-dir",
        directory / "ids",
    ]
    assert main([str(part) for part in command]) == 0
    return Text.open(directory / "ids")


def rnn_trainer(pairs: Pairs, setup: DeviceSetup, preset: str = "paper", **settings: object) -> Training:
    """Return a trainer with the settings of a preset, except for layer sizes."""
    return Training(RnnTask(pairs, replace(RNN_PRESETS[preset], **{**SMALL_RNN, **settings}), 1, setup))


def cslm_trainer(text: Text, setup: DeviceSetup, preset: str = "paper", **settings: object) -> Training:
    """Return a trainer with the settings of a preset, except for layer sizes."""
    return Training(cslm_task(text, replace(CSLM_PRESETS[preset], **{**SMALL_CSLM, **settings}), 1, setup))


def counts_of_update(trainer: Training) -> dict[str, int]:
    """Return the counts of the third update, when the optimiser is initialised and graphs are captured."""
    trainer.step()
    trainer.step()
    Device.current.reset()
    trainer.step()
    return Device.current.counts()
