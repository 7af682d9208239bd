"""Check of the settings of all networks before a run: each training would reject its own only when it starts."""

from collections.abc import Iterator, Mapping
from typing import Any

from rnnsmt.base.fields import fields_of
from rnnsmt.config.sections import Config
from rnnsmt.cslm.settings import PRESETS as CSLM_PRESETS
from rnnsmt.networks.settings import TrainingSettings
from rnnsmt.nnjm.settings import PRESETS as NNJM_PRESETS
from rnnsmt.plan.messages import hint
from rnnsmt.rnn.settings import PRESETS as RNN_PRESETS
from rnnsmt.seq2seq.settings import PRESETS as SEQ2SEQ_PRESETS

PRESETS: Mapping[str, Mapping[str, TrainingSettings]] = {
    "rnn": RNN_PRESETS,
    "cslm": CSLM_PRESETS,
    "nnjm": NNJM_PRESETS,
    "seq2seq": SEQ2SEQ_PRESETS,
}


def setting_mistakes(config: Config) -> Iterator[str]:
    """Yield a line for every setting of a network that is unknown, out of range or incompatible with others.

    The settings of an LSTM override ``seq2seq.settings``, whose mistakes are not repeated for every LSTM.
    """
    found = {
        name: list(_mistakes(presets[section.preset], section.settings))
        for name, presets in PRESETS.items()
        for section in [getattr(config, name)]
    }
    yield from (f"{name}.settings{mistake}" for name, of_network in found.items() for mistake in of_network)
    seq2seq = config.seq2seq
    for lstm, settings in seq2seq.networks.items():
        for mistake in _mistakes(SEQ2SEQ_PRESETS[seq2seq.preset], {**seq2seq.settings, **settings}):
            if mistake not in found["seq2seq"]:
                yield f"seq2seq.networks.{lstm}{mistake}"


def _mistakes(preset: TrainingSettings, overrides: Mapping[str, Any]) -> Iterator[str]:
    """Yield the mistakes, each beginning with its key or a colon."""
    known = list(fields_of(type(preset)))
    for key in overrides:
        if key not in known:
            yield f": unknown key {key}; {hint(key, known)}"
    valid = {key: value for key, value in overrides.items() if key in known}
    for key, text, value in preset.checked(preset.values_with(valid), text=True)[1]:
        yield f".{key}: {text}, not {value!r}" if key else f": {text}"
