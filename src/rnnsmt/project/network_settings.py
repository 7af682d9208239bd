"""Check of the settings of all networks before a run: each training would reject its own only when it starts."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from rnnsmt.base.fields import fields_of, mistakes
from rnnsmt.config.messages import renamed_or_near
from rnnsmt.cslm.settings import PRESETS as CSLM_PRESETS
from rnnsmt.networks.options import values_with
from rnnsmt.networks.settings import TrainingSettings
from rnnsmt.nnjm.settings import PRESETS as NNJM_PRESETS
from rnnsmt.rnn.settings import PRESETS as RNN_PRESETS
from rnnsmt.seq2seq.settings import PRESETS as SEQ2SEQ_PRESETS

PRESETS: Mapping[str, Mapping[str, TrainingSettings]] = {
    "rnn": RNN_PRESETS,
    "cslm": CSLM_PRESETS,
    "nnjm": NNJM_PRESETS,
    "seq2seq": SEQ2SEQ_PRESETS,
}


def setting_mistakes(config: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for every setting of a network that is unknown, out of range or incompatible with others."""
    for name, presets in PRESETS.items():
        yield from _mistakes(f"{name}.settings", presets[config[name]["preset"]], config[name]["settings"])
    seq2seq = config["seq2seq"]
    for lstm, settings in seq2seq["networks"].items():
        preset = SEQ2SEQ_PRESETS[seq2seq["preset"]]
        yield from _mistakes(f"seq2seq.networks.{lstm}", preset, {**seq2seq["settings"], **settings})


def _mistakes(where: str, preset: TrainingSettings, overrides: Mapping[str, Any]) -> Iterator[str]:
    known = list(fields_of(type(preset)))
    for key in overrides:
        if key not in known:
            hint = renamed_or_near(key, where, known) or f"available: {', '.join(known)}"
            yield f"{where}: unknown key {key}; {hint}"
    valid = {key: value for key, value in overrides.items() if key in known}
    try:
        type(preset)(**values_with(preset, valid))
    except ValidationError as error:
        for key, text, value in mistakes(error):
            yield f"{where}.{key}: {text}, not {value!r}" if key else f"{where}: {text}"
